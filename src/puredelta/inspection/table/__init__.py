"""What the log of a table shows: history, description, files, rows, and what is wrong with it."""
