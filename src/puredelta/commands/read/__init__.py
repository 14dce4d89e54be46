"""What a table shows without being changed: rows of a version, changes, history, descriptions."""
