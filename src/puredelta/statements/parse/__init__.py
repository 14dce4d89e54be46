"""Parsers from statement text to statement values."""
