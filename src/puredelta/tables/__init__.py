"""``delta.tables`` for a stock PySpark: the same classes, methods and argument names."""

from __future__ import annotations

from puredelta.tables.delta_table import DeltaTable
from puredelta.tables.merge_builder import DeltaMergeBuilder
from puredelta.tables.optimize_builder import DeltaOptimizeBuilder
from puredelta.tables.prepared import PreparedChange, PreparedMaintenance
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
