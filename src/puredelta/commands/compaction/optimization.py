"""Files of a snapshot, in bins, rewritten and committed without a change of any row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow.compute as pc

from puredelta.commands.cleanup import discarded_on_failure
from puredelta.commands.command import Command
from puredelta.commands.compaction.metrics import OptimizeOutcome, operation_metrics
from puredelta.commands.finish import finish
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.commit.row_ids import PRESERVED_TAG
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.row_counts import logical_rows
from puredelta.log.files.tombstones import remove_file
from puredelta.log.maintenance.file_bins import Bin
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Remove
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.properties import ALL_COLUMNS_INDEXED
from puredelta.protocol.table.clustering import CLUSTERING
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.protocol.values.predicates import FALSE
from puredelta.spark.session import delta_conf
from puredelta.spark.write.bin_rewrite import rewrite_bins
from puredelta.spark.write.written_files import WriteResult, discard
from puredelta.spark.write.z_order import ZOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """Files of one snapshot that are to be rewritten, and the operation for the history."""

    command: Command
    bins: tuple[Bin, ...]
    operation: Operation
    num_considered: int
    z_order: ZOrder | None = None

    def run(self) -> OptimizeOutcome:
        """Write the files and commit them in the place of the old ones, if there are any.

        Appends of other writers never conflict; a writer that deletes one of the files first wins.

        Raises:
            ConflictError: a file is gone, or the table is another one.
            DeltaError: the storage refused, or rows were lost on the way. Nothing is left.
            UnsupportedError: the table has a feature that this library cannot write.
        """
        command = self.command
        started_ms = command.clock()
        if not self.bins:
            return self._outcome(None, WriteResult.nothing(), (), started_ms)
        settings, store = command.session.settings, command.log.store
        written = rewrite_bins(
            command.spark,
            store,
            command.snapshot,
            self.bins,
            z_order=self.z_order,
            collects_statistics=delta_conf.STATS_COLLECT.flag(settings),
        )
        written = replace(
            written, adds=tuple(replace(add, data_change=False) for add in written.adds)
        )
        discard_files = partial(discard, written, store)
        if delta_conf.NUM_RECORDS_VALIDATION.flag(settings):
            with discarded_on_failure(discard_files):
                _require_all_rows(self.bins, written)
        old = [add for each in self.bins for add in each.files]
        removes = tuple(remove_file(add, data_change=False) for add in old)
        command.transaction.read_files(FALSE, FileTable.of(old))
        request = CommitRequest(
            actions=(*written.adds, *removes),
            operation=self.operation,
            metrics=operation_metrics(written.adds, removes),
            is_blind_append=False,
            tags=self._tags(),
        )
        committed = finish(command, request, discard=discard_files)
        return self._outcome(committed.version, written, removes, started_ms)

    def _tags(self) -> dict[str, str] | None:
        """Say that rows kept their ids, if the table tracks rows (M-110)."""
        return (
            None
            if tracked_columns(self.command.snapshot.config) is None
            else {PRESERVED_TAG: "true"}
        )

    def _outcome(
        self,
        version: int | None,
        written: WriteResult,
        removes: tuple[Remove, ...],
        started_ms: int,
    ) -> OptimizeOutcome:
        config = self.command.snapshot.config
        num_columns = len(config.schema.fields)
        indexed = config.properties.data_skipping_indexed_cols
        return OptimizeOutcome(
            root_uri=self.command.log.root_uri,
            version=version,
            bins=self.bins,
            added=written.adds,
            removed=removes,
            num_considered=self.num_considered,
            is_z_order=self.z_order is not None and bool(self.bins),
            num_columns=num_columns,
            num_columns_with_statistics=num_columns
            if indexed == ALL_COLUMNS_INDEXED
            else min(indexed, num_columns),
            started_ms=started_ms,
        )


def compactable_files(snapshot: Snapshot, files: FileTable) -> FileTable:
    """Leave out files that an engine has clustered: combining them would undo that."""
    if not snapshot.config.supports(CLUSTERING):
        return files
    return files.select(pc.is_null(files.rows["clustering_provider"]))


def _require_all_rows(bins: Sequence[Bin], written: WriteResult) -> None:
    """Refuse other rows than the files have, where the log knows their number."""
    counts = [logical_rows(add) for each in bins for add in each.files]
    known = [count for count in counts if count is not None]
    if len(known) == len(counts) and sum(known) != written.num_rows:
        raise DeltaError(
            f"OPTIMIZE wrote {written.num_rows} rows of files that hold {sum(known)} by their "
            "statistics. Nothing was committed. The statistics are wrong, or this is a bug.",
            code=ErrorCode.NUM_RECORDS_MISMATCH,
        )
