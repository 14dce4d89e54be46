"""A snapshot has rows of its scope only: seen by Arrow where it can tell, else by a job."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import ErrorCode, InvalidRequestError
from tests.commands.dml.test_update_delete import jobs_of

SCHEMA = "id INT, `w-eird` STRING, day DATE, n DOUBLE"
DAY = dt.date(2024, 5, 1)
ROWS = [(1, "a", DAY, 1.0), (2, "b", DAY, -0.0)]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    puredelta.write(spark.createDataFrame([(9, "a", DAY, 5.0)], SCHEMA), path)
    return path


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("scope", "outside"),
    [
        ("`w-eird` IN ('a', 'b')", (3, "c", DAY, 1.0)),
        ("ID < 10 AND n >= 0", (3, "c", DAY, -1.0)),
        ("day = '2024-05-01'", (3, "c", None, 1.0)),
        ("n > 0 OR n = 0", (3, "c", DAY, None)),
        ("day >= '1800-01-01'", (3, "c", dt.date(1700, 1, 1), 1.0)),  # of another calendar
        ("length(`w-eird`) = 1", (3, "long", DAY, 1.0)),  # only Spark can tell
        ("cast(id AS STRING) <> '3'", (3, "c", DAY, 1.0)),
    ],
)
def test_a_row_outside_of_the_scope_is_refused(
    spark: SparkSession, tmp_path: Path, table: str, scope: str, outside: tuple[Any, ...]
) -> None:
    for n, rows in enumerate(([*ROWS, outside], [outside, *ROWS], ROWS)):
        path = str(tmp_path / f"s{n}")
        spark.createDataFrame(rows, SCHEMA).repartition(2).write.parquet(path)
        source = spark.read.parquet(path)
        if rows is ROWS:
            assert puredelta.sync(table, source, "id", scope=scope).num_affected_rows == 3
            continue
        for run in (
            lambda source=source: puredelta.sync(table, source, "id", scope=scope),
            lambda source=source: puredelta.plan_sync(
                table, source, "id", scope=scope
            ).merge.execute(),
        ):
            with pytest.raises(InvalidRequestError, match=r'key is \{"id":3\}') as caught:
                run()
            assert caught.value.code is ErrorCode.SOURCE_OUTSIDE_SCOPE
            assert "Filter the source" in str(caught.value)
    assert puredelta.read(spark, table).where("id = 9").count() == 0


def test_rows_that_arrow_finds_inside_take_no_job(
    spark: SparkSession, tmp_path: Path, table: str
) -> None:
    path = str(tmp_path / "s")
    spark.createDataFrame(ROWS, SCHEMA).write.parquet(path)
    jobs = [
        jobs_of(
            spark,
            lambda scope=scope: puredelta.sync(table, spark.read.parquet(path), "id", scope=scope),
        )
        for scope in ("id < 10", "length(cast(id AS STRING)) < 10")
    ]
    assert jobs[0] < jobs[1]
    assert "read from its own" in str(puredelta.last_report())
