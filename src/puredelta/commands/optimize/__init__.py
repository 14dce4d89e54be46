"""OPTIMIZE: the same rows in fewer or better sorted files; also after other commands."""
