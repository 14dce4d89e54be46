"""The source of a statement, staged once or read in place."""
