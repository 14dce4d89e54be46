"""Rows of a DataFrame as new Parquet files."""

from __future__ import annotations
