"""The Delta Lake table format for a stock PySpark session: no JAR, no session extension."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from puredelta.version import __version__

if TYPE_CHECKING:
    from puredelta.activation.session import activate, deactivate
    from puredelta.api import (
        dry_run,
        dry_run_write,
        explain,
        preview,
        preview_write,
        read,
        read_changes,
        sql,
        write,
    )
    from puredelta.commands.convert.preview import preview_convert
    from puredelta.commands.convert.undo import undo_convert
    from puredelta.commands.statement.report import Report, last_report
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

__all__ = [
    "ChangeResult",
    "DeltaTable",
    "Expectation",
    "MergePlan",
    "Report",
    "__version__",
    "activate",
    "apply_changes",
    "blame",
    "configure_spark_with_delta_pip",
    "deactivate",
    "diff",
    "dry_run",
    "dry_run_write",
    "explain",
    "insert_if_absent",
    "last_report",
    "plan_apply_changes",
    "plan_insert_if_absent",
    "plan_scd2",
    "plan_sync",
    "plan_upsert",
    "preview",
    "preview_convert",
    "preview_write",
    "read",
    "read_changes",
    "scd2",
    "sql",
    "sync",
    "undo_convert",
    "upsert",
    "write",
]

_MODULES = {
    "ChangeResult": "puredelta.recipes.plan",
    "DeltaTable": "puredelta.tables",
    "Report": "puredelta.commands.statement.report",
    "Expectation": "puredelta.commands.write.expectations",
    "MergePlan": "puredelta.recipes.plan",
    "activate": "puredelta.activation.session",
    "apply_changes": "puredelta.recipes.apply_changes",
    "blame": "puredelta.recipes.compare",
    "configure_spark_with_delta_pip": "puredelta.pip_utils",
    "deactivate": "puredelta.activation.session",
    "dry_run": "puredelta.api",
    "dry_run_write": "puredelta.api",
    "explain": "puredelta.api",
    "last_report": "puredelta.commands.statement.report",
    "preview": "puredelta.api",
    "diff": "puredelta.recipes.compare",
    "insert_if_absent": "puredelta.recipes.upsert",
    "plan_apply_changes": "puredelta.recipes.apply_changes",
    "plan_insert_if_absent": "puredelta.recipes.upsert",
    "plan_scd2": "puredelta.recipes.history",
    "plan_sync": "puredelta.recipes.upsert",
    "plan_upsert": "puredelta.recipes.upsert",
    "preview_convert": "puredelta.commands.convert.preview",
    "preview_write": "puredelta.api",
    "read": "puredelta.api",
    "read_changes": "puredelta.api",
    "scd2": "puredelta.recipes.history",
    "sql": "puredelta.api",
    "sync": "puredelta.recipes.upsert",
    "undo_convert": "puredelta.commands.convert.undo",
    "upsert": "puredelta.recipes.upsert",
    "write": "puredelta.api",
}
"""Where each public name is; its module is imported when the name is first asked for.

Most of them need pyspark, which takes longer to import than a log takes to read: workers and the
command line import this package, too.
"""


class _Package(ModuleType):
    """The package itself: the name of a function stays the function's when a layer has it, too."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _MODULES:
            return  # `puredelta.sql` is a layer, whose import would set it over the function
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
