"""The Delta Lake table format for a stock PySpark session: no JAR, no session extension."""

from __future__ import annotations

from puredelta.activation.session import activate, deactivate
from puredelta.api import read, read_changes, sql, write
from puredelta.commands.convert.preview import preview_convert
from puredelta.commands.convert.undo import undo_convert
from puredelta.commands.report.latest import last_report
from puredelta.commands.report.report import Report
from puredelta.pip_utils import configure_spark_with_delta_pip
from puredelta.tables import DeltaTable
from puredelta.version import __version__

__all__ = [
    "DeltaTable",
    "Report",
    "__version__",
    "activate",
    "configure_spark_with_delta_pip",
    "deactivate",
    "last_report",
    "preview_convert",
    "read",
    "read_changes",
    "sql",
    "undo_convert",
    "write",
]
