"""``delta.tables`` for a stock PySpark: the same classes, methods and argument names."""

from __future__ import annotations

from puredelta.tables.builders import (
    DeltaMergeBuilder,
    DeltaOptimizeBuilder,
    PreparedChange,
    PreparedMaintenance,
)
from puredelta.tables.delta_table import DeltaTable
from puredelta.tables.table_builder import DeltaTableBuilder, IdentityGenerator

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "PreparedChange",
    "PreparedMaintenance",
]
