"""An OPTIMIZE that was asked for, to be looked at before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import start_command
from puredelta.commands.optimize.explain import planned_optimize
from puredelta.commands.optimize.optimize import plan_optimize, run_optimize
from puredelta.commands.optimize.spec import OptimizeSpec
from puredelta.commands.report.parts import ReportState
from puredelta.commands.report.report import Report
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.feature_registry import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeRequest:
    """One OPTIMIZE; to explain it reads the log alone."""

    spark: SparkSession
    log: TableLog
    spec: OptimizeSpec

    def explain(self, mode: str = "plan") -> Report:
        """Return which files would be rewritten; ``mode`` makes no difference."""
        del mode
        return self._report(ReportState.PLANNED)

    def dry_run(self) -> Report:
        """Return the same: the files are known before a row is read."""
        return self._report(ReportState.DRY_RUN)

    def execute(self) -> DataFrame:
        """Run the OPTIMIZE and return its row."""
        return run_optimize(self.spark, self.log, self.spec)

    def _report(self, state: ReportState) -> Report:
        command = start_command(self.spark, self.log, Capability.MERGE)
        return planned_optimize(plan_optimize(command, self.spec), state)
