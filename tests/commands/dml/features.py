"""Tables with the features that decide how changed rows are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.commands.changes import read_changes
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.spark.scan.row_tracking_scan import tracked_scan
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.names import ROW_COMMIT_VERSION, ROW_ID
from tests.merge_cases.target import create_target

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "id"}

SCHEMA = T.StructType().add("k", T.IntegerType()).add("v", "string").add("p", "string")


def make_table(
    spark: SparkSession,
    root: Path,
    *files: Sequence[tuple],
    properties: Mapping[str, str],
    partition_by: Sequence[str] = (),
) -> TableLog:
    """Columns k int, v string, p string; one file per list of rows."""
    log = TableLog.open(str(root))
    create_target(spark, log, SCHEMA, files, properties=properties, partition_by=partition_by)
    return log


def source(spark: SparkSession, *rows: tuple[int, str, str]) -> DataFrame:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    types = [pa.int32(), pa.string(), pa.string()]
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    return spark.createDataFrame(pa.table(arrays, names=["k", "v", "p"]))


def rows_of(spark: SparkSession, log: TableLog, version: int | None = None) -> Counter[tuple]:
    return Counter(map(tuple, scan(spark, log.snapshot(version=version)).collect()))


def changes_of(spark: SparkSession, log: TableLog, version: int) -> Counter[tuple]:
    """Rows of the feed of one version: the columns of the table, then the kind of change."""
    found = read_changes(spark, log, starting_version=version, ending_version=version)
    found = found.drop("_commit_version", "_commit_timestamp")
    return Counter(map(tuple, found.collect()))


def is_explained(spark: SparkSession, log: TableLog, version: int) -> bool:
    """Whether the changes of a version lead from the rows before it to those after it."""
    expected = rows_of(spark, log, version - 1)
    for (*row, kind), times in changes_of(spark, log, version).items():
        came = kind in {"insert", "update_postimage"}
        expected[tuple(row)] += times if came else -times
    return +expected == rows_of(spark, log, version) and not -expected


def tracked_rows(spark: SparkSession, log: TableLog) -> dict[int, tuple[int, int]]:
    """Row id and row commit version by key."""
    snapshot = log.snapshot()
    tracked = tracked_columns(snapshot.config)
    assert tracked is not None
    rows = tracked_scan(spark, snapshot, snapshot.files, tracked, columns=["k"])
    found = rows.select("k", ROW_ID, ROW_COMMIT_VERSION).collect()
    assert len({row[1] for row in found}) == len(found)
    return {row[0]: (row[1], row[2]) for row in found}


def actions_of(log: TableLog, version: int, kind: type[Action]) -> list[Any]:
    (commit,) = log.commits_after(version - 1, through=version)
    return [action for action in commit.actions if isinstance(action, kind)]
