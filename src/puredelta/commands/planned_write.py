"""A write that has been decided: one Spark job, one commit.

The job writes files nobody sees yet, the commit makes them the table. If anything fails, the
files are removed and the table is what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from puredelta.commands.committing import discarded_on_failure
from puredelta.commands.engine import engine_info
from puredelta.commands.identity_marks import identity_tags
from puredelta.commands.optimize.auto import compact_after
from puredelta.commands.overwritten import (
    only_where,
    partition_predicate,
    partitions_of,
    resolve_replaced,
)
from puredelta.commands.replace_where import Replacement, replace_rows
from puredelta.commands.row_changes.run import already_committed
from puredelta.commands.write_columns import complete_rows
from puredelta.commands.write_options import SaveMode, WriteOptions
from puredelta.log.commit.transaction import IfCreated, Transaction
from puredelta.log.files.clock import wall_clock
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.tombstones import remove_file
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, DomainMetadata, Remove
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.actions.table_operations import STREAMING_UPDATE
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.stats import without_statistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.cached_frames import refresh_cached_frames
from puredelta.spark.write.writer import write_rows
from puredelta.spark.write.written_files import WriteResult, discard


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What a write did."""

    version: int | None
    """The version it made; None if there was nothing to do."""
    num_files: int = 0
    num_rows: int = 0
    size_bytes: int = 0
    num_removed_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """A write that is allowed: nothing has been changed yet."""

    rows: DataFrame
    log: TableLog
    snapshot: Snapshot | None
    config: TableConfig
    """The table after the write, but for high water marks."""
    mode: SaveMode
    options: WriteOptions
    operation: Operation
    """What the history is to say."""
    domains: tuple[DomainMetadata, ...] = ()
    """Set by this write, too."""

    def run(self) -> WriteOutcome:
        """Write the files and commit them; high water marks of identity columns move.

        Raises:
            InvalidRequestError: a row breaks a rule of the table or of ``replaceWhere``.
            ConflictError: another writer changed what this write relies on.
            DeltaError: the storage refused (WRITE_FAILED).
        """
        spark = self.rows.sparkSession
        settings = self.options.settings
        capability = Capability.OVERWRITE if self.overwrites else Capability.APPEND
        self.config.require(capability)
        transaction = Transaction(
            self.log, self.snapshot, engine_info=engine_info(spark), capability=capability
        )
        if already_committed(transaction, settings.marker):
            outcome = WriteOutcome(version=None)
        else:
            outcome = self._replace(transaction)
        settings.reset_marker(spark)
        return outcome

    @property
    def overwrites(self) -> bool:
        """Whether anything is replaced."""
        return self.mode is SaveMode.OVERWRITE

    @property
    def replaces_partitions(self) -> bool:
        """Whether the partitions of the new rows are; a table without any is replaced whole."""
        partitioned = bool(self.config.partition_columns)
        return self.overwrites and self.options.replaces_partitions and partitioned

    def _replace(self, transaction: Transaction) -> WriteOutcome:
        """Find out what goes, as far as that is known before the new rows are."""
        where = self.options.replace_where if self.overwrites else None
        snapshot = self.snapshot
        if where is not None:
            replaced = resolve_replaced(self.rows.sparkSession, where, self.config)
            if snapshot is None:
                return self._commit_rows(transaction, None, where=where)
            if not replaced.goes_by_file(self.config):
                return self._replace_rows(transaction, snapshot, where)
            files = replaced.files(self.rows.sparkSession, snapshot)
            transaction.read_files(replaced.predicate, files)
            return self._commit_rows(transaction, files, where=where)
        if snapshot is None or not self.overwrites or self.replaces_partitions:
            return self._commit_rows(transaction, None)
        transaction.read_files(None, snapshot.files)
        return self._commit_rows(transaction, snapshot.files)

    def _commit_rows(
        self, transaction: Transaction, replaced: FileTable | None, *, where: str | None = None
    ) -> WriteOutcome:
        settings, store = self.options.settings, self.log.store
        complete = complete_rows(self.rows, self.config, store=store)
        config = self.config if settings.collects_statistics else without_statistics(self.config)
        try:
            rows = self._checked(complete.rows, where)
            written = write_rows(rows, store=store, config=config)
        finally:
            complete.remove(store)
        with discarded_on_failure(partial(discard, written, store)):
            if self.replaces_partitions and self.snapshot is not None:
                replaced = partitions_of(written.adds, self.snapshot.files, self.config)
                predicate = partition_predicate(written.adds, self.config)
                transaction.read_files(predicate, replaced)
            more = {} if where is None else _replaced_metrics(replaced)
            outcome = self._commit(transaction, written, _removes(replaced), complete.config, more)
        if outcome.version is not None:
            compact_after(self.rows.sparkSession, self.log, outcome.version, self.config)
        return outcome

    def _commit(
        self,
        transaction: Transaction,
        written: WriteResult,
        removes: Sequence[Remove],
        after: TableConfig,
        more_metrics: Mapping[str, int | str],
    ) -> WriteOutcome:
        settings = self.options.settings
        marker = () if settings.marker is None else (settings.marker,)
        actions: list[Action] = [
            *_table_actions(self.snapshot, after),
            *self.domains,
            *written.adds,
            *removes,
            *marker,
        ]
        if not actions:
            return WriteOutcome(version=None)
        committed = transaction.commit(
            actions,
            self.operation,
            metrics={**self._metrics(written, removes), **more_metrics}
            if settings.records_metrics
            else None,
            is_blind_append=False if self.overwrites else None,
            user_metadata=settings.user_metadata,
            tags=None if self.snapshot is None else identity_tags(self.snapshot.config, after),
            if_created=IfCreated.APPEND if self.mode is SaveMode.APPEND else IfCreated.FAIL,
        )
        refresh_cached_frames(self.rows.sparkSession, self.log)
        return WriteOutcome(
            version=committed.version,
            num_files=len(written.adds),
            num_rows=written.num_rows,
            size_bytes=written.size_bytes,
            num_removed_files=len(removes),
        )

    def _metrics(self, written: WriteResult, removes: Sequence[Remove]) -> dict[str, int | str]:
        if self.operation.name == STREAMING_UPDATE:
            return _streamed_metrics(written, removes)
        return _metrics(written, removes, overwrites=self.overwrites)

    def _replace_rows(
        self, transaction: Transaction, snapshot: Snapshot, where: str
    ) -> WriteOutcome:
        """Replace rows of a condition that files do not decide: they are split."""
        replacement = Replacement(
            rows=self._checked(self.rows, where),
            where=where,
            evolves=self.config is not snapshot.config,
            operation=self.operation,
        )
        outcome = replace_rows(
            replacement,
            log=self.log,
            snapshot=snapshot,
            transaction=transaction,
            settings=self.options.settings,
        )
        return WriteOutcome(
            version=outcome.version,
            num_files=outcome.metrics["numFiles"],
            num_rows=outcome.rows.inserted,
            size_bytes=outcome.metrics["numOutputBytes"],
            num_removed_files=outcome.metrics["numRemovedFiles"],
        )

    def _checked(self, rows: DataFrame, where: str | None) -> DataFrame:
        if where is None or not self.options.checks_replaced:
            return rows
        return only_where(rows, where)


def _removes(files: FileTable | None) -> list[Remove]:
    now_ms = wall_clock()
    return [] if files is None else [remove_file(a, deleted_ms=now_ms) for a in files.adds()]


def _table_actions(snapshot: Snapshot | None, config: TableConfig) -> list[Action]:
    """Return the metadata and protocol that this write changes or creates."""
    old = None if snapshot is None else snapshot.config
    actions: list[Action] = []
    if old is None or old.metadata != config.metadata:
        actions.append(config.metadata)
    if old is None or old.protocol != config.protocol:
        actions.append(config.protocol)
    return actions


def _metrics(
    written: WriteResult, removes: Sequence[Remove], *, overwrites: bool
) -> dict[str, int | str]:
    metrics: dict[str, int | str] = {"numFiles": len(written.adds)}
    if overwrites:
        metrics["numRemovedFiles"] = len(removes)
        metrics["numRemovedBytes"] = sum(remove.size_bytes or 0 for remove in removes)
    metrics["numOutputRows"] = written.num_rows
    metrics["numOutputBytes"] = written.size_bytes
    return metrics


def _streamed_metrics(written: WriteResult, removes: Sequence[Remove]) -> dict[str, int | str]:
    """Return what is counted of a batch of a stream."""
    return {
        "numAddedFiles": len(written.adds),
        "numRemovedFiles": len(removes),
        "numOutputRows": written.num_rows,
        "numOutputBytes": written.size_bytes,
    }


def _replaced_metrics(replaced: FileTable | None) -> dict[str, int | str]:
    """Return what is counted, too, where the files of a condition are replaced."""
    deleted = 0 if replaced is None else replaced.num_records()
    counted = {} if deleted is None else {"numDeletedRows": deleted}
    return {"numCopiedRows": 0, "numAddedChangeFiles": 0, **counted}
