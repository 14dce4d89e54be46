"""What commits changed: the change data feed and streams."""
