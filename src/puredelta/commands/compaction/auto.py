"""Auto compaction: small files are combined right after a commit that added files.

The commit stands whatever happens here; the next commit tries again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.commands.command import Command, PostCommitHook, next_command
from puredelta.commands.compaction.optimization import Optimization, compactable_files
from puredelta.commands.compaction.settings import AutoCompactSettings
from puredelta.log.commit.commit_request import Committed
from puredelta.log.files.file_table import FileTable
from puredelta.log.maintenance.file_bins import plan_compaction
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.table_operations import optimize
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.partitioning import Partitioning, PartitionKey
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import quoted, quoted_text

logger = logging.getLogger(__name__)


def _compact(command: Command, committed: Committed) -> None:
    """Compact the partitions that a commit added files to, where session or table want it.

    Runs nothing unless one of them has ``autoCompact.minNumFiles`` small files; then one Spark
    job and one commit of its own.
    """
    settings = AutoCompactSettings.parse(command.session.settings, committed.config.properties)
    if settings is None:
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
        wanted &= changed
    mask = [key in wanted for key in files.partition_keys(partitioning)]
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
        ).run()


AUTO_COMPACTION = PostCommitHook(name="auto compaction", run=_compact)
"""For every command that adds files to a table, but OPTIMIZE itself."""


def added_partitions(adds: Iterable[Add], partitioning: Partitioning) -> frozenset[PartitionKey]:
    """Return the partitions that get files with new rows."""
    return frozenset(partitioning.key(add.partition_values) for add in adds if add.data_change)


def partitions_over_threshold(
    files: FileTable, partitioning: Partitioning, *, min_num_files: int
) -> frozenset[PartitionKey]:
    """Return the partitions with at least so many files."""
    counts = Counter(files.partition_keys(partitioning))
    return frozenset(key for key, count in counts.items() if count >= min_num_files)


def _described(
    adds: Iterable[Add], config: TableConfig, partitioning: Partitioning
) -> tuple[str, ...]:
    """Return the partitions of some files as one SQL condition, each as its first file spells it.

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
