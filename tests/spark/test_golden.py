"""Tables other implementations wrote: exactly their expected rows, or refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.api import read
from puredelta.errors import CorruptTableError, DeltaError, InvalidRequestError, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.schema_json import encode_schema
from tests.data_dir import find_data

MANIFEST = find_data("golden", "manifest.jsonl")
ROWS: list[dict[str, Any]] = (
    [json.loads(line) for line in MANIFEST.read_text().splitlines()] if MANIFEST else []
)


def by_name(row: dict[str, Any]) -> str:
    return str(row["name"])


def location(row: dict[str, Any]) -> Path:
    assert MANIFEST is not None
    directory = MANIFEST.parent / row["name"]
    return directory / "delta" if (directory / "delta").exists() else directory


def counted(rows: DataFrame, columns: list[str]) -> Counter[str]:
    """The rows as a multiset; equality of text tells NULL, NaN, types and order apart."""
    return Counter(str(row.asDict(recursive=True)) for row in rows.select(*columns).collect())


def assert_same_rows(found: DataFrame, expected: DataFrame, columns: list[str]) -> None:
    if expected.count() < 10_000:
        assert counted(found, columns) == counted(expected, columns)
        return
    both = found.select(*columns, F.lit(1).alias("n")).unionByName(
        expected.select(*columns, F.lit(-1).alias("n"))
    )
    assert both.groupBy(*columns).agg(F.sum("n").alias("n")).filter("n != 0").count() == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("row", [r for r in ROWS if r["has_expected"]], ids=by_name)
def test_table_has_exactly_its_expected_rows(spark: SparkSession, row: dict[str, Any]) -> None:
    directory = location(row).parent
    columns = [f"`{c}`" for c in row["columns"] if c not in row.get("ignore_columns", ())]
    found = read(spark, location(row), version=row.get("version"))
    assert found.columns == row["columns"]
    expected = spark.read.parquet(str(directory / row["expected_path"]))
    assert found.count() == row["expected_rows"]
    assert_same_rows(found, expected, columns)
    for version in row["expected_versions"]:
        at_version = read(spark, location(row), version=version.removeprefix("v"))
        contents = directory / "expected" / version / "table_content.parquet"
        expected = spark.read.parquet(str(contents))
        assert_same_rows(at_version, expected, [f"`{c}`" for c in expected.columns])


@pytest.mark.parametrize("row", [r for r in ROWS if r.get("log_only")], ids=by_name)
def test_log_has_exactly_its_files_and_schema(row: dict[str, Any]) -> None:
    snapshot = TableLog.open(str(location(row))).snapshot()
    assert [add.path for add in snapshot.files.adds()] == row["files"]
    assert json.loads(encode_schema(snapshot.config.schema)) == row["schema"]


@pytest.mark.parametrize("row", [r for r in ROWS if r.get("must_fail")], ids=by_name)
def test_broken_table_is_refused(spark: SparkSession, row: dict[str, Any]) -> None:
    expected = TableNotFoundError if "no _delta_log" in row["must_fail"] else CorruptTableError
    with pytest.raises(expected) as raised:
        read(spark, location(row))
    assert str(location(row)) in str(raised.value) or "version" in str(raised.value)


@pytest.mark.parametrize("row", [r for r in ROWS if r.get("reference_error")], ids=by_name)
def test_table_the_reference_refuses_is_refused_alike(
    spark: SparkSession, row: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        read(spark, location(row))
    error: DeltaError = raised.value
    assert error.code.error_class in row["reference_error"]


@pytest.mark.skipif(not ROWS, reason="optional test data is absent")
def test_every_table_of_the_manifest_is_checked() -> None:
    checks = ("has_expected", "log_only", "must_fail", "reference_error")
    assert [r["name"] for r in ROWS if not any(r.get(check) for check in checks)] == []
