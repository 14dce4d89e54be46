"""Changes that commits made: the change data feed, streams, and their log of schemas."""
