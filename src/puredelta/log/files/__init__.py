"""The active files of a version as Arrow columns, and their statistics."""

from __future__ import annotations
