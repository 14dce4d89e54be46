"""The rows of a statement's source, readable as often as needed (stage 3)."""
