"""Data skipping: files that cannot hold a row of a predicate."""
