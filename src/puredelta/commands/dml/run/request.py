"""A MERGE, an UPDATE or a DELETE that was asked for: explained, tried, previewed or executed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command
from puredelta.commands.dml.explain.explain import (
    ExplainMode,
    dry_run_statement,
    explain_statement,
)
from puredelta.commands.dml.explain.preview import PREVIEW_ROWS, preview_statement
from puredelta.commands.dml.named_tables import named_tables
from puredelta.commands.dml.run.merge import run_merge
from puredelta.commands.dml.run.update_delete import run_rows
from puredelta.commands.dml.spec.merge import MergeSpec
from puredelta.commands.dml.spec.statement import InputRows
from puredelta.commands.dml.spec.update_delete import RowSpec
from puredelta.commands.dml.start import start_statement
from puredelta.commands.report.report import Report
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """One statement on one table; every call reads the newest version of the table."""

    spark: SparkSession
    log: TableLog
    spec: MergeSpec | RowSpec
    target_rows: DataFrame
    """What names of the statement mean: no rows, the table's columns."""
    source_rows: DataFrame | None = None
    since: int | None = None
    """The version from which on commits of others are of interest."""

    def execute(self) -> DataFrame:
        """Execute the statement; one row of counts, with the attribute ``report``."""
        if not isinstance(self.spec, MergeSpec):
            return run_rows(self.spark, self.log, self.spec, target_rows=self.target_rows)
        if self.source_rows is None:
            raise ValueError("a MERGE needs a source")
        return run_merge(
            self.spark,
            self.log,
            self.spec,
            target_rows=self.target_rows,
            source_rows=self.source_rows,
        )

    def explain(self, mode: str = "plan") -> Report:
        """Return what the statement will do, and why; see `explain_statement`.

        Raises:
            InvalidRequestError: the mode is neither ``plan`` nor ``source``.
        """
        parsed = explain_mode(mode)
        with self._started() as (command, rows):
            return explain_statement(command, self.spec, rows, parsed)

    def dry_run(self, *, check_new_rows: bool = True) -> Report:
        """Return the counts that an execution would have; see `dry_run_statement`."""
        with self._started() as (command, rows):
            return dry_run_statement(
                command, self.spec, rows, since=self.since, check_new_rows=check_new_rows
            )

    def preview(self, limit: int = PREVIEW_ROWS) -> DataFrame:
        """Return changed rows before and after; see `preview_statement`."""
        with self._started() as (command, rows):
            return preview_statement(command, self.spec, rows, limit=limit)

    @contextmanager
    def _started(self) -> Iterator[tuple[Command, InputRows]]:
        with named_tables(self.spark, self.spec):
            command = start_statement(self.spark, self.log)
            source = None if self.source_rows is None else command.bind(self.source_rows)
            yield command, InputRows(target=self.target_rows, source=source)


def explain_mode(mode: object) -> ExplainMode:
    """Return the mode of a name.

    Raises:
        InvalidRequestError: there is no such mode.
    """
    modes = {known.value: known for known in ExplainMode}
    found = modes.get(mode.strip().lower()) if isinstance(mode, str) else None
    if found is None:
        raise InvalidRequestError(
            f"There is no mode {mode!r} of explain. Use 'plan', which runs no Spark job, or "
            "'source', which evaluates the source; dry_run() goes on to the counts.",
            code=ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
            mode=mode,
        )
    return found
