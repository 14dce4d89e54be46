"""Schemas: types, their JSON, and edits of columns."""
