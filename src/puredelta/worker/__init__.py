"""What executors run: standard library, numpy and pyarrow only."""

from __future__ import annotations
