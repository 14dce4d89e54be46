"""The Delta Lake table format for a stock PySpark session: no JAR, no session extension."""

from __future__ import annotations

__version__ = "0.1.0"
