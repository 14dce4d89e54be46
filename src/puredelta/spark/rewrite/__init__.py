"""Data files written again without some of their rows."""
