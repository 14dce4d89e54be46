"""Features that MERGE only carries along: both implementations merge one table in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "mapped by id": "TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
    "timestampNtz and vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "row ids and feed": (
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    ),
    "partitioned, checkpoint after each commit": (
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    ),
    "no statistics": "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
}
CHANGES = {
    "CHECK constraint": ["ADD CONSTRAINT small CHECK (id < 100)"],
    "widened types": [
        "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER COLUMN id TYPE BIGINT",
    ],
    "renamed and dropped columns": [
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "RENAME COLUMN v TO w",
        "RENAME COLUMN w TO v",
        "DROP COLUMN gone",
    ],
}


def merge(table: Any, spark: SparkSession, low: int, high: int) -> None:
    """The same call on either implementation."""
    source = spark.range(low, high).selectExpr(
        "int(id) id",
        "concat('v', id) v",
        "IF(id % 3 = 0, NULL, concat('p ', id % 3)) p",
        "timestamp_ntz'2024-05-06 07:08:09.123456' at",
    )
    names = ("id", "v", "p", "at")
    (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.id % 7 = 0")
        .whenMatchedUpdate(set={"v": "upper(s.v)", "at": "s.at"})
        .whenNotMatchedInsert(values={name: f"s.{name}" for name in names})
        .whenNotMatchedBySourceUpdate("t.id = 1", set={"v": "'alone'"})
        .execute()
    )


@pytest.mark.parametrize("feature", [*TABLES, *CHANGES])
def test_both_merge_one_table_in_turn(spark: SparkSession, tmp_path: Path, feature: str) -> None:
    import delta.tables  # noqa: PLC0415 - only where the reference is installed

    path = str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v STRING, p STRING, at TIMESTAMP_NTZ, gone INT) "
        f"USING delta {TABLES.get(feature, '')}"
    )
    merge(DeltaTable.forPath(spark, path), spark, 0, 10)
    for change in CHANGES.get(feature, ()):
        spark.sql(f"ALTER TABLE delta.`{path}` {change}")
    protocol = TableLog.open(path).snapshot().config.protocol
    theirs = delta.tables.DeltaTable.forPath(spark, path)
    for table, low in ((DeltaTable.forPath(spark, path), 5), (theirs, 8)):
        merge(table, spark, low, low + 10)
        expected = sorted(map(str, spark.read.format("delta").load(path).collect()))
        assert sorted(map(str, puredelta.read(spark, path).collect())) == expected
    merge(DeltaTable.forPath(spark, path), spark, 12, 22)
    found = spark.read.format("delta").load(path).select("id", "v").collect()
    assert sorted(map(str, found)) == sorted(
        map(str, puredelta.read(spark, path).select("id", "v").collect())
    )
    assert {row[0] for row in found} == {*range(22)} - {7}
    assert TableLog.open(path).snapshot().config.protocol == protocol
