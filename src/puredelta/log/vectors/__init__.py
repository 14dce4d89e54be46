"""Deletion vectors in storage: read, and written."""

from __future__ import annotations
