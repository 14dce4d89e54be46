"""VACUUM: delete what no version within the retention time needs."""
