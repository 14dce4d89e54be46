"""From a resolved statement to its commit: every stage in order, nothing left on failure.

RowPositions are searched, changed rows are written while the other rows of touched files are
copied. Whatever fails, the table is as before and the files written are removed. Which
statement it is, is unknown here: a `RowCommand` says what the history calls it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.cleanup import discarded_on_failure
from puredelta.commands.identity_marks import identity_tags
from puredelta.commands.optimize.auto import compact_after
from puredelta.commands.row_changes.ahead import StatisticsPrefetch
from puredelta.commands.row_changes.changes import ChangePlan, plan_changes, records_changes
from puredelta.commands.row_changes.context import ChangeContext
from puredelta.commands.row_changes.counts import (
    MetricsOf,
    PhaseTimes,
    RowCounts,
    ms_since,
)
from puredelta.commands.row_changes.files import StatementFiles, remove_quietly
from puredelta.commands.row_changes.identities import with_generated_identities
from puredelta.commands.row_changes.plan import SearchPlan, plan_search
from puredelta.commands.row_changes.positions import RowPositions, find_positions
from puredelta.commands.row_changes.settings import ExecutionSettings
from puredelta.commands.row_changes.source import StagedSource, stage_source
from puredelta.commands.row_changes.split import RewriteStrategy, plan_split, uses_deletion_vectors
from puredelta.commands.row_changes.statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedDelete,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.commit.commit_checks import require_valid_actions
from puredelta.log.commit.row_ids import PRESERVED_TAG
from puredelta.log.commit.transaction import Transaction
from puredelta.log.files.clock import wall_clock
from puredelta.log.files.row_counts import count_file_rows, require_row_counts
from puredelta.log.files.tombstones import remove_file
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import Action, SetTransaction
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.table.change_data import require_no_change_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.cached_frames import refresh_cached_frames
from puredelta.spark.offload.key_lookup import WorkerMemory
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.row_bitmap import count_rows

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCommand:
    """What the log says of a statement that changes rows."""

    operation: Operation
    metrics: MetricsOf
    deletion_vectors: bool = False
    """Whether the session wants them for this command; the table must, too (M-130)."""
    infers_deletes: bool = False
    """Where it only deletes and deletion vectors tell which rows, no change files are
    written: readers of the feed compare the vectors.
    """
    marks_always: bool = False
    """An application's version is committed even if no row changes (M-92)."""

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.operation.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a statement did."""

    version: int | None
    """The version it committed; ``None`` if there was nothing to commit."""
    rows: RowCounts
    metrics: Mapping[str, int]
    """As the history holds them."""
    plan: SearchPlan


def already_committed(transaction: Transaction, marker: SetTransaction | None) -> bool:
    """Tell whether the table has this application's version already (M-92)."""
    if marker is None:
        return False
    last = transaction.read_app_id(marker.app_id)
    return last is not None and last >= marker.version


def change_rows(
    statement: ResolvedStatement,
    command: RowCommand,
    *,
    spark: SparkSession,
    log: TableLog,
    snapshot: Snapshot,
    transaction: Transaction,
    settings: ExecutionSettings,
    started: float,
    source_rows: DataFrame | None = None,
    statistics: StatisticsPrefetch | None = None,
) -> Outcome:
    """Execute a statement on ``snapshot`` and commit it, unless it changes nothing.

    ``started`` is the `time.monotonic` at which the command began. The rows of its source,
    if it has one, are staged here, and removed whatever happens; or its files are read where
    they lie. ``statistics`` of the snapshot's files, parsed meanwhile, are waited for.

    Raises:
        DeltaError: files of a source that is read where it lies changed meanwhile.
        InvalidRequestError: a row breaks a rule of the table, or several source rows match
            one target row.
        ConflictError: another writer changed what this statement read.
    """
    staging = time.monotonic()
    if source_rows is None:
        source, staged_ms = StagedSource.none(), 0
    else:
        source = stage_source(
            source_rows, statement, spark=spark, store=log.store, must_stage=settings.must_stage
        )
        staged_ms = ms_since(staging) if source.materialized else 0
    try:
        if statistics is not None:
            statistics.wait()
        run = _Run(
            context=ChangeContext(
                spark=spark, log=log, snapshot=snapshot, statement=statement, source=source
            ),
            command=command,
            transaction=transaction,
            settings=settings,
            started=started,
            staged_ms=staged_ms,
        )
        outcome = run.execute()
    except Exception as failure:
        if not isinstance(failure, DeltaError):
            source.require_unchanged()  # else that is what Spark stumbled over
        raise
    finally:
        remove_quietly(partial(source.remove, log.store))
    if outcome.version is not None:
        refresh_cached_frames(spark, log)
        compact_after(spark, log, outcome.version, statement.config)
    return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A statement whose source can be read as often as needed."""

    context: ChangeContext
    command: RowCommand
    transaction: Transaction
    settings: ExecutionSettings
    started: float
    staged_ms: int

    def execute(self) -> Outcome:
        context, scanning = self.context, time.monotonic()
        snapshot = context.snapshot
        _require_free_names(snapshot.config, context.statement.config)
        plan = plan_search(
            context.statement,
            snapshot.files,
            context.source.profile,
            prune=lambda files, predicate: prune_files(
                files,
                snapshot.config,
                predicate,
                by_statistics=self.settings.skips_by_statistics,
            ),
            broadcast_bytes_max=self.settings.broadcast_bytes_max,
            memory=WorkerMemory.of(context.spark),
        )
        logger.debug(
            "%s in %s: %s; %s",
            self.command.name,
            snapshot.root_uri,
            plan.describe(),
            context.source.handling,
        )
        self.transaction.read_files(plan.read_predicate, plan.candidates)
        positions = find_positions(context, plan, by_statistics=self.settings.skips_by_statistics)
        hides = self.command.deletion_vectors and uses_deletion_vectors(context.statement.config)
        infers_deletes = hides and self.command.infers_deletes
        split = plan_split(
            plan,
            positions,
            root_uri=snapshot.root_uri,
            keeping=self._keeping(hides=hides, infers_deletes=infers_deletes),
        )
        now_ms = wall_clock()
        removes = tuple(remove_file(add, deleted_ms=now_ms) for add in split.touched)
        # A table that only takes appends refuses here, before files are written (M-111).
        require_valid_actions(removes, before=snapshot.config, after=context.statement.config)
        changes = plan_changes(context, positions, infers_deletes=infers_deletes)
        scan_ms, rewriting = ms_since(scanning), time.monotonic()
        files = StatementFiles(
            context,
            rebalance=self.settings.rebalance,
            collects_statistics=self.settings.collects_statistics,
            codec=self.settings.codec,
        )
        try:
            files.write(plan, positions, changes, split)
            context.source.require_unchanged()
            rewrite_ms = 0 if changes.is_empty and not split.touched else ms_since(rewriting)
            rows = self._count_rows(positions, changes, files)
            times = PhaseTimes(
                execution_ms=ms_since(self.started),
                materialize_source_ms=self.staged_ms,
                scan_ms=scan_ms,
                rewrite_ms=rewrite_ms,
            )
            actions: tuple[Action, ...] = (
                *removes,
                *files.vectors.adds,
                *files.adds,
                *files.written.changes,
            )
            if self.settings.checks_row_counts:
                self._require_sound(rows, actions)
            after = with_generated_identities(
                context.statement,
                context.source,
                files.written.adds,
                num_inserted=rows.inserted,
            )
            actions = (*_table_changes(snapshot.config, after), *actions)
        except BaseException:
            files.discard()
            raise
        metrics = self.command.metrics(rows, files.counts(removes), times)
        tags = identity_tags(snapshot.config, after)
        marks = self.command.marks_always and self.settings.marker is not None
        due = actions or marks or not self.settings.skips_empty_commits
        version = self._commit(actions, metrics, files, tags) if due else None
        return Outcome(version=version, rows=rows, metrics=metrics, plan=plan)

    def _keeping(self, *, hides: bool, infers_deletes: bool) -> RewriteStrategy:
        """Choose how untouched rows are kept; readers of the feed see no delete in a copy."""
        if not hides:
            return RewriteStrategy.COPY_ON_WRITE
        told_by_vectors = infers_deletes and records_changes(self.context.statement.config)
        return RewriteStrategy.DELETION_VECTORS if told_by_vectors else RewriteStrategy.PER_FILE

    def _require_sound(self, rows: RowCounts, actions: tuple[Action, ...]) -> None:
        statement = self.context.statement
        require_row_counts(
            self.command.name,
            rows.changes,
            count_file_rows(actions),
            may_insert=bool(statement.not_matched),
            may_delete=any(isinstance(c.action, ResolvedDelete) for c in statement.clauses),
        )

    def _commit(
        self,
        actions: tuple[Action, ...],
        metrics: Mapping[str, int],
        files: StatementFiles,
        tags: Mapping[str, str] | None,
    ) -> int:
        marker = self.settings.marker
        with discarded_on_failure(files.discard):
            committed = self.transaction.commit(
                actions if marker is None else (*actions, marker),
                self.command.operation,
                metrics=metrics if self.settings.records_metrics else None,
                is_blind_append=False,
                user_metadata=self.settings.user_metadata,
                tags=self._tags(tags),
            )
        return committed.version

    def _tags(self, given: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Say that rows kept their ids, if the table tracks rows (M-110)."""
        if self.context.tracked is None:
            return given
        return {**(given or {}), PRESERVED_TAG: "true"}

    def _count_rows(
        self, positions: RowPositions, changes: ChangePlan, files: StatementFiles
    ) -> RowCounts:
        """Compare the rows that were written with those that should be, and count fates.

        Raises:
            DeltaError: they differ (DELTA_NUM_RECORDS_MISMATCH).
        """
        inserted = files.written.num_rows - changes.num_updates
        expected = changes.num_inserts
        if inserted < 0 or (expected is not None and inserted != expected):
            wanted = "any number of" if expected is None else expected
            raise DeltaError(
                f"{self.command.name} wrote {files.written.num_rows} rows where "
                f"{changes.num_updates} updates and {wanted} inserts were due. Nothing was "
                "committed. This is a bug.",
                code=ErrorCode.NUM_RECORDS_MISMATCH,
            )
        statement = self.context.statement
        by_source = statement.not_matched_by_source
        rows = RowCounts(
            source=self.context.source.num_rows,
            inserted=inserted,
            matched_updated=_fates(statement.matched, positions.matched, ResolvedUpdate),
            matched_deleted=_fates(statement.matched, positions.matched, ResolvedDelete),
            by_source_updated=_fates(by_source, positions.by_source, ResolvedUpdate),
            by_source_deleted=_fates(by_source, positions.by_source, ResolvedDelete),
            copied=files.copied.num_rows,
        )
        self._require_recorded(rows, changes, files)
        return rows

    def _require_recorded(
        self, rows: RowCounts, changes: ChangePlan, files: StatementFiles
    ) -> None:
        """Compare the change rows that were written with those that should be (M-121)."""
        due = 2 * rows.updated + rows.deleted + rows.inserted if changes.recorded else 0
        if files.written.num_changes != due:
            raise DeltaError(
                f"{self.command.name} wrote {files.written.num_changes} change rows where {due} "
                "were due. Nothing was committed. This is a bug.",
                code=ErrorCode.NUM_RECORDS_MISMATCH,
            )


def _require_free_names(before: TableConfig, after: TableConfig) -> None:
    """Refuse columns whose names the change data feed needs, before anything is written."""
    if records_changes(after):
        require_no_change_columns(after.schema.names, was_enabled=records_changes(before))


def _table_changes(before: TableConfig, after: TableConfig) -> tuple[Action, ...]:
    """Return what an evolved schema adds to the commit, even if no row changes (M-57)."""
    return (
        *((after.protocol,) if after.protocol != before.protocol else ()),
        *((after.metadata,) if after.metadata != before.metadata else ()),
    )


def _fates(
    clauses: Sequence[MatchedClause | NotMatchedBySourceClause],
    sets: Sequence[RowsByFile],
    kind: type,
) -> int:
    """Count the rows for which clauses with actions of one kind fired."""
    return sum(
        count_rows(rows.values())
        for clause, rows in zip(clauses, sets, strict=True)
        if isinstance(clause.action, kind)
    )
