"""A VACUUM that was asked for, to be looked at before it deletes anything."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.commands.report.parts import ReportState
from puredelta.commands.report.report import Report
from puredelta.commands.vacuum.explain import vacuum_report
from puredelta.commands.vacuum.scope import VacuumScope
from puredelta.commands.vacuum.vacuum import VacuumOutcome, plan_vacuum, vacuum
from puredelta.log.replay.table_log import TableLog


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumRequest:
    """One VACUUM; to explain it lists the storage, and runs no Spark job."""

    spark: SparkSession
    log: TableLog
    retention_hours: float | None = None
    scope: VacuumScope | None = None

    def explain(self, mode: str = "plan") -> Report:
        """Return what would be deleted; ``mode`` makes no difference."""
        del mode
        return self._report(ReportState.PLANNED)

    def dry_run(self) -> Report:
        """Return the same: all is known before anything is deleted."""
        return self._report(ReportState.DRY_RUN)

    def execute(self) -> VacuumOutcome:
        """Delete the files."""
        return vacuum(self.spark, self.log, retention_hours=self.retention_hours, scope=self.scope)

    def _report(self, state: ReportState) -> Report:
        plan = plan_vacuum(
            self.spark, self.log, retention_hours=self.retention_hours, scope=self.scope
        )
        return vacuum_report(plan, state, seconds={})
