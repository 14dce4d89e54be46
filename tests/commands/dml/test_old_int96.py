"""Timestamps of 96 bits of Arrow 22 and before: those before 1970 count from the next midnight.

Spark reads them. Every Arrow takes them for times 584 years later (apache/arrow#48246).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import CorruptTableError
from puredelta.inspection.described import first_rows
from puredelta.spark.session.storage import open_log
from puredelta.worker.read_rows import counts_from_midnight

_FILE = zlib.decompress(
    base64.b85decode(
        "c-jka3^EjD5Y-X2(-GwWGT21fWEdD2G`8yhRS?_Az`z9La4-T11`q+_F$1w$j*KXiq$(SOqy$rDiYSj5hggtUiW-"
        "Nf4A2M$QIIkql_Q#mX{cE#BSQ!i)YyiI?OSjB|378E5`*h4l?VE&3=9p+J-pNz7&3fRfwnE+QTLKiJH{j<$_BM9u"
        ">@?}Bu23*jB1-0ku7AAv@vCnU@K0}NX<<YWdVw+GJ%{2v>(JsEMXAikd%?sA;R%QS}FE~QH(>4L+l5m2+(&51&Kw"
        "4rKu&l$pr<viA6>E<qBn~Ma7x<c?yQ+dIow1k~+Xp00qQqAPxWqJOE+XK%o"
    )
)
"""Columns id and at, the noon of 1 June 1500, 1900, 1960 and 1980; by pyarrow 17."""
YEARS = (1500, 1900, 1960, 1980)


def lay(directory: Path, files: int) -> str:
    directory.mkdir()
    for number in range(files):
        (directory / f"{number}.parquet").write_bytes(_FILE)
    return f"`{directory}`"


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    puredelta.activate(session)
    yield session
    puredelta.deactivate()


def years(spark: SparkSession, table: str) -> list[tuple[int, int]]:
    rows = spark.sql(f"SELECT id, year(at) FROM delta.{table}").collect()
    return sorted((row[0], row[1]) for row in rows)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("files", [1, 30])
def test_they_stay_what_they_are(utc: SparkSession, tmp_path: Path, files: int) -> None:
    spark, table = utc, lay(tmp_path / "t", files)
    spark.sql(f"CONVERT TO DELTA parquet.{table}")
    expected = sorted((n, year) for n, year in enumerate(YEARS) for _ in range(files))
    assert years(spark, table) == expected
    spark.sql(f"DELETE FROM delta.{table} WHERE id = 3")
    expected = [(n, year) for n, year in expected if n != 3]
    assert years(spark, table) == expected
    spark.sql(f"UPDATE delta.{table} SET id = 10 WHERE at = TIMESTAMP'1900-06-01 12:00:00'")
    expected = sorted((10 if n == 1 else n, year) for n, year in expected)
    assert years(spark, table) == expected
    spark.sql(f"OPTIMIZE delta.{table}")
    assert years(spark, table) == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("source", ["delta", "parquet"])
def test_keys_match(utc: SparkSession, tmp_path: Path, source: str) -> None:
    """In files of the target, and in those of the source."""
    spark, old = utc, lay(tmp_path / "old", 2)
    new = f"`{tmp_path / 'new'}`"
    spark.sql(
        f"CREATE TABLE delta.{new} USING delta AS SELECT id, at FROM parquet.{old} WHERE id > 0"
    )
    spark.sql(f"CONVERT TO DELTA parquet.{old}")
    rows = f"(SELECT DISTINCT id + 100 AS id, at FROM {source}.{old})"
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    spark.sql(f"MERGE INTO delta.{new} t USING {rows} s ON t.at = s.at {clauses}")
    assert years(spark, new)[0] == (100, 1500)
    assert {n for n, _ in years(spark, new)} == {100, 101, 102, 103}
    rows = f"(SELECT DISTINCT id + 100 AS id, at FROM delta.{new})"
    spark.sql(f"MERGE INTO delta.{old} t USING {rows} s ON t.at = s.at {clauses}")
    assert years(spark, old) == sorted([*((200 + n, y) for n, y in enumerate(YEARS))] * 2)


def test_readers_without_spark_refuse_them(utc: SparkSession, tmp_path: Path) -> None:
    table = lay(tmp_path / "t", 1)
    utc.sql(f"CONVERT TO DELTA parquet.{table}")
    snapshot = open_log(utc, tmp_path / "t").snapshot()
    with pytest.raises(CorruptTableError, match=r"0\.parquet.*column at has INT96"):
        first_rows(snapshot, 10)
    utc.sql(f"DELETE FROM delta.{table} WHERE id = 3")
    assert first_rows(open_log(utc, tmp_path / "t").snapshot(), 10).num_rows == 3


@pytest.mark.parametrize(
    ("writer", "is_right"),
    [
        ("parquet-mr version 1.16.0 (build 1)", True),
        ("impala version 4.0", True),
        ("parquet-cpp-arrow version 23.0.0", True),
        ("parquet-cpp-arrow version 22.0.0", False),
        ("parquet-cpp version 1.5.1-SNAPSHOT", False),
        ("parquet-go version 18.0.0", False),
        ("", False),
        (None, False),
    ],
)
def test_writers(writer: str | None, is_right: bool) -> None:
    footer: pq.FileMetaData = type("Footer", (), {"created_by": writer})()
    assert counts_from_midnight(footer) is is_right
