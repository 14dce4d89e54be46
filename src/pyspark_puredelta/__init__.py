"""Where Spark looks for a Python data source: top-level modules called ``pyspark_*``."""

from __future__ import annotations

from puredelta.activation.data_source import DeltaSource

__all__ = ["DefaultSource"]


class DefaultSource(DeltaSource):
    """Format ``delta``; Spark asks for this very name."""
