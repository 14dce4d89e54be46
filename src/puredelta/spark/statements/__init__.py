"""Statements that Spark's own parser reads."""

from __future__ import annotations
