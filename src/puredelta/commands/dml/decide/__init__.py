"""Which rows are written, and which files are rewritten, marked or dropped (stage 6)."""
