"""Parsers from statement text to statement values: tokens, names, literals, expressions."""
