"""Reading by path, version and time."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from puredelta.api import read
from puredelta.commands.read_table import resolve_timestamp
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError, UnsupportedError
from puredelta.protocol.schema.types import LONG, PrimitiveType, StructField, StructType
from puredelta.spark.session.delta_conf import IO
from tests.spark.tables import TableFiles

NOON_MS = 1_577_880_000_000  # 2020-01-01 12:00:00 UTC
HOUR_MS = 3_600_000


@pytest.fixture
def table(tmp_path: Path) -> TableFiles:
    """Three versions, committed at 12:00, 13:00 and 14:00 UTC."""
    made = TableFiles.create(tmp_path / "t", StructType((StructField("id", LONG),)))
    for n in range(2):
        made.write(f"{n}.parquet", {"id": pa.array([n], pa.int64())})
    for n, log in enumerate(sorted((made.root / "_delta_log").iterdir())):
        seconds = (NOON_MS + n * HOUR_MS) / 1000
        os.utime(log, (seconds, seconds))
    return made


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[str]:
    """New York: five hours behind UTC in winter."""
    name = "America/New_York"
    spark.conf.set("spark.sql.session.timeZone", name)
    yield name
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_newest_and_older_versions(spark: SparkSession, table: TableFiles) -> None:
    assert read(spark, table.root).count() == 2
    assert read(spark, str(table.root)).count() == 2
    assert read(spark, f"file://{table.root}").count() == 2
    assert [read(spark, table.root, version=v).count() for v in (0, 1, 2, "1")] == [0, 1, 2, 1]


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2020-01-01 07:00:00", 0),
        ("2020-01-01 07:59:59.999", 0),
        ("2020-01-01 08:00:00", 1),
        ("2020-01-01T13:30:00Z", 1),
        ("2020-01-01T13:30:00+00:00", 1),
        (dt.datetime(2020, 1, 1, 8, 30), 1),  # noqa: DTZ001
        (dt.datetime(2020, 1, 1, 13, 30, tzinfo=dt.timezone.utc), 1),
        (dt.datetime(2020, 1, 1, 14, tzinfo=dt.timezone.utc), 2),
    ],
)
def test_timestamps_without_a_zone_are_the_sessions(
    spark: SparkSession, table: TableFiles, zone: str, timestamp: Any, expected: int
) -> None:
    assert read(spark, table.root, timestamp=timestamp).count() == expected


def test_instants(spark: SparkSession, zone: str) -> None:
    midnight_ms = 1_577_854_800_000  # of 2020-01-01 in New York
    for instant in ("2020-01-01", "2020", " 2020-01-01 ", dt.date(2020, 1, 1)):
        assert resolve_timestamp(spark, instant) == midnight_ms
    spark.sparkContext.setJobGroup("instant", "")
    assert resolve_timestamp(spark, "2020-01-01 00:00:00.0019") == midnight_ms + 1
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("instant")


@pytest.mark.parametrize("timestamp", ["soon", "", "2020-13-01", "'; drop"])
def test_text_that_is_no_timestamp(spark: SparkSession, table: TableFiles, timestamp: str) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be converted to a valid timestamp") as e:
        read(spark, table.root, timestamp=timestamp)
    assert e.value.code is ErrorCode.TIMESTAMP_INVALID


@pytest.mark.parametrize(
    ("timestamp", "code"),
    [
        ("2019-12-31", ErrorCode.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION),
        ("2020-01-02", ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT),
    ],
)
def test_time_outside_of_the_history(
    spark: SparkSession, table: TableFiles, timestamp: str, code: ErrorCode
) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        read(spark, table.root, timestamp=timestamp)
    assert raised.value.code is code


@pytest.mark.parametrize("version", [3, -1, "99"])
def test_version_that_is_not_there(spark: SparkSession, table: TableFiles, version: Any) -> None:
    with pytest.raises(TableNotFoundError, match=r"\[0, 2\]") as raised:
        read(spark, table.root, version=version)
    assert raised.value.code is ErrorCode.VERSION_NOT_FOUND


@pytest.mark.parametrize("version", ["x", "1.0", "", 1.0, True])
def test_what_is_no_version(spark: SparkSession, table: TableFiles, version: Any) -> None:
    with pytest.raises(InvalidRequestError, match="is not a valid version") as raised:
        read(spark, table.root, version=version)
    assert raised.value.code is ErrorCode.TIME_TRAVEL_INVALID_BEGIN_VALUE


def test_version_and_time_exclude_each_other(spark: SparkSession, table: TableFiles) -> None:
    with pytest.raises(InvalidRequestError, match="Please either provide") as raised:
        read(spark, table.root, version=0, timestamp="2020-01-01")
    assert raised.value.code is ErrorCode.ONE_OF_IN_TIME_TRAVEL


def test_where_there_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="doesn't exist, or is not a Delta table") as e:
        read(spark, tmp_path / "none")
    assert e.value.code is ErrorCode.PATH_DOES_NOT_EXIST
    with pytest.raises(TableNotFoundError) as e:
        read(spark, tmp_path)
    assert e.value.code is ErrorCode.TABLE_NOT_FOUND


def test_storage_that_is_not_supported(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match="nowhere"):
        read(spark, "nowhere://bucket/table")


@pytest.mark.smoke
def test_reading_runs_no_job(spark: SparkSession, table: TableFiles) -> None:
    spark.sparkContext.setJobGroup("read", "read")
    rows = read(spark, table.root)
    assert rows.columns == ["id"]
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("read")
    assert sorted(r.id for r in rows.collect()) == [0, 1]


def test_intervals_of_a_legacy_table_are_read_by_spark_and_refused_by_arrow(
    spark: SparkSession, tmp_path: Path
) -> None:
    """delta-spark makes such a table only without its check of types, and reads it as well."""
    months, moment = PrimitiveType("interval year to month"), "interval day to second"
    fields = (StructField("m", months), StructField("s", PrimitiveType(moment)))
    made = TableFiles.create(tmp_path / "t", StructType(fields))
    micros = ((26 * 60 + 3) * 60 + 4) * 1_000_000 + 500_000
    made.write("f.parquet", {"m": pa.array([14, None], pa.int32()), "s": pa.array([micros, None])})
    rows = read(spark, made.root)
    texts = rows.selectExpr("cast(m AS string)", "cast(s AS string)")
    assert [tuple(row) for row in texts.collect()] == [
        ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '1 02:03:04.5' DAY TO SECOND"),
        (None, None),
    ]
    assert rows.where("m > INTERVAL '1' YEAR AND s < INTERVAL '27' HOUR").count() == 1
    spark.conf.set(IO.key, "arrow")
    try:
        with pytest.raises(UnsupportedError, match="column m of type interval year to month"):
            read(spark, made.root).count()
    finally:
        spark.conf.unset(IO.key)
