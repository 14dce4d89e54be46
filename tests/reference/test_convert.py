"""The same directory, converted by delta-spark and by puredelta: same table, same refusals."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.errors import DeltaError
from puredelta.protocol.actions.paths import decode_path
from puredelta.spark.write.parquet_job import temporary_settings
from tests.commands.convert.directories import adds, first_commit, write

A = pa.table({"a": [1, 2]})
DEFAULTS = "spark.databricks.delta.properties.defaults."
PARQUET = "spark.sql.parquet."
UNSIGNED = {
    "a": pa.array([255], pa.uint8()),
    "c": pa.array([2**32 - 1], pa.uint32()),
    "d": pa.array([7], pa.uint64()),
}
BYTE = pa.table({"a": pa.array([1], pa.int8())})
INTEGER = pa.table({"a": pa.array([1], pa.int32())})

ALL_TYPES = """select id, cast(id as string) s, id % 2 = 0 b, cast(id as tinyint) y,
  cast(id as smallint) sh, cast(id as int) i, cast(id as float) f, id / 3 d,
  cast(id as decimal(5, 2)) dec, cast(id as decimal(38, 10)) big,
  date'2024-01-01' + cast(id as int) day,
  timestamp'2024-01-01 00:00:00.123456' + make_interval(0, 0, 0, int(id)) t,
  timestamp_ntz'2024-01-01 00:00:00.123456' ntz, cast(cast(id as string) as binary) bin,
  array(id, null) arr, map('k', id) m, named_struct('x', id, 'y', named_struct('z', 'é')) st,
  repeat('long ', 20) long, cast(null as int) n
  from range(20)"""

_ZONED = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-][\d:]+)")

Build = Callable[[SparkSession, Path], None]


def files(**tables: Mapping[str, Any] | pa.Table) -> Build:
    def build(_: SparkSession, root: Path) -> None:
        for path, table in tables.items():
            write(root, path.replace("__", "/"), table)

    return build


def at(path: str, table: Mapping[str, Any] | pa.Table = A) -> Build:
    return lambda _, root: write(root, path, table) and None


def by_spark(
    query: str, *partition_columns: str, options: Mapping[str, str] | None = None
) -> Build:
    def build(spark: SparkSession, root: Path) -> None:
        with temporary_settings(spark, options or {}):
            frame = spark.sql(query).repartition(2)
            frame.write.partitionBy(*partition_columns).mode("append").parquet(str(root))

    return build


def text_beside(root: Path) -> None:
    (root / "notes.txt").write_text("this is no parquet file")


def both(*builds: Build) -> Build:
    def build(spark: SparkSession, root: Path) -> None:
        for one in builds:
            one(spark, root)

    return build


SAME = {
    "plain": (files(f=A), None, {}),
    "all types": (
        by_spark(ALL_TYPES, options={f"{PARQUET}outputTimestampType": "TIMESTAMP_MICROS"}),
        None,
        {},
    ),
    "int96, old lists": (
        by_spark(ALL_TYPES, options={f"{PARQUET}writeLegacyFormat": "true"}),
        None,
        {},
    ),
    "no statistics": (files(f=A), None, {"spark.databricks.delta.stats.collect": "false"}),
    "escaped twice": (at("k=%20x%2Fy/f.parquet"), "k string", {}),
    "equals in value": (at("k=a=b/f.parquet"), "k string", {}),
    "dir above": (at("x/k=1/f"), "k string", {}),
    "dir below": (at("k=1/x/f.parquet"), "k string", {}),
    "hidden partitions": (at("_k=1/.p=2/f.x"), "_k int, `.p` int", {}),
    "hive null": (at("k=__HIVE_DEFAULT_PARTITION__/f"), "k int", {}),
    "bad escape": (at("k=1%zz/f"), "k string", {}),
    "latin escape": (at("k=%C3%A9/f"), "k string", {}),
    "odd names": (at("k=é ü+&;/f#1?%.parquet"), "k string", {}),
    "case of a level": (at("K=1/f"), "k int", {}),
    "timestamp text": (at("t=2020-01-01 10%3A00%3A00/f"), "t timestamp", {}),
    "ntz text": (at("t=2020-01-01 10%3A00%3A00/f"), "t timestamp_ntz", {}),
    "leading zero": (at("m=01/f"), "m int", {}),
    "column in file too": (at("k=1/f", {"z": [1], "K": ["7"], "b": [1]}), "k int", {}),
    "not null, comment": (at("k=1/f"), "k int NOT NULL COMMENT 'hi'", {}),
    "widening": (files(f1=BYTE, f2=INTEGER), None, {}),
    "nested widening": (
        files(
            f1={"s": pa.array([{"a": 1}], pa.struct([("a", pa.int8())]))},
            f2={"s": pa.array([{"a": 1}], pa.struct([("a", pa.int16())]))},
        ),
        None,
        {},
    ),
    "unsigned": (files(f=UNSIGNED), None, {}),
    "ntz off": (
        files(f={"t": pa.array([1], pa.timestamp("us"))}),
        None,
        {f"{PARQUET}inferTimestampNTZ.enabled": "false"},
    ),
    "binary as string": (files(f={"b": [b"x"]}), None, {f"{PARQUET}binaryAsString": "true"}),
    "corrupt left out": (
        both(files(f=A), lambda _, root: text_beside(root)),
        None,
        {"spark.sql.files.ignoreCorruptFiles": "true"},
    ),
    "append only": (
        files(f=A),
        None,
        {f"{DEFAULTS}appendOnly": "true", f"{DEFAULTS}nonsense": "1"},
    ),
    "deletion vectors": (files(f=A), None, {f"{DEFAULTS}enableDeletionVectors": "true"}),
    "change data feed": (files(f=A), None, {f"{DEFAULTS}enableChangeDataFeed": "true"}),
    "indexed columns": (
        files(f={"a": [1], "b": [{"x": 1, "y": 2}], "c": [3]}),
        None,
        {f"{DEFAULTS}dataSkippingNumIndexedCols": "2"},
    ),
}

REFUSED = {
    "unpartitioned call": (at("k=1/f"), None),
    "too many levels": (at("k=1/f"), "k int, j int"),
    "another name": (at("k=1/f"), "j int"),
    "another order": (at("k=1/j=2/f"), "j int, k int"),
    "cast before name": (at("k=x/f"), "j int"),
    "no int": (at("k=x/f"), "k int"),
    "no date": (at("k=2024-13-01/f"), "k date"),
    "no decimal": (at("k=100/f"), "k decimal(3, 1)"),
    "out of range": (at("k=300/f"), "k tinyint"),
    "between levels": (at("k=1/x/j=2/f.parquet"), "k string"),
    "two levels, one hidden": (at("_k=1/.p=2/f.x"), "k string"),
    "only hidden": (at("_a/f.parquet"), None),
    "bad partition name": (at("k k=1/f"), "`k k` int"),
    "bad column name": (at("f", {"a b": [1]}), None),
    "bad nested name": (at("f", {"a": [{"x;y": 1}]}), None),
    "case twice": (at("f", {"a": [1], "A": [2]}), None),
}


def convert_with_reference(spark: SparkSession, root: Path, partition_schema: str | None) -> None:
    from delta.tables import DeltaTable  # noqa: PLC0415 - only where the reference runs

    arguments = () if partition_schema is None else (partition_schema,)
    DeltaTable.convertToDelta(spark, f"parquet.`{root}`", *arguments)


def error_class(error: Exception) -> str:
    """Return the class of the innermost Delta error in a Java exception."""
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    found = ""
    while java is not None:
        text = str(java.getMessage() or "")
        if text.startswith("[DELTA_"):
            found = found or text[1:].partition("]")[0].partition(".")[0]
        java = java.getCause()
    return found


def description(root: Path) -> dict[str, Any]:
    commit = first_commit(root)
    protocol = commit["protocol"][0]
    return {
        "schema": json.loads(commit["metaData"][0]["schemaString"]),
        "partition columns": commit["metaData"][0]["partitionColumns"],
        "configuration": commit["metaData"][0]["configuration"],
        "reader": protocol["minReaderVersion"],
        "reader features": set(protocol.get("readerFeatures", ())),
        "files": {
            decode_path(path): (add["partitionValues"], add["size"], add["modificationTime"])
            for path, add in adds(root).items()
        },
        "parameters": commit["commitInfo"][0]["operationParameters"],
        "metrics": commit["commitInfo"][0]["operationMetrics"],
    }


def statistics(root: Path) -> dict[str, Any]:
    return {decode_path(path): add["stats"] for path, add in adds(root).items()}


def folded(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return values by names without case: which file spells a column may differ."""
    return {name.lower(): value for name, value in values.items()}


def require_no_narrower(ours: Any, theirs: Any, *, lower: bool) -> None:
    """A bound we give must be known to the reference, and lie on the safe side of its own."""
    if isinstance(ours, dict):
        known = folded(theirs)
        for name, value in ours.items():
            require_no_narrower(value, known[name.lower()], lower=lower)
        return
    if isinstance(ours, str) and all(_ZONED.fullmatch(text) for text in (ours, theirs)):
        moments = (dt.datetime.fromisoformat(text) for text in (ours, theirs))
        ours, theirs = (round(moment.timestamp() * 1000) for moment in moments)
    if isinstance(ours, float) and isinstance(theirs, float):
        assert math.isclose(ours, theirs)
        return
    low, high = (ours, theirs) if lower else (theirs, ours)
    if isinstance(ours, int | float | decimal.Decimal):
        assert float(low) <= float(high)
    else:
        assert low <= high


def require_same_statistics(ours: Path, theirs: Path) -> None:
    """Check that counts are equal and bounds are equal or tighter."""
    expected = statistics(theirs)
    for path, stats in statistics(ours).items():
        if stats is None:
            assert expected[path] is None
            continue
        assert stats["numRecords"] == expected[path]["numRecords"]
        assert stats.get("tightBounds") == expected[path].get("tightBounds")
        null_count = folded(expected[path]["nullCount"])
        for name, count in stats["nullCount"].items():
            assert count == null_count[name.lower()]
        for key, lower in (("minValues", True), ("maxValues", False)):
            require_no_narrower(stats.get(key, {}), expected[path].get(key, {}), lower=lower)


@pytest.mark.parametrize("case", SAME)
def test_same_table(spark: SparkSession, tmp_path: Path, case: str) -> None:
    build, partition_schema, conf = SAME[case]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    build(spark, theirs)
    shutil.copytree(theirs, ours, copy_function=shutil.copy2)
    with temporary_settings(spark, conf):
        convert_with_reference(spark, theirs, partition_schema)
        convert_to_delta(spark, f"parquet.`{ours}`", partition_schema)
    assert description(ours) == description(theirs)
    require_same_statistics(ours, theirs)
    frames = [spark.read.format("delta").load(str(root)) for root in (ours, theirs)]
    assert frames[0].schema == frames[1].schema
    rows = [sorted(map(str, frame.collect())) for frame in frames]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("case", REFUSED)
def test_same_refusal(spark: SparkSession, tmp_path: Path, case: str) -> None:
    build, partition_schema = REFUSED[case]
    root = tmp_path / "t"
    root.mkdir()
    build(spark, root)
    with pytest.raises(DeltaError) as ours:
        convert_to_delta(spark, f"parquet.`{root}`", partition_schema)
    assert not (root / "_delta_log").exists()
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever PySpark makes of it
        convert_with_reference(spark, root, partition_schema)
    assert ours.value.getErrorClass() == error_class(theirs.value)
