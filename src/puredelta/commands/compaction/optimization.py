"""Files of a snapshot, in bins, rewritten and committed without a change of any row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from puredelta.log.maintenance.clustering_plan import ClusteringPlan
from puredelta.log.maintenance.file_bins import Bin
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.properties import ALL_COLUMNS_INDEXED
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.protocol.table.stats import without_statistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.table.z_cubes import LIQUID, ZCube
from puredelta.protocol.values.predicates import FALSE
from puredelta.spark.session import delta_conf
from puredelta.spark.write.bin_rewrite import rewrite_bins
from puredelta.spark.write.curve_order import CurveOrder
from puredelta.spark.write.written_files import WriteResult, discard
from puredelta.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """Files of one snapshot that are to be rewritten, and the operation for the history."""

    command: Command
    bins: tuple[Bin, ...]
    operation: Operation
    num_considered: int
    order: CurveOrder | None = None
    clustering: ClusteringPlan | None = None
    """Then every bin becomes a cube."""

    def describe(self) -> str:
        """Return one line for the log."""
        num_files = sum(len(each.files) for each in self.bins)
        return f"{num_files} of {self.num_considered} files in {len(self.bins)} bins"

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
            return self._outcome(None, (), (), started_ms)
        written: list[WriteResult] = []
        discard_files = partial(_discard_all, written, command.log.store)
        with discarded_on_failure(discard_files):
            adds = tuple(self._written_to(written))
            if delta_conf.NUM_RECORDS_VALIDATION.flag(command.session.settings):
                require_all_rows(self.bins, written)
        old = [add for each in self.bins for add in each.files]
        removes = tuple(remove_file(add, data_change=False) for add in old)
        command.transaction.read_files(FALSE, FileTable.of(old))
        request = CommitRequest(
            actions=(*adds, *removes),
            operation=self.operation,
            metrics=operation_metrics(adds, removes),
            is_blind_append=False,
            tags=self._tags(),
        )
        committed = finish(command, request, discard=discard_files)
        return self._outcome(committed.version, adds, removes, started_ms)

    def _written_to(self, results: list[WriteResult]) -> Iterator[Add]:
        """Write all bins at once, or every cube by itself, and yield the new files."""
        groups = [self.bins] if self.clustering is None else [(each,) for each in self.bins]
        for bins in groups:
            result = rewrite_bins(
                self.command.spark,
                self.command.log.store,
                self.command.snapshot,
                bins,
                order=self.order,
                into=described_as_wanted(self.command, self.command.snapshot.config),
            )
            results.append(result)
            yield from self._marked(result.adds)

    def _marked(self, adds: Sequence[Add]) -> Iterator[Add]:
        plan, new_id = self.clustering, self.command.environment.new_id
        cube = None if plan is None else ZCube(id=new_id(), columns=plan.columns)
        for add in adds:
            if cube is None:
                yield replace(add, data_change=False)
            else:
                tags = {**(add.tags or {}), **cube.tags}
                yield replace(add, data_change=False, tags=tags, clustering_provider=LIQUID)

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
        adds: tuple[Add, ...],
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
            added=adds,
            removed=removes,
            num_partitions=self._num_partitions(),
            num_considered=self.num_considered,
            is_z_order=self.order is not None and self.clustering is None and bool(self.bins),
            clustering=self.clustering,
            num_columns=num_columns,
            num_columns_with_statistics=num_columns
            if indexed == ALL_COLUMNS_INDEXED
            else min(indexed, num_columns),
            started_ms=started_ms,
        )

    def _num_partitions(self) -> int:
        partitioning = Partitioning.of(self.command.snapshot.config, self.command.session.time_zone)
        return len({partitioning.key(each.files[0].partition_values) for each in self.bins})


def described_as_wanted(command: Command, config: TableConfig) -> TableConfig:
    """Return a table whose new files get statistics if the session wants them."""
    collects = delta_conf.STATS_COLLECT.flag(command.session.settings)
    return config if collects else without_statistics(config)


def compactable_files(snapshot: Snapshot, files: FileTable) -> FileTable:
    """Leave out files that were clustered: combining them would undo that.

    A table that is no longer clustered (``CLUSTER BY NONE``) has nothing to undo.
    """
    if not clustering_columns(snapshot.config, snapshot.domain_metadata):
        return files
    return files.select(pc.is_null(files.rows["clustering_provider"]))


def _discard_all(results: Sequence[WriteResult], store: Store) -> None:
    for result in results:
        discard(result, store)


def require_all_rows(bins: Sequence[Bin], written: Sequence[WriteResult]) -> None:
    """Refuse other rows than the files have, where the log knows their number."""
    counts = [logical_rows(add) for each in bins for add in each.files]
    known = [count for count in counts if count is not None]
    num_rows = sum(result.num_rows for result in written)
    if len(known) == len(counts) and sum(known) != num_rows:
        raise DeltaError(
            f"OPTIMIZE wrote {num_rows} rows of files that hold {sum(known)} by their "
            "statistics. Nothing was committed. The statistics are wrong, or this is a bug.",
            code=ErrorCode.NUM_RECORDS_MISMATCH,
        )
