"""The Delta Lake table format for a stock PySpark session: no JAR, no session extension."""

from __future__ import annotations

from puredelta.activation.session import activate, deactivate
from puredelta.api import read, read_changes, sql, write
from puredelta.commands.convert.preview import preview_convert
from puredelta.commands.convert.undo import undo_convert
from puredelta.commands.write.expectations import Expectation
from puredelta.pip_utils import configure_spark_with_delta_pip
from puredelta.recipes.apply_changes import apply_changes, plan_apply_changes
from puredelta.recipes.compare import blame, diff
from puredelta.recipes.history import plan_scd2, scd2
from puredelta.recipes.plan import ChangeResult, MergePlan
from puredelta.recipes.upsert import (
    insert_if_absent,
    plan_insert_if_absent,
    plan_sync,
    plan_upsert,
    sync,
    upsert,
)
from puredelta.tables import DeltaTable
from puredelta.version import __version__

__all__ = [
    "ChangeResult",
    "DeltaTable",
    "Expectation",
    "MergePlan",
    "__version__",
    "activate",
    "apply_changes",
    "blame",
    "configure_spark_with_delta_pip",
    "deactivate",
    "diff",
    "insert_if_absent",
    "plan_apply_changes",
    "plan_insert_if_absent",
    "plan_scd2",
    "plan_sync",
    "plan_upsert",
    "preview_convert",
    "read",
    "read_changes",
    "scd2",
    "sql",
    "sync",
    "undo_convert",
    "upsert",
    "write",
]
