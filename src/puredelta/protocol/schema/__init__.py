"""Schemas: types, their JSON, edits of columns, values as text and predicates over columns."""
