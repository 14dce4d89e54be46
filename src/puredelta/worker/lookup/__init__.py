"""Looking the keys of a source up in data files."""

from __future__ import annotations
