"""M-31: MERGE through a temporary view that shows a table as it is."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import puredelta
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import LONG, STRING, StructField, StructType
from tests.spark.tables import TableFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MERGE = "MERGE INTO shown t USING (SELECT 2L id, 'new' v, 0 p) s ON t.id = s.id "


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    rows = spark.sql("SELECT id, 'old' v, cast(id % 2 AS int) p FROM range(4)")
    puredelta.write(rows, path, partition_by=["p"])
    puredelta.read(spark, path).createOrReplaceTempView("shown")
    return path


def test_a_view_of_the_whole_table_is_the_table(spark: SparkSession, table: str) -> None:
    for _ in range(2):  # the second time the view is older than the table
        puredelta.sql(spark, MERGE + "WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v)")
    assert puredelta.read(spark, table).where("id = 2").collect()[0].v == "oldnewnew"
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW outer_view AS SELECT p, id, v FROM shown")
    puredelta.sql(spark, MERGE.replace("shown", "outer_view") + "WHEN MATCHED THEN DELETE")
    assert puredelta.read(spark, table).count() == 3


PARTIAL, SOURCE = ErrorCode.UNEXPECTED_PARTIAL_SCAN, ErrorCode.UNSUPPORTED_SOURCE
COLUMNS = ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS
CHANGES = {
    "MERGE": MERGE.replace("shown", "other") + "WHEN MATCHED THEN DELETE",
    "UPDATE": "UPDATE other SET v = 'new' WHERE id = 1",
    "DELETE": "DELETE FROM other WHERE id = 1",
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("query", "code", "of_merge"),
    [
        ("SELECT * FROM shown WHERE id > 1", PARTIAL, PARTIAL),
        ("SELECT id, v FROM shown WHERE id > 1", PARTIAL, PARTIAL),
        ("SELECT * FROM shown WHERE id IN (SELECT id FROM range(2))", PARTIAL, PARTIAL),
        ("SELECT * FROM shown WHERE id IN (SELECT id FROM second)", PARTIAL, PARTIAL),
        ("SELECT * FROM (SELECT id, v, p FROM shown WHERE id > 1)", PARTIAL, PARTIAL),
        # The reference writes NULL into the columns that the view leaves out, or computes twice.
        ("SELECT id, v FROM shown", PARTIAL, COLUMNS),
        ("SELECT *, 1 AS one FROM shown", PARTIAL, COLUMNS),
        ("SELECT id, p AS v, v AS p FROM shown", PARTIAL, PARTIAL),
        ("SELECT id, upper(v) v, p FROM shown", PARTIAL, PARTIAL),
        ("SELECT * FROM shown LIMIT 2", SOURCE, SOURCE),
        ("SELECT * FROM shown ORDER BY id", SOURCE, SOURCE),
        ("SELECT DISTINCT * FROM shown", SOURCE, SOURCE),
        ("SELECT * FROM shown UNION ALL SELECT * FROM shown", SOURCE, SOURCE),
        ("SELECT id, max(v) v, max(p) p FROM shown GROUP BY id", SOURCE, SOURCE),
        ("SELECT a.* FROM shown a JOIN shown b ON a.id = b.id", SOURCE, SOURCE),
        ("SELECT a.* FROM shown a JOIN second b ON a.id = b.id", SOURCE, SOURCE),
        ("SELECT id, max(v) OVER (PARTITION BY p) v, p FROM shown", SOURCE, SOURCE),
    ],
)
def test_any_other_view_is_refused(
    spark: SparkSession, table: str, query: str, code: ErrorCode, of_merge: ErrorCode
) -> None:
    """With the error class of delta-spark, as far as it refuses."""
    puredelta.write(spark.range(2), f"{table}2")
    puredelta.read(spark, f"{table}2").createOrReplaceTempView("second")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW other AS {query}")
    for operation, text in CHANGES.items():
        with pytest.raises(DeltaError, match=r"other\b") as caught:
            puredelta.sql(spark, text)
        assert caught.value.code is (of_merge if operation == "MERGE" else code), operation
    assert puredelta.read(spark, table).count() == 4


def test_a_field_cannot_be_assigned_through_a_view(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"Unexpected assignment key: v\.x") as caught:
        puredelta.sql(spark, MERGE + "WHEN MATCHED THEN UPDATE SET t.v.x = 1")
    assert caught.value.code is ErrorCode.MERGE_UNEXPECTED_ASSIGNMENT_KEY


def test_update_and_delete_through_a_view(spark: SparkSession, table: str) -> None:
    puredelta.sql(spark, "UPDATE shown AS t SET t.v = 'new' WHERE t.id = 2")
    puredelta.sql(spark, "DELETE FROM shown WHERE id = 1")
    assert [tuple(r) for r in puredelta.read(spark, table).orderBy("id").collect()] == [
        (0, "old", 0),
        (2, "new", 0),
        (3, "old", 1),
    ]


def test_a_view_of_something_else_is_left_to_spark(spark: SparkSession, table: str) -> None:
    spark.range(3).createOrReplaceTempView("no_table")
    with pytest.raises(PySparkException, match="MERGE"):
        puredelta.sql(spark, MERGE.replace("shown", "no_table") + "WHEN MATCHED THEN DELETE")


def test_a_version_that_was_asked_for_is_no_target(spark: SparkSession, table: str) -> None:
    puredelta.write(puredelta.read(spark, table), table, mode="append")
    newest = TableLog.open(table).history()[0].timestamp_ms
    moment = dt.datetime.fromtimestamp(newest / 1000, dt.timezone.utc)
    for version, rows in {
        0: puredelta.read(spark, table, version=0),
        1: puredelta.read(spark, table, timestamp=moment),  # the newest, but asked for
    }.items():
        rows.createOrReplaceTempView("shown")
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW outer_view AS SELECT * FROM shown")
        for view in ("shown", "outer_view"):
            with pytest.raises(InvalidRequestError, match=f"scan of version {version}") as caught:
                puredelta.sql(spark, MERGE.replace("shown", view) + "WHEN MATCHED THEN DELETE")
            assert caught.value.code is ErrorCode.FAILED_SCAN_WITH_HISTORICAL_VERSION


@pytest.mark.thorough
def test_a_view_of_a_table_with_deletion_vectors(spark: SparkSession, tmp_path: Path) -> None:
    schema = StructType((StructField("id", LONG), StructField("v", STRING)))
    table = TableFiles.create(tmp_path / "deleted", schema)
    table.write("0.parquet", {"id": pa.array([1, 2, 3]), "v": pa.array("abc")}, deleted=[0])
    puredelta.read(spark, table.root).createOrReplaceTempView("shown")
    puredelta.sql(spark, MERGE + "WHEN MATCHED THEN UPDATE SET v = s.v")
    rows = puredelta.read(spark, table.root).collect()
    assert sorted(map(tuple, rows)) == [(2, "new"), (3, "c")]
