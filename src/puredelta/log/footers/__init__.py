"""Statistics read from Parquet footers."""

from __future__ import annotations
