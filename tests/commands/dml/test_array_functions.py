"""M-51: functions that compare elements of arrays compare them as the column holds them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import puredelta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "array_distinct(s.l)": [1, 2],
    "array_union(s.l, s.l)": [1, 2],
    "array_remove(s.l, named_struct('a', 1.9D))": [2],
    "array_except(s.l, array(named_struct('a', 2.8D)))": [1],
    "array_intersect(s.l, array(named_struct('a', 2.8D)))": [2],
    "array_distinct(array_union(s.l, s.l))": [1, 2],
    "filter(s.l, x -> true)": [1, 1, 2],
}


@pytest.fixture
def source(spark: SparkSession) -> str:
    return (
        "SELECT id, array(named_struct('a', 1.2D), named_struct('a', 1.3D), "
        "named_struct('a', 2.4D)) l FROM range(7)"
    )


def test_operands_are_cast_not_results(spark: SparkSession, tmp_path: Path, source: str) -> None:
    path = str(tmp_path / "table")
    puredelta.write(spark.sql("SELECT id, array(named_struct('a', 0)) l FROM range(7)"), path)
    clauses = " ".join(
        f"WHEN MATCHED AND t.id = {n} THEN UPDATE SET l = {value}" for n, value in enumerate(VALUES)
    )
    text = f"MERGE INTO delta.`{path}` t USING ({source}) s ON t.id = s.id {clauses}"
    puredelta.sql(spark, text)
    rows = puredelta.read(spark, path).orderBy("id").collect()
    assert [[element.a for element in row.l] for row in rows] == list(VALUES.values())
