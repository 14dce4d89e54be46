"""A Delta table of chosen rows in chosen files, nullability included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.new_table import NewTableProperties, plan_new_table
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Definition, define_table, with_rows
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.types import from_spark
from puredelta.spark.write.writer import write_rows
from tests.log.tables import Client


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
