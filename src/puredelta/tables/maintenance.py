"""Maintenance of a table, its clones, and what it says of itself: a part of ``DeltaTable``.

Nothing is decided here: arguments are checked and calls are forwarded to the commands.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.properties import add_feature_support, upgrade_protocol_versions
from puredelta.commands.clone.clone_table import CloneRequest, require_absolute
from puredelta.commands.restore import RestoreOutcome, restore_table
from puredelta.commands.vacuum.vacuum import vacuum
from puredelta.log.replay.table_log import TableLog
from puredelta.tables.arguments import (
    require_boolean,
    require_integer,
    require_properties,
    require_string,
)


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


def clone_request(
    target: str, shallow: object, replacing: object, properties: object
) -> CloneRequest:
    """Return what the arguments of ``clone`` ask for.

    Raises:
        ValueError: an argument is of the wrong type, or the target is no absolute path.
    """
    require_string(target, "target")
    require_boolean(shallow, "isShallow")
    require_boolean(replacing, "replace")
    if properties is not None:
        require_properties(properties)
    require_absolute(target)
    wanted = properties if isinstance(properties, dict) else {}
    return CloneRequest(shallow=bool(shallow), replace=bool(replacing), properties=wanted)


def _require_version(value: object, name: str) -> None:
    if not isinstance(value, int):
        raise ValueError(  # noqa: TRY004 - as in delta-spark
            f"The {name} needs to be an integer but got '{type(value)}'."
        )
