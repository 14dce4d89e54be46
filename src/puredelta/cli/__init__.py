"""The command line, with answers as text or as JSON."""
