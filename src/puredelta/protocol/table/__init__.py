"""One table by its metadata: configuration, checks, statistics and change data."""
