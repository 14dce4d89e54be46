"""The command line: answers of a table as text or as JSON."""
