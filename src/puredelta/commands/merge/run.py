"""MERGE from statement to commit: every stage in order, and nothing left behind on failure.

Spark work of an upsert: the source is staged, positions are searched, changed rows are
written while the other rows of touched files are copied. Whatever fails, the table is as
before and the files written are removed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.engine import engine_info
from puredelta.commands.merge.changes import ChangePlan, changed_rows, plan_changes
from puredelta.commands.merge.clauses import MergeSpec
from puredelta.commands.merge.context import MergeContext
from puredelta.commands.merge.execution_settings import ExecutionSettings
from puredelta.commands.merge.history import merge_operation
from puredelta.commands.merge.metrics import (
    MergeFiles,
    MergeRows,
    MergeTimes,
    operation_metrics,
)
from puredelta.commands.merge.plan import MergePlan, plan_merge
from puredelta.commands.merge.positions import Positions, count_rows, find_positions
from puredelta.commands.merge.resolve import resolve_merge
from puredelta.commands.merge.resolved import ResolvedDelete, ResolvedMerge, ResolvedUpdate
from puredelta.commands.merge.source import stage_source
from puredelta.commands.merge.split import SplitPlan, plan_split, rewrite_files, rewriters_of
from puredelta.errors import CommitUnknownError, DeltaError, ErrorCode
from puredelta.log.clock import wall_clock
from puredelta.log.commit_checks import require_valid_actions
from puredelta.log.pruning import prune_files
from puredelta.log.row_counts import count_file_rows, require_row_counts
from puredelta.log.table_log import TableLog
from puredelta.log.tombstones import remove_file
from puredelta.log.transaction import Phase, Transaction, ignore_phase
from puredelta.protocol.actions import Action, Remove, SetTransaction
from puredelta.protocol.feature_registry import Capability
from puredelta.protocol.table_config import TableConfig
from puredelta.spark.bitmaps import FileRows
from puredelta.spark.rewriting import Rewriter, Rewritten
from puredelta.spark.session import SessionInfo
from puredelta.spark.together import run_together
from puredelta.spark.writer import WriteResult, discard, write_rows

logger = logging.getLogger(__name__)

_NO_COPY = Rewritten(adds=(), num_rows=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOutcome:
    """What a MERGE did."""

    version: int | None
    """The version it committed; ``None`` if there was nothing to commit."""
    rows: MergeRows
    metrics: Mapping[str, int]
    """As the history holds them; empty if the statement had been executed before (M-92)."""
    plan: MergePlan | None
    """``None`` if the statement had been executed before."""


def run_merge(
    spark: SparkSession,
    log: TableLog,
    spec: MergeSpec,
    *,
    target_rows: DataFrame,
    source_rows: DataFrame,
) -> DataFrame:
    """Execute a MERGE and return its result row (M-12).

    Long columns ``num_affected_rows``, ``num_updated_rows``, ``num_deleted_rows`` and
    ``num_inserted_rows``; no row if the session's ``txnVersion`` had been executed (M-92).
    """
    outcome = execute_merge(spark, log, spec, target_rows=target_rows, source_rows=source_rows)
    rows = outcome.rows
    counts = {
        "num_affected_rows": rows.updated + rows.deleted + rows.inserted,
        "num_updated_rows": rows.updated,
        "num_deleted_rows": rows.deleted,
        "num_inserted_rows": rows.inserted,
    }
    executed = outcome.plan is not None
    table = pa.table(
        {name: pa.array([count] if executed else [], pa.int64()) for name, count in counts.items()}
    )
    return spark.createDataFrame(table)


def execute_merge(
    spark: SparkSession,
    log: TableLog,
    spec: MergeSpec,
    *,
    target_rows: DataFrame,
    source_rows: DataFrame,
    on_phase: Callable[[Phase], None] = ignore_phase,
) -> MergeOutcome:
    """Execute a MERGE on the latest version and commit it, unless it changes nothing.

    ``target_rows`` and ``source_rows`` are what the statement's names refer to; the target
    is read from the log, never through ``target_rows``.

    Raises:
        InvalidRequestError: the statement is wrong, a row breaks a rule of the table, or
            several source rows match one target row.
        UnsupportedError: the table uses a feature that MERGE here does not implement.
        ConflictError: another writer changed what this MERGE read.
    """
    started = time.monotonic()
    settings = ExecutionSettings.of(spark)
    snapshot = log.snapshot()
    transaction = Transaction(
        log,
        snapshot,
        engine_info=engine_info(spark),
        on_phase=on_phase,
        capability=Capability.MERGE,
    )
    marker = settings.marker
    if marker is not None and _executed_before(transaction, marker):
        return MergeOutcome(version=None, rows=MergeRows(source=0), metrics={}, plan=None)
    merge = resolve_merge(
        spec,
        target_rows=target_rows,
        source_rows=source_rows,
        config=snapshot.config,
        session=SessionInfo.of(spark),
    )
    staging = time.monotonic()
    source = stage_source(source_rows, merge, store=log.store)
    try:
        run = _Run(
            context=MergeContext(
                spark=spark, log=log, snapshot=snapshot, merge=merge, source=source
            ),
            transaction=transaction,
            settings=settings,
            started=started,
            staged_ms=_ms_since(staging),
        )
        return run.execute()
    finally:
        _remove_quietly(partial(source.remove, log.store))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A MERGE whose source is staged."""

    context: MergeContext
    transaction: Transaction
    settings: ExecutionSettings
    started: float
    staged_ms: int

    def execute(self) -> MergeOutcome:
        context, scanning = self.context, time.monotonic()
        snapshot = context.snapshot
        plan = plan_merge(
            context.merge,
            snapshot.files,
            context.source.profile,
            prune=lambda files, predicate: prune_files(files, snapshot.config, predicate),
            broadcast_bytes_max=self.settings.broadcast_bytes_max,
        )
        logger.debug("MERGE into %s: %s", snapshot.root_uri, plan.describe())
        self.transaction.read_files(plan.read_predicate, plan.candidates)
        positions = find_positions(context, plan)
        split = plan_split(plan, positions, root_uri=snapshot.root_uri)
        now_ms = wall_clock()
        removes = tuple(remove_file(add, deleted_ms=now_ms) for add in split.touched)
        # A table that only takes appends refuses here, before files are written (M-111).
        require_valid_actions(removes, before=snapshot.config, after=context.merge.config)
        changes = plan_changes(context, positions)
        scan_ms, rewriting = _ms_since(scanning), time.monotonic()
        files = _Files(self.context, self.settings)
        try:
            files.write(plan, positions, changes, split)
            rewrite_ms = 0 if changes.is_empty and not split.orders else _ms_since(rewriting)
            rows = _count_rows(context, positions, changes, files)
            times = MergeTimes(
                execution_ms=_ms_since(self.started),
                materialize_source_ms=self.staged_ms,
                scan_ms=scan_ms,
                rewrite_ms=rewrite_ms,
            )
            actions: tuple[Action, ...] = (*removes, *files.written.adds, *files.copied.adds)
            self._require_sound(rows, actions)
            actions = (*_table_changes(snapshot.config, context.merge.config), *actions)
        except BaseException:
            files.discard()
            raise
        metrics = operation_metrics(rows, _count_files(removes, files), times)
        version = self._commit(actions, metrics, files) if actions else None
        return MergeOutcome(version=version, rows=rows, metrics=metrics, plan=plan)

    def _require_sound(self, rows: MergeRows, actions: tuple[Action, ...]) -> None:
        merge = self.context.merge
        require_row_counts(
            "MERGE",
            rows.changes,
            count_file_rows(actions),
            may_insert=bool(merge.not_matched),
            may_delete=any(isinstance(c.action, ResolvedDelete) for c in merge.clauses),
        )

    def _commit(
        self, actions: tuple[Action, ...], metrics: Mapping[str, int], files: _Files
    ) -> int:
        marker = self.settings.marker
        try:
            committed = self.transaction.commit(
                actions if marker is None else (*actions, marker),
                merge_operation(self.context.merge),
                metrics=metrics,
                is_blind_append=False,
                user_metadata=self.settings.user_metadata,
            )
        except CommitUnknownError:
            raise  # the commit may have landed: its files must stay
        except Exception:
            files.discard()
            raise
        return committed.version


class _Files:
    """The files one MERGE writes, until they are committed or discarded."""

    def __init__(self, context: MergeContext, settings: ExecutionSettings) -> None:
        self._context = context
        self._settings = settings
        self._rewriters: tuple[Rewriter, ...] = rewriters_of(
            context.spark, context.log.store, context.snapshot
        )
        self.written = WriteResult(directory="", adds=(), num_rows=0)
        self.copied = _NO_COPY

    def write(
        self, plan: MergePlan, positions: Positions, changes: ChangePlan, split: SplitPlan
    ) -> None:
        """Write changed rows and copy the others, at the same time. Two Spark jobs or more."""
        rows = changed_rows(self._context, plan, positions, changes)
        if rows is None:
            self._copy(split)
        elif not split.orders:
            self._write(rows, changes)
        else:
            run_together(
                self._context.spark,
                partial(self._copy, split),
                partial(self._write, rows, changes),
            )

    def _copy(self, split: SplitPlan) -> None:
        self.copied = rewrite_files(self._rewriters, split)

    def _write(self, rows: DataFrame, changes: ChangePlan) -> None:
        config = self._context.merge.config
        scattered = bool(changes.from_target)  # a task per touched file would write a file each
        self.written = write_rows(
            rows,
            store=self._context.log.store,
            config=config,
            rebalance=scattered or (bool(config.partition_columns) and self._settings.rebalance),
        )

    def discard(self) -> None:
        """Remove everything written."""
        store = self._context.log.store
        if self.written.adds:
            _remove_quietly(partial(discard, self.written, store))
        for rewriter in self._rewriters:
            _remove_quietly(rewriter.discard)


def _table_changes(before: TableConfig, after: TableConfig) -> tuple[Action, ...]:
    """Return what an evolved schema adds to the commit, even if no row changes (M-57)."""
    return (
        *((after.protocol,) if after.protocol != before.protocol else ()),
        *((after.metadata,) if after.metadata != before.metadata else ()),
    )


def _executed_before(transaction: Transaction, marker: SetTransaction) -> bool:
    last = transaction.read_app_id(marker.app_id)
    return last is not None and last >= marker.version


def _count_rows(
    context: MergeContext, positions: Positions, changes: ChangePlan, files: _Files
) -> MergeRows:
    """Compare the rows that were written with those that should be, and count fates.

    Raises:
        DeltaError: they differ (DELTA_NUM_RECORDS_MISMATCH).
    """
    inserted = files.written.num_rows - changes.num_updates
    expected = changes.num_inserts
    if inserted < 0 or (expected is not None and inserted != expected):
        wanted = "any number of" if expected is None else expected
        raise DeltaError(
            f"MERGE wrote {files.written.num_rows} rows where {changes.num_updates} updates and "
            f"{wanted} inserts were due. Nothing was committed. This is a bug.",
            code=ErrorCode.NUM_RECORDS_MISMATCH,
        )
    merge = context.merge
    return MergeRows(
        source=context.source.num_rows,
        inserted=inserted,
        matched_updated=_fates(merge, positions.matched, ResolvedUpdate),
        matched_deleted=_fates(merge, positions.matched, ResolvedDelete),
        by_source_updated=_fates_by_source(merge, positions.by_source, ResolvedUpdate),
        by_source_deleted=_fates_by_source(merge, positions.by_source, ResolvedDelete),
        copied=files.copied.num_rows,
    )


def _fates(merge: ResolvedMerge, sets: tuple[FileRows, ...], kind: type) -> int:
    pairs = zip(merge.matched, sets, strict=True)
    return sum(count_rows(rows) for clause, rows in pairs if isinstance(clause.action, kind))


def _fates_by_source(merge: ResolvedMerge, sets: tuple[FileRows, ...], kind: type) -> int:
    pairs = zip(merge.not_matched_by_source, sets, strict=True)
    return sum(count_rows(rows) for clause, rows in pairs if isinstance(clause.action, kind))


def _count_files(removes: tuple[Remove, ...], files: _Files) -> MergeFiles:
    adds = (*files.written.adds, *files.copied.adds)
    return MergeFiles(
        added=len(adds),
        added_bytes=sum(add.size_bytes for add in adds),
        removed=len(removes),
        removed_bytes=sum(remove.size_bytes or 0 for remove in removes),
        deletion_vectors_removed=sum(remove.deletion_vector is not None for remove in removes),
    )


def _ms_since(moment: float) -> int:
    """Return the milliseconds since then, at least 1: the phase ran."""
    return max(1, round((time.monotonic() - moment) * 1000))


def _remove_quietly(remove: Callable[[], None]) -> None:
    """Clean up; what cannot be removed is left for VACUUM and must hide no error."""
    try:
        remove()
    except (OSError, DeltaError) as failure:
        logger.warning("Files of a MERGE could not be removed: %s", failure)
