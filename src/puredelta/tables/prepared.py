"""Statements that are ready, to be looked at before they run."""

from __future__ import annotations

from pyspark.sql import DataFrame

from puredelta.commands.dml.run.request import ChangeRequest
from puredelta.commands.report.latest import last_report
from puredelta.commands.report.report import Report
from puredelta.commands.restore.request import RestoreRequest
from puredelta.commands.vacuum.request import VacuumRequest
from puredelta.spark.session.pyspark_errors import methods_like_pyspark

__all__ = ["PreparedChange", "PreparedMaintenance"]


@methods_like_pyspark
class PreparedChange:
    """A statement that changes rows: `explain`, `dry_run`, `preview`, and at last `execute`.

    Every call reads the newest version of the table.
    """

    def __init__(self, request: ChangeRequest) -> None:
        self._request = request

    def explain(self, mode: str = "plan") -> Report:
        """Return what the statement will do, and why; nothing is written, no row is read.

        ``"plan"`` runs no Spark job; ``"source"`` evaluates the source of a MERGE, so that its
        keys skip files. See ``docs/explain.md``.

        Raises:
            InvalidRequestError: the statement is wrong, or there is no such mode.
        """
        return self._request.explain(mode)

    def dry_run(self, *, check_new_rows: bool = True) -> Report:
        """Return what the statement would do, with the counts that `execute` would have.

        Rows and files are searched as `execute` does it, and nothing is changed. New rows are
        computed, too, so that what the table refuses is refused now, unless ``check_new_rows`` is
        false.

        Raises what `execute` raises before it writes.
        """
        return self._request.dry_run(check_new_rows=check_new_rows)

    def preview(self, limit: int = 20) -> DataFrame:
        """Return up to ``limit`` changed rows before and after; nothing is changed.

        The columns are the table's, ``_change_type`` (``insert``, ``update_preimage``,
        ``update_postimage``, ``delete``) and ``_clause``, the number of the clause, from 1. An
        updated row has two lines. The rows are held by the driver: mind the limit.

        Raises what `execute` raises before it writes.
        """
        return self._request.preview(limit)

    def execute(self) -> DataFrame:
        """Run the statement and return one row of counts, with the attribute ``report``."""
        return self._request.execute()


@methods_like_pyspark
class PreparedMaintenance:
    """A VACUUM or a RESTORE: `explain`, `dry_run`, and at last `execute`."""

    def __init__(self, request: VacuumRequest | RestoreRequest) -> None:
        self._request = request

    def explain(self) -> Report:
        """Return which files come and go, and why; nothing is changed, no Spark job runs."""
        return self._request.explain()

    def dry_run(self) -> Report:
        """Return the same as the report of a dry run.

        Raises what `execute` raises before it changes anything.
        """
        return self._request.dry_run()

    def execute(self) -> Report | None:
        """Run the statement and return its report."""
        before = last_report()
        self._request.execute()
        after = last_report()
        return None if after is before else after
