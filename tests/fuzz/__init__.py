"""Mutated logs: an error with a code, or the rows that a plain replay gives."""
