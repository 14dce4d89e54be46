"""Deletion vectors in storage: reading and writing them."""

from __future__ import annotations
