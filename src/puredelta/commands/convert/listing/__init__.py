"""Which files are data, and the partition values that directories or the catalog give them."""
