"""Partition values and timestamps as text, and predicates over columns."""

from __future__ import annotations
