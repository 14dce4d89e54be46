"""``_metadata.row_id`` through PySpark's own readers and SQL over tables of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from puredelta.log.replay.table_log import TableLog


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    """A database of its own, which is the current one."""
    active.sql("CREATE DATABASE tracking")
    active.catalog.setCurrentDatabase("tracking")
    yield active
    active.catalog.setCurrentDatabase("default")
    active.sql("DROP DATABASE tracking CASCADE")


def test_tables_of_the_catalog(database: SparkSession) -> None:
    spark = database
    spark.sql(
        "CREATE TABLE tracked (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    spark.sql("INSERT INTO tracked VALUES (7), (8)")
    for rows in (
        spark.table("tracked").select("_metadata.row_id", "tracked.id"),
        spark.sql("SELECT tracked._metadata.row_id, tracked.id FROM tracked"),
        spark.sql("SELECT row_id, id FROM (SELECT _metadata.row_id, id FROM tracking.tracked)"),
        spark.sql("SELECT t._metadata.row_id, id FROM tracked t WHERE _metadata.row_id >= 0"),
    ):
        assert sorted(tuple(row) for row in rows.collect()) == [(0, 7), (1, 8)]
    assert spark.table("tracked").columns == ["id"]
    cached = spark.table("tracked").cache()
    assert cached.count() == 2
    spark.sql("INSERT INTO tracked VALUES (9)")
    assert cached.count() == spark.table("tracked").count() == 3
    cached.unpersist()
    spark.sql("DELETE FROM tracked WHERE id = 7")
    assert spark.sql("SELECT min(_metadata.row_id) FROM tracked").first()[0] == 1


def test_a_name_reads_its_log_once(database: SparkSession) -> None:
    spark, read = database, TableLog.snapshot
    for name, tracked in (("plain", "false"), ("with_ids", "true")):
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT) USING delta "
            f"TBLPROPERTIES ('delta.enableRowTracking' = '{tracked}')"
        )
        with patch.object(TableLog, "snapshot", autospec=True, side_effect=read) as reads:
            assert spark.table(name).columns == ["id"]
        assert reads.call_count == 1, name
