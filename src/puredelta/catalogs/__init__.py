"""Catalogs as values: tables by name, their storage keys, and commits that a catalog ratifies."""
