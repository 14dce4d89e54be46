"""New data files, and data files written again without some of their rows."""
