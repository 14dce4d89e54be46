"""The source of a statement, staged once or read where its files lie."""
