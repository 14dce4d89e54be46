"""Names, values and types of a statement, resolved against the table (stage 2)."""
