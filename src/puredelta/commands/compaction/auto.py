"""Auto compaction: small files are combined right after a commit that added files.

The commit stands whatever happens here; the next commit tries again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable

import pyarrow.compute as pc

from puredelta.commands.command import Command, PostCommitHook, next_command
from puredelta.commands.compaction.optimization import Optimization, compactable_files
from puredelta.commands.compaction.settings import AutoCompactSettings
from puredelta.log.commit.commit_request import Committed
from puredelta.log.maintenance.file_bins import PartitionKey, partition_key, plan_compaction
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.table_operations import optimize
from puredelta.protocol.features.feature_registry import Capability
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
    changed = added_partitions(a for a in committed.actions if isinstance(a, Add))
    if not changed or (settings.skips_blind_appends and committed.info.is_blind_append):
        return
    following = next_command(command, Capability.MERGE)
    snapshot = following.snapshot
    files = compactable_files(snapshot, snapshot.files)
    small = files.select(pc.less(files.rows["size_bytes"], settings.limits.min_file_size))
    if len(small) < settings.min_num_files:
        return
    wanted = partitions_over_threshold(small.adds(), min_num_files=settings.min_num_files)
    if settings.changed_partitions_only:
        wanted &= changed
    considered = [add for add in files.adds() if partition_key(add) in wanted]
    bins = plan_compaction(considered, settings.limits)
    if bins:
        Optimization(
            command=following,
            bins=bins,
            operation=optimize(predicates=_described(wanted, snapshot.config), auto=True),
            num_considered=len(considered),
        ).run()


AUTO_COMPACTION = PostCommitHook(name="auto compaction", run=_compact)
"""For every command that adds files to a table, but OPTIMIZE itself."""


def added_partitions(adds: Iterable[Add]) -> frozenset[PartitionKey]:
    """Return the partitions that get files with new rows."""
    return frozenset(partition_key(add) for add in adds if add.data_change)


def partitions_over_threshold(
    files: Iterable[Add], *, min_num_files: int
) -> frozenset[PartitionKey]:
    """Return the partitions with at least so many files."""
    counts = Counter(map(partition_key, files))
    return frozenset(key for key, count in counts.items() if count >= min_num_files)


def _described(partitions: Iterable[PartitionKey], config: TableConfig) -> tuple[str, ...]:
    """Return the partitions as one SQL condition; empty for an unpartitioned table."""
    names = {config.physical_name(name): name for name in config.partition_columns}
    if not names:
        return ()
    texts = sorted(
        " AND ".join(
            f"{quoted(names[column])} <=> {'NULL' if text is None else quoted_text(text)}"
            for column, text in key
        )
        for key in partitions
    )
    return (" OR ".join(f"({text})" for text in texts),)
