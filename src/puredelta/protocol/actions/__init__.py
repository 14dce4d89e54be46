"""The actions of a commit: JSON, paths, history entries and deletion vectors."""

from __future__ import annotations
