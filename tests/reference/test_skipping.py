"""No query reads more files than that of delta-spark, but for those that NaN may be in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.spark.write.parquet_job import temporary_settings
from tests.spark.scan.skipping_cases import PARTITIONED_BY, conditions, files_read, many_types

pytestmark = [pytest.mark.reference, pytest.mark.spark]

_NUM_CONDITIONS = 50
_FLOATING = re.compile(r"\b[df]\b")
"""Bounds do not tell whether a file holds NaN, which Spark orders above every number: it is read
here where values above a constant are wanted. delta-spark skips it, NaN or not."""
_LAYOUTS = {
    "plain": ((), {}),
    "partitioned": (PARTITIONED_BY, {}),
    "mapped": (("p_day",), {"delta.columnMapping.mode": "name"}),
    "with vectors": ((), {"delta.enableDeletionVectors": "true"}),
}


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_x_70_no_query_reads_more_files(
    spark: SparkSession, tmp_path: Path, layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "t")
    partition_by, properties = _LAYOUTS[layout]
    puredelta.write(many_types(spark), path, partition_by=list(partition_by), properties=properties)
    if "delta.enableDeletionVectors" in properties:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 30 IN (0, 29)")
    ours = puredelta.read(spark, path)
    theirs = spark.read.format("delta").load(path)
    num_ours = num_theirs = 0
    worse = {}
    for condition in conditions(_NUM_CONDITIONS, seed=list(_LAYOUTS).index(layout)):
        if _FLOATING.search(condition):
            continue
        read = files_read(ours.where(condition))
        they_read = len(theirs.where(condition).inputFiles())
        num_ours, num_theirs = num_ours + read, num_theirs + they_read
        if read > they_read:
            worse[condition] = (read, they_read)
    with capsys.disabled():
        print(f"\n{layout}: {num_ours} files read here, {num_theirs} by delta-spark")  # noqa: T201
    assert worse == {}
    assert num_ours <= num_theirs


_BELOW = ("= {}", "< {}", "<= {}", "<=> {}", "IN ({}, 3.5)", "BETWEEN 7 AND {}")
"""What NaN is not among, so that bounds that leave it out tell all."""
_ABOVE = ("> {}", ">= {}", "<> {}")
"""What NaN may be among, also in a part of the condition."""
_CONSTANTS = ("-5", "0", "29.5", "60.125", "119", "1e3")


@pytest.mark.parametrize("tells_nan", ["false", "true"])
def test_x_70_conditions_on_numbers_without_nan(
    spark: SparkSession, tmp_path: Path, tells_nan: str
) -> None:
    path = str(tmp_path / "t")
    rows = many_types(spark).selectExpr(
        "id",
        "cast(id / 4 AS float) fl",
        "id * 1.5D - 90 do",
        "named_struct('x', IF(id % 3 = 0, NULL, id / 2)) st",
    )
    puredelta.write(rows, path)
    tests = (*_BELOW, *(_ABOVE if tells_nan == "true" else ()))
    wanted = [
        f"{column} {test.format(constant)}"
        for column in ("fl", "do", "st.x")
        for test in tests
        for constant in _CONSTANTS
    ]
    worse = {}
    with temporary_settings(spark, {"spark.puredelta.boundsTellNaN": tells_nan}):
        ours = puredelta.read(spark, path)
        theirs = spark.read.format("delta").load(path)
        for condition in wanted:
            read = files_read(ours.where(condition))
            they_read = len(theirs.where(condition).inputFiles())
            if read > they_read:
                worse[condition] = (read, they_read)
        for condition in wanted[:: len(_CONSTANTS)]:
            found = [
                f.where(condition).select("id").orderBy("id").collect() for f in (ours, theirs)
            ]
            assert found[0] == found[1], condition
    assert worse == {}
