"""Compaction: files of a snapshot rewritten in bins, for OPTIMIZE and after a commit.

A failed compaction after a commit leaves that commit valid; the next commit tries again.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command, PostCommitHook, next_command
from puredelta.commands.file_options import parse_bytes
from puredelta.commands.finish import discarded_on_failure, finish, remove_quietly
from puredelta.errors import DeltaError, InvalidRequestError, Message
from puredelta.log.commit.commit_request import CommitRequest, Committed, changed_definition
from puredelta.log.commit.row_ids import PRESERVED_TAG
from puredelta.log.commit.row_places import row_order_tag
from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.files.row_counts import logical_rows
from puredelta.log.maintenance.compaction_plan import (
    Bin,
    BinLimits,
    ClusteringPlan,
    ClusterLimits,
    plan_compaction,
)
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.actions.operations import Operation, optimize
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ALL_COLUMNS_INDEXED, TableProperties
from puredelta.protocol.schema.predicates import FALSE
from puredelta.protocol.table.clustering import LIQUID, ZCube, clustering_columns
from puredelta.protocol.table.partitioning import Partitioning, PartitionKey
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.protocol.table.stats import without_statistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.rewrite import ArrowRewriter, RewriteOrder
from puredelta.spark.offload.workers import WorkerSettings
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import DeltaConf
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import NotApplicable, parallelism
from puredelta.spark.session.types import quoted, quoted_text
from puredelta.spark.write.bin_rewrite import BinOptions, rewrite_bins
from puredelta.spark.write.parquet_job import FileOptions
from puredelta.spark.write.writer_settings import WriterSettings
from puredelta.spark.write.written_files import discard
from puredelta.spark.write.zorder_curves import CurveOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSettings:
    """Settings of an OPTIMIZE statement."""

    limits: BinLimits
    cubes: ClusterLimits
    checks_statistics: bool
    """``optimize.zorder.checkStatsCollection.enabled``."""

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> OptimizeSettings:
        """Parse the settings from text by key; a missing key means the default."""
        max_file_size = _size(delta_conf.OPTIMIZE_MAX_FILE_SIZE, settings)
        return cls(
            cubes=ClusterLimits(
                min_cube_size=_size(delta_conf.CLUSTERING_MIN_CUBE_SIZE, settings, least=0),
                target_cube_size=_size(delta_conf.CLUSTERING_TARGET_CUBE_SIZE, settings, least=0),
                max_file_size=max_file_size,
            ),
            limits=BinLimits(
                min_file_size=_size(delta_conf.OPTIMIZE_MIN_FILE_SIZE, settings),
                max_file_size=max_file_size,
                max_deleted_rows_ratio=_share(delta_conf.OPTIMIZE_MAX_DELETED_RATIO, settings),
            ),
            checks_statistics=delta_conf.Z_ORDER_STATS_CHECK.flag(settings),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoCompactSettings:
    """Settings of the compaction after a commit: its thresholds and its scope."""

    limits: BinLimits
    min_num_files: int
    """``autoCompact.minNumFiles``: a partition with fewer small files is not compacted."""
    changed_partitions_only: bool
    """``autoCompact.modifiedPartitionsOnly.enabled``."""
    max_num_partitions: int
    """``autoCompact.maxNumModifiedPartitions``: so many of those that the commit added to."""
    skips_blind_appends: bool
    """``autoCompact.nonBlindAppend.enabled``."""

    @classmethod
    def parse(
        cls, settings: Mapping[str, str], properties: TableProperties
    ) -> AutoCompactSettings | None:
        """Parse the settings; ``None`` where neither session nor table enables compaction."""
        if not _is_enabled(settings, properties):
            return None
        max_file_size = _size(delta_conf.AUTO_COMPACT_MAX_FILE_SIZE, settings)
        smallest = delta_conf.AUTO_COMPACT_MIN_FILE_SIZE
        given = smallest.text(settings)
        return cls(
            limits=BinLimits(
                min_file_size=max_file_size // 2 if given is None else _size(smallest, settings),
                max_file_size=max_file_size,
                max_deleted_rows_ratio=_share(delta_conf.OPTIMIZE_MAX_DELETED_RATIO, settings),
            ),
            min_num_files=_size(delta_conf.AUTO_COMPACT_MIN_FILES, settings),
            changed_partitions_only=delta_conf.AUTO_COMPACT_CHANGED_ONLY.flag(settings),
            max_num_partitions=_size(delta_conf.AUTO_COMPACT_MAX_PARTITIONS, settings),
            skips_blind_appends=delta_conf.AUTO_COMPACT_NOT_BLIND.flag(settings),
        )


def _is_enabled(settings: Mapping[str, str], properties: TableProperties) -> bool:
    """Return the setting of the session, else the older, else the newer property of the table."""
    legacy = properties.configuration.get("delta.autoOptimize", "")
    wish = delta_conf.AUTO_COMPACT.text(settings)
    if wish is None and legacy.strip().lower() == "true":
        return True
    return (wish or properties.auto_compact or "").strip().lower() == "true"


def _size(conf: DeltaConf, settings: Mapping[str, str], *, least: int = 1) -> int:
    value = parse_bytes(conf.text(settings) or "")
    if value < least:
        need = f"needs to be a whole number of bytes, at least {least}, such as 128mb"
        raise _invalid(conf, settings, need)
    return value


def _share(conf: DeltaConf, settings: Mapping[str, str]) -> float:
    try:
        value = float(conf.text(settings) or "")
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise _invalid(conf, settings, "needs to be a number from 0 to 1")
    return value


def _invalid(conf: DeltaConf, settings: Mapping[str, str], need: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.INVALID_WRITE_OPTION_OPTIMIZE_SETTING,
        value_shown=conf.text(settings),
        need=need,
        setting=conf.key,
    )


_SIZES = """STRUCT<min: BIGINT, max: BIGINT, avg: DOUBLE NOT NULL,
    totalFiles: BIGINT NOT NULL, totalSize: BIGINT NOT NULL>"""
_CUBE = "STRUCT<num: BIGINT NOT NULL, size: BIGINT NOT NULL>"
_Z_CUBE = "STRUCT<numFiles: BIGINT NOT NULL, size: BIGINT NOT NULL>"
_SCHEMA = f"""path STRING, metrics STRUCT<
    numFilesAdded: BIGINT NOT NULL, numFilesRemoved: BIGINT NOT NULL,
    filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: BIGINT NOT NULL,
    zOrderStats: STRUCT<strategyName: STRING, inputCubeFiles: {_CUBE}, inputOtherFiles: {_CUBE},
        inputNumCubes: BIGINT NOT NULL, mergedFiles: {_CUBE}, numOutputCubes: BIGINT NOT NULL,
        mergedNumCubes: BIGINT>,
    clusteringStats: STRUCT<inputZCubeFiles: {_Z_CUBE}, inputOtherFiles: {_Z_CUBE},
        inputNumZCubes: BIGINT NOT NULL, mergedFiles: {_Z_CUBE},
        numOutputZCubes: BIGINT NOT NULL>,
    numBins: BIGINT NOT NULL, numBatches: BIGINT NOT NULL,
    totalConsideredFiles: BIGINT NOT NULL, totalFilesSkipped: BIGINT NOT NULL,
    preserveInsertionOrder: BOOLEAN NOT NULL,
    numFilesSkippedToReduceWriteAmplification: BIGINT NOT NULL,
    numBytesSkippedToReduceWriteAmplification: BIGINT NOT NULL,
    startTimeMs: BIGINT NOT NULL, endTimeMs: BIGINT NOT NULL,
    totalClusterParallelism: BIGINT NOT NULL, totalScheduledTasks: BIGINT NOT NULL,
    autoCompactParallelismStats: STRUCT<maxClusterActiveParallelism: BIGINT,
        minClusterActiveParallelism: BIGINT, maxSessionActiveParallelism: BIGINT,
        minSessionActiveParallelism: BIGINT>,
    deletionVectorStats: STRUCT<numDeletionVectorsRemoved: BIGINT NOT NULL,
        numDeletionVectorRowsRemoved: BIGINT NOT NULL>,
    numTableColumns: BIGINT NOT NULL, numTableColumnsWithStats: BIGINT NOT NULL>"""


_TASK = re.compile(r"part-(\d+)-")
"""The number of the task of Spark that wrote a file: its bin's, among those left to Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeOutcome:
    """The result of an OPTIMIZE."""

    root_uri: str
    version: int | None
    """The version committed; ``None`` if there was nothing to do."""
    bins: tuple[Bin, ...]
    added: tuple[Add, ...]
    removed: tuple[Remove, ...]
    num_partitions: int
    """Of the files in ``bins``."""
    num_considered: int
    """Files that were eligible for a rewrite."""
    num_combined: int
    """Bins whose files workers combined; Spark wrote the others."""
    copied_groups: int
    """Row groups that workers copied as bytes."""
    is_z_order: bool
    clustering: ClusteringPlan | None
    num_columns: int
    num_columns_with_statistics: int
    started_ms: int

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{len(self.removed)} files became {len(self.added)}"

    def row(self, spark: SparkSession) -> DataFrame:
        """Return delta-spark's one row ``path, metrics``.

        Values that delta-spark leaves at 0 (``endTimeMs``, ``totalScheduledTasks``) are 0 here.
        """
        vectors = [r.deletion_vector for r in self.removed if r.deletion_vector is not None]
        metrics: dict[str, Any] = {
            "numFilesAdded": len(self.added),
            "numFilesRemoved": len(self.removed),
            "filesAdded": _sizes([add.size_bytes for add in self.added]),
            "filesRemoved": _sizes([remove.size_bytes or 0 for remove in self.removed]),
            "partitionsOptimized": self.num_partitions,
            "zOrderStats": self._z_order() if self.is_z_order else None,
            "clusteringStats": self._clustered(self.clustering) if self.clustering else None,
            "numBins": len(self.bins),
            "numBatches": 1,
            "totalConsideredFiles": self.num_considered,
            "totalFilesSkipped": self.num_considered - len(self.removed),
            "preserveInsertionOrder": False,
            "numFilesSkippedToReduceWriteAmplification": 0,
            "numBytesSkippedToReduceWriteAmplification": 0,
            "startTimeMs": self.started_ms,
            "endTimeMs": 0,
            "totalClusterParallelism": parallelism(spark),
            "totalScheduledTasks": 0,
            "autoCompactParallelismStats": None,
            "deletionVectorStats": {
                "numDeletionVectorsRemoved": len(vectors),
                "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
            }
            if vectors
            else None,
            "numTableColumns": self.num_columns,
            "numTableColumnsWithStats": self.num_columns_with_statistics,
        }
        return spark.createDataFrame([(self.root_uri, metrics)], _SCHEMA)

    def _z_order(self) -> dict[str, Any]:
        files = {"num": len(self.removed), "size": sum(r.size_bytes or 0 for r in self.removed)}
        return {
            "strategyName": "all",
            "inputCubeFiles": {"num": 0, "size": 0},
            "inputOtherFiles": files,
            "inputNumCubes": 0,
            "mergedFiles": files,
            "numOutputCubes": len(self.bins),
            "mergedNumCubes": None,
        }

    def _clustered(self, plan: ClusteringPlan) -> dict[str, Any]:
        return {
            "inputZCubeFiles": _files(plan.clustered),
            "inputOtherFiles": _files(plan.others),
            "inputNumZCubes": plan.num_cubes,
            "mergedFiles": _files(plan.files),
            "numOutputZCubes": len(self.bins),
        }


def _files(adds: Sequence[Add]) -> dict[str, int]:
    return {"numFiles": len(adds), "size": sum(add.size_bytes for add in adds)}


def operation_metrics(added: Sequence[Add], removed: Sequence[Remove]) -> dict[str, int]:
    """Return the operation metrics of an OPTIMIZE; quartiles as delta-spark picks them."""
    sizes = sorted(add.size_bytes for add in added) or [0]
    return {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(remove.size_bytes or 0 for remove in removed),
        "numAddedFiles": len(added),
        "numAddedBytes": sum(add.size_bytes for add in added),
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
        "numDeletionVectorsRemoved": sum(r.deletion_vector is not None for r in removed),
    }


def _sizes(sizes: Sequence[int]) -> dict[str, Any]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """New files, and where their rows come from."""

    adds: tuple[Add, ...]
    num_rows: int
    bins: tuple[int | None, ...]
    """For each file the number of its bin; None: not known."""
    num_combined: int = 0
    """Bins that workers wrote."""
    copied_groups: int = 0


_COMBINED_FILES_MAX = 400
"""A worker has the files of a bin open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """The files of one snapshot to rewrite, and the operation for the history."""

    command: Command
    bins: tuple[Bin, ...]
    operation: Operation
    num_considered: int
    order: CurveOrder | None = None
    clustering: ClusteringPlan | None = None
    """If set, every bin becomes a Z-cube."""
    definition: TableConfig | None = None
    """The table after the commit, if the commit changes its properties, too."""
    combines: bool = False
    """Whether new files may hold the types that the old ones hold, where columns were widened."""

    def describe(self) -> str:
        """Return one line for the log."""
        num_files = sum(len(each.files) for each in self.bins)
        return f"{num_files} of {self.num_considered} files in {len(self.bins)} bins"

    def run(self) -> OptimizeOutcome:
        """Write new files and commit them in the place of the old ones, if there are any.

        Appends of other writers never conflict; a writer that deletes one of the files first wins.
        """
        command = self.command
        started_ms = command.clock()
        if not self.bins and self.definition is None:
            return self._outcome(None, (), (), (), started_ms)
        cleanups: list[Callable[[], None]] = []
        discard_files = partial(_run_all, cleanups)
        with discarded_on_failure(discard_files):
            written = list(self._written(cleanups))
            if delta_conf.NUM_RECORDS_VALIDATION.flag(command.session.settings):
                require_all_rows(self.bins, sum(one.num_rows for one in written))
        in_order = None if self.definition is not None else self._in_bin_order(written)
        adds = in_order or tuple(add for one in written for add in one.adds)
        order_tag = row_order_tag([len(each.files) for each in self.bins]) if in_order else {}
        old = [add for each in self.bins for add in each.files]
        removes = tuple(remove_file(add, data_change=False) for add in old)
        if self.definition is None:
            command.transaction.read_files(FALSE, FileTable.of(old))
        else:  # files that others add would be as the table was
            command.transaction.read_files(None, command.snapshot.files)
        request = CommitRequest(
            actions=(
                *changed_definition(command.snapshot.config, self._definition),
                *adds,
                *removes,
            ),
            operation=self.operation,
            metrics=operation_metrics(adds, removes),
            is_blind_append=False,
            tags={**self._tags(), **order_tag} or None,
        )
        committed = finish(command, request, discard=discard_files)
        return self._outcome(committed.version, written, adds, removes, started_ms)

    def _written(self, cleanups: list[Callable[[], None]]) -> Iterator[_Written]:
        """Write all bins at once, or every cube by itself, and yield the new files."""
        left = list(range(len(self.bins)))
        if self.combines and self.order is None:
            combined = self._combined(cleanups)
            left = [number for number in left if number not in combined]
            yield from combined.values()
        command = self.command
        writer = WriterSettings.parse(command.session.settings)
        options = BinOptions(
            order=self.order,
            into=described_as_wanted(command, self._definition),
            files=FileOptions(parquet=writer.options),
        )
        for numbers in filter(None, [left] if self.clustering is None else [[n] for n in left]):
            bins = [self.bins[number] for number in numbers]
            result = rewrite_bins(command.spark, command.log.store, command.snapshot, bins, options)
            cleanups.append(partial(discard, result, command.log.store))
            tasks = [_TASK.match(add.path.rpartition("/")[2]) for add in result.adds]
            yield _Written(
                adds=tuple(self._marked(result.adds)),
                num_rows=result.num_rows,
                bins=tuple(
                    numbers[int(task[1])] if task and int(task[1]) < len(numbers) else None
                    for task in tasks
                ),
            )

    def _combined(self, cleanups: list[Callable[[], None]]) -> dict[int, _Written]:
        """Let workers combine the files of bins, without a shuffle.

        Returns the new files by the number of their bin, without the bins that workers refuse.
        """
        command, snapshot = self.command, self.command.snapshot
        settings = command.session.settings
        rewriter = ArrowRewriter(
            spark=command.spark,
            store=command.log.store,
            config=described_as_wanted(command, snapshot.config),
            settings=WorkerSettings.parse(settings),
            writer=WriterSettings.of(command.spark, settings),
        )
        numbers = [n for n, one in enumerate(self.bins) if len(one.files) <= _COMBINED_FILES_MAX]
        files = FileTable.of(add for number in numbers for add in self.bins[number].files)
        deleted = read_positions(files, snapshot.root_uri, open_at=snapshot.open_at)
        places = itertools.count()
        groups = [
            [
                RewriteOrder(add=add, dropped=_positions(deleted.get(n)))
                for add, n in zip(self.bins[number].files, places, strict=False)
            ]
            for number in numbers
        ]
        cleanups.append(rewriter.discard)
        found: dict[int, _Written] = {}
        for number, done in zip(numbers, rewriter.combine(groups), strict=True):
            if isinstance(done, NotApplicable):
                logger.info("Spark combines the files of group %s: %s", number, done.reason)
                continue
            found[number] = _Written(
                adds=tuple(self._marked(done.adds)),
                num_rows=done.num_rows,
                bins=(number,) * len(done.adds),
                num_combined=1,
                copied_groups=done.copied_groups,
            )
        return found

    @property
    def _definition(self) -> TableConfig:
        return self.command.snapshot.config if self.definition is None else self.definition

    def _marked(self, adds: Sequence[Add]) -> Iterator[Add]:
        plan, new_id = self.clustering, self.command.environment.new_id
        cube = None if plan is None else ZCube(id=new_id(), columns=plan.columns)
        for add in adds:
            if cube is None:
                yield replace(add, data_change=False)
            else:
                tags = {**(add.tags or {}), **cube.tags}
                yield replace(add, data_change=False, tags=tags, clustering_provider=LIQUID)

    def _tags(self) -> dict[str, str]:
        """Return the tag for preserved row ids, if the table tracks rows (M-110)."""
        is_tracked = tracked_columns(self.command.snapshot.config) is not None
        return {PRESERVED_TAG: "true"} if is_tracked else {}

    def _in_bin_order(self, written: Sequence[_Written]) -> tuple[Add, ...] | None:
        """Return the new files by bin; None unless each has the rows of one bin in the old order.

        A bin is the work of one task; of Spark's, the name of a file has the number.
        """
        if self.order is not None or self.clustering is not None:
            return None
        pairs = [pair for one in written for pair in zip(one.bins, one.adds, strict=True)]
        by_bin = dict(pairs)
        numbers = range(len(self.bins))
        is_whole = len(pairs) == len(self.bins) and by_bin.keys() == set(numbers)
        return tuple(by_bin[number] for number in numbers) if is_whole else None

    def _outcome(
        self,
        version: int | None,
        written: Sequence[_Written],
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
            num_combined=sum(one.num_combined for one in written),
            copied_groups=sum(one.copied_groups for one in written),
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
    """Return the table with statistics for its new files if the session wants them."""
    collects = delta_conf.STATS_COLLECT.flag(command.session.settings)
    return config if collects else without_statistics(config)


def compactable_files(snapshot: Snapshot, files: FileTable) -> FileTable:
    """Exclude clustered files: combining them would undo the clustering.

    A table that is no longer clustered (``CLUSTER BY NONE``) has nothing to undo.
    """
    if not clustering_columns(snapshot.config, snapshot.domain_metadata):
        return files
    return files.select(pc.is_null(files.rows["clustering_provider"]))


def _positions(rows: npt.NDArray[np.integer] | None) -> RowBitmap:
    return RowBitmap.empty() if rows is None else RowBitmap.of_rows(rows)


def _run_all(cleanups: Sequence[Callable[[], None]]) -> None:
    for cleanup in cleanups:
        remove_quietly(cleanup)


def require_all_rows(bins: Sequence[Bin], num_rows: int) -> None:
    """Refuse a row count other than that of the files, where the log has it."""
    counts = [logical_rows(add) for each in bins for add in each.files]
    known = [count for count in counts if count is not None]
    if len(known) == len(counts) and sum(known) != num_rows:
        raise DeltaError(Message.NUM_RECORDS_MISMATCH_OPTIMIZE, num_rows=num_rows, known=sum(known))


logger = logging.getLogger(__name__)


def _compact(command: Command, committed: Committed) -> None:
    """Compact the partitions that a commit added files to, where session or table enable it.

    Runs nothing unless one of them has ``autoCompact.minNumFiles`` small files; then one Spark
    job and one separate commit.
    """
    settings = AutoCompactSettings.parse(command.session.settings, committed.config.properties)
    if settings is None or command.log.managed is not None:
        return
    zone = command.session.time_zone
    changed = added_partitions(
        (action for action in committed.actions if isinstance(action, Add)),
        Partitioning.of(committed.config, zone),
    )
    if not changed or (settings.skips_blind_appends and committed.info.is_blind_append):
        return
    following = next_command(command, Capability.MERGE)
    snapshot = following.snapshot
    files = compactable_files(snapshot, snapshot.files)
    small = files.select(pc.less(files.rows["size_bytes"], settings.limits.min_file_size))
    if len(small) < settings.min_num_files:
        return
    partitioning = Partitioning.of(snapshot.config, zone)
    wanted = partitions_over_threshold(small, partitioning, min_num_files=settings.min_num_files)
    if settings.changed_partitions_only:
        wanted = [key for key in wanted if key in changed][: settings.max_num_partitions]
    chosen = frozenset(wanted)
    mask = [key in chosen for key in files.partition_keys(partitioning)]
    considered = list(files.select(pa.array(mask, pa.bool_())).adds())
    bins = plan_compaction(considered, settings.limits, partitioning)
    if bins:
        Optimization(
            command=following,
            bins=bins,
            operation=optimize(
                predicates=_described(considered, snapshot.config, partitioning), auto=True
            ),
            num_considered=len(considered),
            combines=True,
        ).run()


AUTO_COMPACTION = PostCommitHook(name="auto compaction", run=_compact)
"""The hook of every command that adds files to a table, except OPTIMIZE itself."""


def added_partitions(adds: Iterable[Add], partitioning: Partitioning) -> frozenset[PartitionKey]:
    """Return the partitions to which the commit adds files with new rows."""
    return frozenset(partitioning.key(add.partition_values) for add in adds if add.data_change)


def partitions_over_threshold(
    files: FileTable, partitioning: Partitioning, *, min_num_files: int
) -> list[PartitionKey]:
    """Return the partitions with at least that number of files, those with the most first."""
    counts = Counter(files.partition_keys(partitioning))
    return [key for key, count in counts.most_common() if count >= min_num_files]


def _described(
    adds: Iterable[Add], config: TableConfig, partitioning: Partitioning
) -> tuple[str, ...]:
    """Return the partitions of some files as one SQL condition, spelled as in their first files.

    Empty for an unpartitioned table.
    """
    if not config.partition_columns:
        return ()
    examples: dict[PartitionKey, Mapping[str, str | None]] = {}
    for add in adds:
        examples.setdefault(partitioning.key(add.partition_values), add.partition_values)
    names = list(zip(config.partition_columns, config.physical_partition_columns, strict=True))
    texts = sorted(
        " AND ".join(
            f"{quoted(name)} <=> {quoted_text(text) if text else 'NULL'}"
            for name, text in ((name, values.get(physical)) for name, physical in sorted(names))
        )
        for values in examples.values()
    )
    return (" OR ".join(f"({text})" for text in texts),)
