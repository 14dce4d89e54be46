"""Targets of recorded statements: chosen rows in chosen files, nullability included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.commands.changes import read_changes
from puredelta.commands.new_table import NewTableProperties, plan_new_table
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Definition, define_table, with_rows
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.types import from_spark
from puredelta.spark.write.writer import write_rows
from puredelta.tables import DeltaTable
from tests.log.tables import Client


class Target(Protocol):
    """The table of one recorded statement."""

    spark: SparkSession

    def create(
        self,
        schema: T.StructType,
        files: Sequence[Sequence[tuple]],
        *,
        partition_by: Sequence[str],
        properties: Mapping[str, str],
    ) -> None:
        """Create the table with the rows of each element of ``files`` in files of their own."""

    def table(self) -> DeltaTable:
        """Return the table."""

    def num_commits(self) -> int:
        """Return the number of commits since the table has its rows."""

    def changes(self) -> DataFrame:
        """Return the changes of these commits."""


@dataclass(frozen=True)
class PathTarget:
    """A table at a path, whose version 0 has its rows."""

    spark: SparkSession
    path: str

    def create(
        self,
        schema: T.StructType,
        files: Sequence[Sequence[tuple]],
        *,
        partition_by: Sequence[str],
        properties: Mapping[str, str],
    ) -> None:
        log = TableLog.open(self.path)
        create_target(
            self.spark, log, schema, files, partition_by=partition_by, properties=properties
        )

    def table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path)

    def num_commits(self) -> int:
        return TableLog.open(self.path).latest_version() or 0

    def changes(self) -> DataFrame:
        return read_changes(self.spark, TableLog.open(self.path), starting_version=1)


def create_target(
    spark: SparkSession,
    log: TableLog,
    schema: T.StructType,
    files: Sequence[Sequence[tuple]],
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> None:
    """Create version 0 with the rows of each element of ``files`` in files of their own."""
    config = plan_new_table(
        settings_of(spark),
        from_spark(schema),
        partition_by,
        wanted=NewTableProperties(properties=properties or {}),
    )
    adds = []
    for rows in files:
        if rows:
            frame = spark.createDataFrame(list(rows), schema).coalesce(1)
            adds += write_rows(frame, store=log.store, config=config).adds
    Client(log, None).commit(
        [config.protocol, config.metadata, *adds],
        with_rows(define_table(Definition.CREATE, partition_by=partition_by)),
        is_blind_append=True,
    )
