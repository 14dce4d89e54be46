"""Maintenance of a table, its clones, and what it says of itself: a part of ``DeltaTable``.

Nothing is decided here: arguments are checked and calls are forwarded to the commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.protocol import add_feature_support, upgrade_protocol_versions
from puredelta.commands.arguments import (
    require_boolean,
    require_integer,
    require_properties,
    require_string,
)
from puredelta.commands.clone import CloneRequest, clone_table, require_absolute
from puredelta.commands.restore import RestoreOutcome, restore_table
from puredelta.commands.vacuum.run import vacuum
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.cached_frames import refresh_cached_frames


class CloneOptions(NamedTuple):
    """What the three forms of ``clone`` take, in their order; checked when a clone is made."""

    shallow: bool
    replace: bool
    properties: dict[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMaintenance:
    """The part of ``DeltaTable`` that leaves the rows as they are, or as they were once."""

    spark: SparkSession
    log: TableLog

    def vacuum(self, retention_hours: float | None) -> DataFrame:
        """Delete files that no version within the retention time needs; return no rows."""
        vacuum(self.spark, self.log, retention_hours=retention_hours)
        return self.spark.createDataFrame([], StructType([]))

    def restore_to_version(self, version: int) -> DataFrame:
        """Make the table what it was at a version; return one row of counts."""
        require_integer(version, "version")
        return self._restored(restore_table(self.spark, self.log, version=version))

    def restore_to_timestamp(self, timestamp: str) -> DataFrame:
        """Make the table what it was at a time; return one row of counts."""
        require_string(timestamp, "timestamp")
        return self._restored(restore_table(self.spark, self.log, timestamp=timestamp))

    def _restored(self, outcome: RestoreOutcome | None) -> DataFrame:
        if outcome is None:
            return self.spark.createDataFrame([], StructType([]))
        refresh_cached_frames(self.spark, self.log)
        return outcome.row(self.spark)

    def upgrade_protocol(self, reader: int, writer: int) -> None:
        """Let the table have the features that a pair of protocol versions stands for."""
        _require_version(reader, "readerVersion")
        _require_version(writer, "writerVersion")
        upgrade_protocol_versions(self.spark, self.log, reader=reader, writer=writer)

    def add_feature(self, name: str) -> None:
        """Let the table have a feature."""
        require_string(name, "featureName")
        add_feature_support(self.spark, self.log, name)

    def drop_feature(self, name: str, truncate_history: bool | None) -> None:
        """Take a feature from the table."""
        require_string(name, "featureName")
        if truncate_history is not None:
            require_boolean(truncate_history, "truncateHistory")
        drop_feature_support(self.spark, self.log, name, truncate_history=bool(truncate_history))

    def clone(self, source: Snapshot, target: str, options: CloneOptions) -> None:
        """Make a table at ``target`` that shares the data files of a version of this one."""
        require_string(target, "target")
        require_boolean(options.shallow, "isShallow")
        require_boolean(options.replace, "replace")
        if options.properties is not None:
            require_properties(options.properties)
        require_absolute(target)
        request = CloneRequest(
            shallow=bool(options.shallow),
            replace=bool(options.replace),
            properties=options.properties or {},
        )
        clone_table(self.spark, source, TableLog.open(target), request)


def _require_version(value: object, name: str) -> None:
    if not isinstance(value, int):
        raise ValueError(  # noqa: TRY004 - as in the reference
            f"The {name} needs to be an integer but got '{type(value)}'."
        )
