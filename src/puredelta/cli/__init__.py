"""The command line: questions about tables and their changes, answered as text or as JSON."""
