"""Storage as the transaction log sees it: list, read, put-if-absent, delete."""
