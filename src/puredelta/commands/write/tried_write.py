"""Dry run and preview of a write: added and removed rows, and all checks of the table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from puredelta.commands.dml.execute import replaced_input
from puredelta.commands.dml.explain import dry_run_statement
from puredelta.commands.dml.preview import preview_statement
from puredelta.commands.dml.replaced_rows import resolve_replaced
from puredelta.commands.statement.parts import (
    FileAction,
    FileTotals,
    JobCount,
    ReportState,
    RowTotals,
    first_file_decisions,
)
from puredelta.commands.statement.report import Report
from puredelta.commands.write.complete_rows import complete_rows
from puredelta.commands.write.planned_write import (
    NO_FILES,
    REPLACED,
    PlannedWrite,
    write_capability,
)
from puredelta.commands.write.write_table import WriteRequest, plan_write
from puredelta.errors import Message, UnsupportedError
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.write.writer import check_rows

_DYNAMIC = (
    "Which partitions are replaced: those of the new rows, which have to be written to know them."
)


def dry_run_write(rows: DataFrame, log: TableLog, request: WriteRequest) -> Report:
    """Return the report of a write; the rows are computed, checked and counted, and dropped.

    With ``replaceWhere`` on data columns the counts are those of the execution, as for a MERGE.

    Raises the errors of `write_table` that occur before it commits.
    """
    planned = plan_write(rows, log, request)
    if planned is None:
        return Report(
            statement="WRITE",
            table=log.root_uri,
            state=ReportState.DRY_RUN,
            notes=("There is a table, and the mode is ignore: nothing would happen.",),
        )
    planned.config.require(write_capability(planned.mode))
    where = planned.options.replace_where if planned.overwrites else None
    by = planned.options.replace_by if planned.overwrites else None
    if by is not None and planned.command.existing is not None:
        return _tried(planned, planned.command.existing, None)
    if where is None:
        return _report(planned, _replaced(planned), where=None)
    alias = planned.options.target_alias
    replaced = resolve_replaced(planned.command.spark, where, planned.config, alias=alias)
    existing = planned.command.existing
    if existing is None:
        return _report(planned, None, where=where)
    if replaced.goes_by_file(planned.config):
        return _report(planned, replaced.files(planned.command.spark, existing), where=where)
    planned.require_data_change(where)
    return _tried(planned, existing, where)


def _tried(planned: PlannedWrite, existing: Snapshot, where: str | None) -> Report:
    rows, spec = planned.replacement(existing, where)
    return dry_run_statement(planned.command, spec, replaced_input(planned.command, rows, spec))


def preview_write(
    rows: DataFrame, log: TableLog, request: WriteRequest, *, limit: int
) -> DataFrame:
    """Return rows that ``replaceWhere`` on data columns, ``replaceUsing`` or ``replaceOn`` deletes
    and inserts, like a MERGE.

    Raises:
        UnsupportedError: any other write: it removes whole files and adds the given rows.
    """
    planned = plan_write(rows, log, request)
    where = planned.options.replace_where if planned is not None and planned.overwrites else None
    existing = None if planned is None else planned.command.existing
    by = planned.options.replace_by if planned is not None and planned.overwrites else None
    if planned is None or existing is None or (where is None and by is None):
        raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_PREVIEW_WRITE)
    new_rows, spec = planned.replacement(existing, where)
    new_input = replaced_input(planned.command, new_rows, spec)
    return preview_statement(planned.command, spec, new_input, limit=limit)


def _replaced(planned: PlannedWrite) -> FileTable | None:
    existing = planned.command.existing
    if existing is None or not planned.overwrites or planned.replaces_partitions:
        return None
    return existing.files


def _report(planned: PlannedWrite, replaced: FileTable | None, *, where: str | None) -> Report:
    command, store = planned.command, planned.command.log.store
    inserted = _count(planned, where)
    goes = NO_FILES if replaced is None else replaced
    decisions = first_file_decisions(goes, FileAction.REMOVE, REPLACED)
    dynamic = planned.replaces_partitions and where is None
    return Report(
        statement="WRITE",
        table=store.root_uri,
        state=ReportState.DRY_RUN,
        read_version=None if command.existing is None else command.existing.version,
        rows=RowTotals(inserted=inserted, deleted=None if dynamic else goes.num_records()),
        files=FileTotals(
            removed=None if dynamic else len(goes),
            removed_bytes=None if dynamic else goes.total_size_bytes,
        ),
        decisions=decisions,
        decisions_left_out=len(goes) - len(decisions),
        jobs_expected=(JobCount(stage="write", jobs=1),),
        notes=(_DYNAMIC,) if dynamic else (),
    )


def _count(planned: PlannedWrite, where: str | None) -> int:
    """Compute and check the rows, then count them: two Spark jobs."""
    store = planned.command.log.store
    settings = planned.command.session.settings
    complete = complete_rows(planned.rows, planned.config, store=store, settings=settings)
    try:
        rows = planned.checked(complete.rows, where)
        check_rows(rows, planned.config, computed=complete.computed)
        return int(complete.rows.agg(F.count(F.lit(1))).collect()[0][0])
    finally:
        complete.remove(store)
