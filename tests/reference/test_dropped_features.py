"""Features dropped by rewriting files: both implementations drop them from equal tables."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import decode_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPPING = [
    (
        "CREATE TABLE {t} (k INT, v STRING, s STRUCT<x: INT, y: STRING>, p STRING, d INT DEFAULT 7)"
        " USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}', "
        "'delta.feature.allowColumnDefaults' = 'supported', 'delta.enableDeletionVectors' = 'true',"
        " 'delta.enableChangeDataFeed' = 'true', 'delta.enableRowTracking' = 'true')"
    ),
    (
        "INSERT INTO {t} (k, v, s, p) SELECT int(id), concat('v', id), "
        "named_struct('x', int(id), 'y', 'b'), concat('q=', id % 2) FROM range(0, 20, 1, 2)"
    ),
    "ALTER TABLE {t} ADD CONSTRAINT small CHECK (s.x < 100)",
    "DELETE FROM {t} WHERE k IN (3, 4)",
    "ALTER TABLE {t} RENAME COLUMN v TO w",
    "ALTER TABLE {t} RENAME COLUMN p TO part",
    "ALTER TABLE {t} ADD COLUMNS (more BIGINT)",
]
WIDENING = [
    (
        "CREATE TABLE {t} (k SMALLINT, s STRUCT<x: INT>, n DECIMAL(5, 2), p TINYINT) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.enableTypeWidening' = 'true', "
        "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = '{mode}')"
    ),
    (
        "INSERT INTO {t} SELECT smallint(id), named_struct('x', int(id)), id, tinyint(id % 2) "
        "FROM range(0, 20, 1, 2)"
    ),
    "DELETE FROM {t} WHERE k = 3",
    "ALTER TABLE {t} ALTER COLUMN k TYPE INT",
    "ALTER TABLE {t} ALTER COLUMN p TYPE INT",
    "ALTER TABLE {t} ALTER COLUMN n TYPE DECIMAL(9, 3)",
    "INSERT INTO {t} VALUES (70000, named_struct('x', 1), 7.125, 1)",
    "ALTER TABLE {t} ALTER COLUMN s.x TYPE BIGINT",
    "INSERT INTO {t} VALUES (70001, named_struct('x', 1L << 40), 7.125, 5000)",
]
CHECKED = [
    (
        "CREATE TABLE {t} (k BIGINT) USING delta "
        "TBLPROPERTIES ('delta.feature.vacuumProtocolCheck' = 'supported')"
    ),
    "INSERT INTO {t} SELECT * FROM range(0, 20, 1, 2)",
]
TABLES = {"columnMapping": MAPPING, "typeWidening": WIDENING, "vacuumProtocolCheck": CHECKED}
CASES = {
    "mapping by name": ("columnMapping", "name", ["DROP FEATURE columnMapping"]),
    "mapping by id": ("columnMapping", "id", ["DROP FEATURE columnMapping"]),
    "mode none": (
        "columnMapping",
        "name",
        ["SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none', 'x' = 'y')"],
    ),
    "mode not set": (
        "columnMapping",
        "name",
        ["UNSET TBLPROPERTIES ('delta.columnMapping.mode')", "DROP FEATURE columnMapping"],
    ),
    "widening": ("typeWidening", "none", ["DROP FEATURE typeWidening"]),
    "check before a vacuum": (
        "vacuumProtocolCheck",
        "none",
        ["DROP FEATURE vacuumProtocolCheck TRUNCATE HISTORY"],
    ),
    "widening of a mapped table": ("typeWidening", "name", ["DROP FEATURE typeWidening"]),
}


def rows(spark: SparkSession, path: Path) -> list[str]:
    return sorted(map(str, spark.read.format("delta").load(str(path)).collect()))


def definition(path: Path, after: int) -> dict[str, Any]:
    """What both have to agree on: everything but how many files there are."""
    log = TableLog.open(str(path))
    snapshot = log.snapshot()
    infos = [entry.commit_info for entry in reversed(log.history()) if entry.commit_info]
    partitions = snapshot.config.physical_partition_columns
    rows_per_partition: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for add in snapshot.files.adds():
        found = json.loads(add.stats or "")["numRecords"]
        rows_per_partition[tuple(sorted(add.partition_values.items()))] += found
    return {
        "schema": json.loads(snapshot.metadata.schema_string),
        "configuration": snapshot.metadata.configuration,
        "protocol": snapshot.protocol,
        "history": [(i.operation, i.operation_parameters) for i in infos[after + 1 :]],
        "rows": rows_per_partition,
        "stored": {
            (field.name, str(field.type))
            for add in snapshot.files.adds()
            for field in pq.read_schema(path / decode_path(add.path))
            if not field.name.startswith("_row-") and field.name not in partitions
        },
    }


@pytest.mark.parametrize("case", CASES)
def test_both_drop_features_alike(spark: SparkSession, tmp_path: Path, case: str) -> None:
    feature, mode, changes = CASES[case]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for statement in TABLES[feature]:
        spark.sql(statement.format(t=f"delta.`{ours}`", mode=mode))
    shutil.copytree(ours, theirs)
    after = TableLog.open(str(ours)).latest_version()
    before = rows(spark, ours)
    for change in changes:
        puredelta.sql(spark, f"ALTER TABLE delta.`{ours}` {change}")
        spark.sql(f"ALTER TABLE delta.`{theirs}` {change}")
    found, expected = definition(ours, after), definition(theirs, after)
    assert found == expected
    assert rows(spark, ours) == rows(spark, theirs) == before
    assert sorted(map(str, puredelta.read(spark, str(ours)).collect())) == before
    spark.sql(f"DELETE FROM delta.`{ours}` WHERE k = 5")
    spark.sql(f"INSERT INTO delta.`{ours}` SELECT * FROM delta.`{ours}` WHERE k = 6")
    assert len(rows(spark, ours)) == len(before)
    old = spark.sql(f"SELECT * FROM delta.`{ours}` VERSION AS OF {after}").collect()
    assert sorted(map(str, old)) == before


def test_a_clustered_table_stays_one(spark: SparkSession, tmp_path: Path) -> None:
    """delta-spark leaves the names of column mapping there, and cannot describe the table then."""
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (k INT, v STRING) USING delta CLUSTER BY (v, k) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` SELECT int(id), string(id) FROM range(0, 20, 1, 2)")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN v TO w")
    puredelta.sql(spark, f"ALTER TABLE delta.`{path}` DROP FEATURE columnMapping")
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]
    assert list(detail["clusteringColumns"]) == ["w", "k"]
    spark.sql(f"OPTIMIZE delta.`{path}`")
    assert len(rows(spark, path)) == 20
