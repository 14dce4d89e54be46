"""Partition values and timestamps as text, and predicates over columns."""
