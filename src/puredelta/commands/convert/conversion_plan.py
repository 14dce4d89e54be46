"""The content of version 0, however it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from puredelta.commands.definition.new_table import DEFAULTS_PREFIX
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.replay import LogState
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import StoredFile

_ROW_TRACKING = "rowTracking"

_ROW_TRACKING_WITHOUT_STATS = f"""\
Cannot enable row tracking without collecting statistics.
If you want to enable row tracking, do the following:
  1. Enable statistics collection: set spark.databricks.delta.stats.collect to true.
  2. Convert with collect_stats=True.

If you do not want to collect statistics, disable row tracking:
  1. Unset {DEFAULTS_PREFIX}feature.rowTracking.
  2. Unset {DEFAULTS_PREFIX}enableRowTracking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionPlan:
    """The content of version 0."""

    config: TableConfig
    files: SpooledFiles
    """Ordered by path, each file once."""
    collects_stats: bool
    listed: tuple[StoredFile, ...]
    """The files that were found, those left out for their footers, too."""
    deleted: Mapping[str, RowIndexes] = field(default_factory=dict)
    """The rows that are deleted of files, by path."""

    def snapshot(self, log: TableLog) -> Snapshot:
        """Return version 0 as it will be."""
        return Snapshot(
            root_uri=log.root_uri,
            version=0,
            timestamp_ms=0,
            in_commit_timestamp_ms=None,
            config=self.config,
            state=LogState(
                protocol=self.config.protocol,
                metadata=self.config.metadata,
                files=self.files.table(),
            ),
            commit_file=None,
            last_checkpoint_version=None,
            open_at=log.store.at,
        )


def require_counted(config: TableConfig, *, collects_stats: bool) -> None:
    """Refuse properties that cannot be had without statistics.

    Raises:
        InvalidRequestError: rows are to be tracked, and nothing counts them.
    """
    if config.supports(_ROW_TRACKING) and not collects_stats:
        raise InvalidRequestError(
            _ROW_TRACKING_WITHOUT_STATS, code=ErrorCode.CONVERT_ROW_TRACKING_WITHOUT_STATS
        )
