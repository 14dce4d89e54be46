"""A RESTORE that was asked for, to be looked at before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.commands.report.parts import ReportState
from puredelta.commands.report.report import Report
from puredelta.commands.restore.plan import RestoreOutcome
from puredelta.commands.restore.report import nothing_to_restore, restore_report
from puredelta.commands.restore.restore import plan_restore, restore_table
from puredelta.log.replay.table_log import TableLog


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """One RESTORE; it reads the log, looks whether files are there, and runs no Spark job."""

    spark: SparkSession
    log: TableLog
    version: int | None = None
    timestamp: str | None = None

    def explain(self, mode: str = "plan") -> Report:
        """Return which files come back and which go; ``mode`` makes no difference."""
        del mode
        return self._report(ReportState.PLANNED)

    def dry_run(self) -> Report:
        """Return the same: all is known before the commit."""
        return self._report(ReportState.DRY_RUN)

    def execute(self) -> RestoreOutcome | None:
        """Restore the version; None if it is the newest already."""
        return restore_table(self.spark, self.log, version=self.version, timestamp=self.timestamp)

    def _report(self, state: ReportState) -> Report:
        plan = plan_restore(self.spark, self.log, version=self.version, timestamp=self.timestamp)
        if plan is None:
            return nothing_to_restore(self.log.root_uri, state)
        return restore_report(plan, state, seconds={})
