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
    from puredelta.commands.report.latest import last_report
    from puredelta.commands.report.report import Report
    from puredelta.pip_utils import configure_spark_with_delta_pip
    from puredelta.tables import DeltaTable

__all__ = [
    "DeltaTable",
    "Report",
    "__version__",
    "activate",
    "configure_spark_with_delta_pip",
    "deactivate",
    "dry_run",
    "dry_run_write",
    "explain",
    "last_report",
    "preview",
    "preview_convert",
    "preview_write",
    "read",
    "read_changes",
    "sql",
    "undo_convert",
    "write",
]

_MODULES = {
    "DeltaTable": "puredelta.tables",
    "Report": "puredelta.commands.report.report",
    "activate": "puredelta.activation.session",
    "configure_spark_with_delta_pip": "puredelta.pip_utils",
    "deactivate": "puredelta.activation.session",
    "dry_run": "puredelta.api",
    "dry_run_write": "puredelta.api",
    "explain": "puredelta.api",
    "last_report": "puredelta.commands.report.latest",
    "preview": "puredelta.api",
    "preview_convert": "puredelta.commands.convert.preview",
    "preview_write": "puredelta.api",
    "read": "puredelta.api",
    "read_changes": "puredelta.api",
    "sql": "puredelta.api",
    "undo_convert": "puredelta.commands.convert.undo",
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
