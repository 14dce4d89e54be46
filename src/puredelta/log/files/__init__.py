"""The active files of a version as Arrow columns, and their statistics."""
