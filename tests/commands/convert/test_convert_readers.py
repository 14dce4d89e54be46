"""Converted tables as delta-rs and Polars see them."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from puredelta.api import read
from puredelta.commands.convert.convert_to_delta import convert_to_delta
from tests.commands.convert.directories import write
from tests.commands.convert.spark_directories import ALL_TYPES, rows, rows_of

deltalake = pytest.importorskip("deltalake")
pl = pytest.importorskip("polars")


def test_every_type(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    spark.sql(ALL_TYPES).write.parquet(str(root))
    convert_to_delta(spark, f"parquet.`{root}`")
    table = deltalake.DeltaTable(root).to_pyarrow_table()
    assert rows(table) == rows_of(spark.read.parquet(str(root)), table.column_names)


def test_c_46_special_characters_in_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    values = ["a b", "%!@#$^&*-?.+<_>|/", "é ü", "x=y", "10:00", "", None, "#", "[", "日本"]
    frame = spark.createDataFrame(list(enumerate(values)), "id int, p string")
    root = tmp_path / "t"
    frame.write.partitionBy("p").parquet(str(root))
    convert_to_delta(spark, f"parquet.`{root}`", "p string")
    expected = {number: value or None for number, value in enumerate(values)}
    for found in (
        deltalake.DeltaTable(root).to_pyarrow_table().to_pylist(),
        pl.scan_delta(str(root)).collect().to_dicts(),
    ):
        assert {row["id"]: row["p"] for row in found} == expected


def test_partition_types(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    frame = spark.sql(
        """select id, cast(id as int) i, date'2024-01-30' + cast(id as int) d, id > 1 b,
        timestamp'2024-01-01 10:00:00.5' t, cast(id as decimal(5, 2)) x, id / 4 f
        from range(4)"""
    )
    frame.write.partitionBy("i", "d", "b", "t", "x", "f").parquet(str(root))
    ddl = "i int, d date, b boolean, t timestamp, x decimal(5, 2), f double"
    convert_to_delta(spark, f"parquet.`{root}`", ddl)
    table = deltalake.DeltaTable(root).to_pyarrow_table()
    assert rows(table) == rows_of(frame, table.column_names)


def test_nan_rows_survive_the_pruning_of_other_readers(spark: SparkSession, tmp_path: Path) -> None:
    """C-51b: "keeps NaN rows for finite-threshold predicate"."""
    write(tmp_path, "f", {"x": [1.0, math.nan], "y": pa.array([1.0, 2.0], pa.float32())})
    convert_to_delta(spark, f"parquet.`{tmp_path}`")
    query = "y > 1.5 and not x < 1"
    others = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path))
    found = pa.table(others.execute(f"select * from t where {query}").read_all())
    assert [math.isnan(x) for x in found["x"].to_pylist()] == [True]
    assert pl.scan_delta(str(tmp_path)).filter(pl.col("y") > 1.5).collect().height == 1
    assert read(spark, tmp_path).where(query).count() == 1
