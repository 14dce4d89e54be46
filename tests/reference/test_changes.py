"""The change data feed of tables that delta-spark wrote: both readers give the same rows."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from puredelta.commands.changes import read_changes
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIONS = {
    "starting_version": "startingVersion",
    "starting_timestamp": "startingTimestamp",
    "ending_version": "endingVersion",
    "ending_timestamp": "endingTimestamp",
}
SCRIPT = """
INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('v', id), id % 2,
    named_struct('a', id, 'b', array(named_struct('c', id))) FROM range(0, 40);

-- stays as it is until it is deleted as a whole
INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, NULL, 1, NULL FROM range(100, 110);

UPDATE {t} SET v = concat(v, '+'), s.a = 0 WHERE id < 3;

DELETE FROM {t} WHERE id IN (1, 8, 9);

-- M-124: inserts only, so no change files
MERGE INTO {t} t USING (SELECT id FROM range(35, 44)) s ON t.id = s.id
    WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'new', 0);

MERGE INTO {t} t USING (SELECT id FROM range(4, 60, 4)) s ON t.id = s.id
    WHEN MATCHED AND s.id % 8 = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET v = 'm', p = 1 - t.p
    WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'm', 1)
    WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN UPDATE SET v = NULL;

-- M-125: files may be rewritten, no row changes
MERGE INTO {t} t USING (SELECT id FROM range(0, 5)) s ON t.id = s.id
    WHEN MATCHED AND s.id > 90 THEN UPDATE SET v = 'never';

DELETE FROM {t} WHERE id >= 100;

OPTIMIZE {t};

DELETE FROM {t} WHERE id = 2;

RESTORE TABLE {t} TO VERSION AS OF 3;

ALTER TABLE {t} ADD COLUMNS (n INT);

INSERT OVERWRITE {t} SELECT id, 'over', 1, NULL, 5 FROM range(3);
"""


def reference_changes(spark: SparkSession, path: Path, **bounds: Any) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    for name, value in bounds.items():
        reader = reader.option(OPTIONS[name], value)
    return reader.load(str(path))


def our_changes(spark: SparkSession, path: Path, **bounds: Any) -> DataFrame:
    return read_changes(spark, TableLog.open(str(path)), **bounds)


def rows_of(rows: DataFrame) -> Counter[str]:
    return Counter(map(str, rows.collect()))


def assert_same(spark: SparkSession, path: Path, **bounds: Any) -> Counter[str]:
    ours, theirs = our_changes(spark, path, **bounds), reference_changes(spark, path, **bounds)
    assert ours.dtypes == theirs.dtypes
    found = rows_of(ours)
    assert found == rows_of(theirs), bounds
    return found


def run(spark: SparkSession, path: Path, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{path}`"))


def create(
    spark: SparkSession, path: Path, properties: dict[str, str], partitions: str = ""
) -> None:
    every = {"delta.enableChangeDataFeed": "true", **properties}
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in every.items())
    columns = "id LONG, v STRING, p LONG, s STRUCT<a: LONG, b: ARRAY<STRUCT<c: LONG>>>"
    run(
        spark, path, f"CREATE TABLE {{t}} ({columns}) USING delta {partitions} "
        f"TBLPROPERTIES ({listed})",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "partitions"),
    [
        ({}, ""),
        ({"delta.enableDeletionVectors": "true"}, "PARTITIONED BY (p)"),
        ({"delta.columnMapping.mode": "name"}, "PARTITIONED BY (p)"),
        ({"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"}, ""),
        (
            {"delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true"},
            "PARTITIONED BY (p, v)",
        ),
    ],
    ids=["plain", "vectors", "name", "id", "timestamps"],
)
def test_every_statement(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], partitions: str
) -> None:
    path = tmp_path / "t b"
    create(spark, path, properties, partitions)
    run(spark, path, *SCRIPT.strip().removesuffix(";").split(";\n"))
    found = assert_same(spark, path, starting_version=0)
    assert len(found) > 100
    # A range in the middle: begins at a deletion, ends at one.
    assert_same(spark, path, starting_version=4, ending_version=8)
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        times = [
            str(row["timestamp"])
            for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").orderBy("version").collect()
        ]
        # The driver's own zone is UTC, and so is that of the collected times.
        bounds = {"starting_timestamp": f"{times[5]}Z", "ending_timestamp": f"{times[9]}Z"}
        by_time = assert_same(spark, path, **bounds)
        assert by_time == rows_of(our_changes(spark, path, starting_version=5, ending_version=9))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def error_class(error: BaseException) -> str:
    if isinstance(error, DeltaError):
        return error.code.error_class
    text = str(error)
    return text[text.index("[") + 1 : text.index("]")]


def assert_same_error(spark: SparkSession, path: Path, **bounds: Any) -> str:
    with pytest.raises(DeltaError) as ours:
        our_changes(spark, path, **bounds)
    with pytest.raises(Exception, match=r"\[") as theirs:
        reference_changes(spark, path, **bounds).collect()
    assert error_class(ours.value) == error_class(theirs.value), bounds
    return error_class(ours.value)


def test_requests_that_cannot_be_served(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(spark, path, {})
    turn = "ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = '{}')"
    run(spark, path, turn.format("false"), turn.format("true"))
    # Not long ago: beyond the retention of deleted files the reference refuses to look back.
    first = int(time.time()) - 600
    for version in range(3):
        os.utime(path / "_delta_log" / f"{version:020d}.json", (first + version,) * 2)
    instants = [f"{dt.datetime.fromtimestamp(first + v, dt.timezone.utc)}" for v in range(3)]
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    seen = {
        assert_same_error(spark, path, **bounds)
        for bounds in (
            {},
            {"ending_version": 1},
            {"starting_version": "x"},
            {"starting_timestamp": "x"},
            {"starting_version": 3},
            {"starting_version": -1},
            {"starting_version": 2, "ending_version": 1},
            {"starting_timestamp": "2130-01-01"},
            {"starting_version": 0, "ending_timestamp": "2130-01-01"},
            {"starting_version": 0, "ending_timestamp": "2001-01-01"},
            {"starting_timestamp": instants[2], "ending_timestamp": instants[0]},
            {"starting_version": 0},
            {"starting_version": 1, "ending_version": 2},
        )
    }
    assert len(seen) == 9
    assert_same(spark, path, starting_version=2)
    assert_same(spark, path, starting_version=0, ending_version=0)
    setting = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
    spark.conf.set(setting, "true")
    try:
        assert_same(spark, path, starting_version=3)
        assert_same(spark, path, starting_timestamp="2130-01-01")
        assert_same(spark, path, starting_version=2, ending_timestamp="2130-01-01")
    finally:
        spark.conf.unset(setting)


@pytest.mark.parametrize(
    ("properties", "change"),
    [
        ({}, "REPLACE TABLE {t} (id STRING) USING delta"),
        ({"delta.columnMapping.mode": "name"}, "ALTER TABLE {t} RENAME COLUMN v TO w"),
        ({"delta.columnMapping.mode": "name"}, "ALTER TABLE {t} DROP COLUMN v"),
        ({"delta.columnMapping.mode": "name"}, "ALTER TABLE {t} DROP COLUMN s.a"),
        ({"delta.enableTypeWidening": "true"}, "ALTER TABLE {t} ALTER COLUMN n TYPE LONG"),
    ],
    ids=["replace", "rename", "drop", "nested", "widen"],
)
def test_schema_changes(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], change: str
) -> None:
    path = tmp_path / "t"
    create(spark, path, properties)
    feed = " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')" if "REPLACE" in change else ""
    run(
        spark,
        path,
        "ALTER TABLE {t} ADD COLUMNS (n INT)",  # version 1
        "INSERT INTO {t} SELECT id, 'a', 1, NULL, 1 FROM range(3)",
        change + feed,
        "INSERT INTO {t} (id) VALUES (7)",  # version 4
    )
    assert_same_error(spark, path, starting_version=0)
    assert_same(spark, path, starting_version=4)
    if "columnMapping" in str(properties):
        # The schema of the end serves; of a table without mapping it is the newest one's.
        assert_same(spark, path, starting_version=1, ending_version=2)
    else:
        assert_same_error(spark, path, starting_version=1, ending_version=2)
