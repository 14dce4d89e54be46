"""The report of the last statement of this thread, and the reports that frames carry."""

from __future__ import annotations

import threading

from pyspark.sql import DataFrame

from puredelta.commands.report.report import Report


class _Latest(threading.local):
    report: Report | None = None


_LATEST = _Latest()


def last_report() -> Report | None:
    """Return the report of the last statement that this thread executed or tried, or ``None``.

    That is a MERGE, an UPDATE, a DELETE, a write of rows, an OPTIMIZE, a VACUUM, a RESTORE or a
    CONVERT, whichever way it was asked for. A statement that failed leaves the report of the one
    before.

    Examples:
        >>> spark.sql("DELETE FROM events WHERE day < '2020-01-01'")  # doctest: +SKIP
        >>> print(last_report())  # doctest: +SKIP
    """
    return _LATEST.report


def remember(report: Report | None) -> None:
    """Keep the report of a statement that was executed."""
    if report is not None:
        _LATEST.report = report


def with_report(frame: DataFrame, report: Report | None) -> DataFrame:
    """Return the result of a statement with its report as the attribute ``report``."""
    frame.__dict__["report"] = report
    return frame
