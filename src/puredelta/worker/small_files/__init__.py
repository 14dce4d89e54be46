"""Many small Parquet files decoded as one."""

from __future__ import annotations
