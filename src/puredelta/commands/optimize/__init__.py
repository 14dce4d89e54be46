"""OPTIMIZE: which files of a table are compacted, and along which columns rows are ordered."""
