"""Looking the keys of a source up in data files."""
