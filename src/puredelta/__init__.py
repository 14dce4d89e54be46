"""The Delta Lake table format for a stock PySpark session: no JAR, no session extension."""

from __future__ import annotations

from puredelta.api import read, read_changes, sql, write
from puredelta.version import __version__

__all__ = ["__version__", "read", "read_changes", "sql", "write"]
