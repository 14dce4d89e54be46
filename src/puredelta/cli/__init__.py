"""The command line: what a person asks of a table, answered as text or as JSON."""
