"""Schemas: types, their JSON, and edits of columns."""

from __future__ import annotations
