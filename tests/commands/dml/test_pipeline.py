"""The ten stages in their order, and what a failure between them leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from puredelta.log.replay.table_log import TableLog
from tests.commands.dml.tables import data_files, insert, lay_table, merge, update

STAGES = [
    "1 spec",
    "2 resolve",
    "3 source",
    "4 prune",
    "5 search",
    "6 decide",
    "7 new rows",
    "8 write",
    "9 verify",
    "10 actions",
    "commit",
]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
APP = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "t", SCHEMA, [[{"id": n, "v": 0} for n in range(5)]])


def upsert(spark: SparkSession, log: TableLog, **options: Any) -> Any:
    source = spark.createDataFrame([(3, 1), (9, 1)], "id long, v long")
    return merge(spark, log, source, "t.id = s.id", update(), insert(), **options)


@pytest.mark.smoke
def test_the_stages_follow_each_other(spark: SparkSession, log: TableLog) -> None:
    seen: dict[str, Any] = {}
    outcome = upsert(spark, log, observe=seen.__setitem__)
    assert list(seen) == STAGES
    assert seen["4 prune"] is outcome.plan
    assert seen["9 verify"] is outcome.rows
    assert seen["8 write"].new.num_rows == 2


@pytest.mark.parametrize("broken", ["5 search", "9 verify"])
def test_a_failure_after_any_stage_leaves_the_table_as_it_was(
    spark: SparkSession, log: TableLog, tmp_path: Path, broken: str
) -> None:
    before = data_files(tmp_path / "t")

    def fail(stage: str, _: Any) -> None:
        if stage == broken:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        upsert(spark, log, observe=fail)
    assert data_files(tmp_path / "t") == before
    assert log.latest_version() == 0


def test_a_statement_that_was_executed_before_ends_once_it_is_resolved(
    spark: SparkSession, log: TableLog
) -> None:
    """M-92."""
    spark.conf.set(APP, "app")
    spark.conf.set(VERSION, "1")
    try:
        upsert(spark, log)
        seen: dict[str, Any] = {}
        again = upsert(spark, log, observe=seen.__setitem__)
    finally:
        spark.conf.unset(APP)
        spark.conf.unset(VERSION)
    assert (again.was_executed, again.version, list(seen)) == (False, None, STAGES[:2])
    assert log.latest_version() == 1
