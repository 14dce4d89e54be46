"""A source has one row a key: known without a count where it can be, counted where it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.recipes import source_rows

SCHEMA = "a INT, b STRING, c DOUBLE, v STRING"


def frame(spark: SparkSession, path: Path, *, in_place: bool, rows: list[Any]) -> DataFrame:
    """Return rows that are staged, or plain files that are read where they lie."""
    made = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    if not in_place:
        return made
    made.write.parquet(str(path))
    return spark.read.parquet(str(path))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note every count of keys by Spark."""
    calls: list[Any] = []
    real = source_rows.require_unique

    def noted(rows: DataFrame, keys: Any) -> None:
        calls.append(tuple(keys))
        real(rows, keys)

    monkeypatch.setattr(source_rows, "require_unique", noted)
    return calls


@pytest.mark.sampled(2)
@pytest.mark.parametrize("in_place", [False, True])
def test_few_keys_are_known_without_a_count(
    spark: SparkSession, tmp_path: Path, counted: list[Any], in_place: bool
) -> None:
    table = str(tmp_path / "t")
    puredelta.write(spark.createDataFrame([(1, "x", 1.0, "old")], SCHEMA), table)
    rows = [(1, "x", 1.0, "new"), (2, "x", 1.0, "new")]
    source = frame(spark, tmp_path / "s", in_place=in_place, rows=rows)
    assert puredelta.upsert(table, source, ["a", "b"]).num_affected_rows == 2
    assert counted == []
    source = frame(spark, tmp_path / "more", in_place=in_place, rows=[*rows, (2, "x", 2.0, "new")])
    with pytest.raises(InvalidRequestError, match=r'2 rows of the key \{"a":2,"b":"x"\}') as caught:
        puredelta.upsert(table, source, ["a", "b"])
    assert caught.value.code is ErrorCode.SOURCE_KEY_NOT_UNIQUE
    assert counted == [("a", "b")]
    with pytest.raises(InvalidRequestError, match="2 rows of the key"):
        puredelta.plan_upsert(table, source, ["a", "b"]).merge.execute()
    assert puredelta.read(spark, table).count() == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "keys", [(-0.0, 0.0), (float("nan"), float("nan")), (None, None)], ids=["zero", "nan", "null"]
)
def test_equal_keys_that_are_not_the_same_are_refused(
    spark: SparkSession, tmp_path: Path, keys: tuple[Any, Any]
) -> None:
    table = str(tmp_path / "t")
    puredelta.write(spark.createDataFrame([(1, "x", 1.0, "old")], SCHEMA), table)
    source = spark.createDataFrame([(n, "x", key, "new") for n, key in enumerate(keys)], SCHEMA)
    with pytest.raises(InvalidRequestError, match="2 rows of the key"):
        puredelta.upsert(table, source, "c")


def test_doubles_are_compared_without_a_join(spark: SparkSession, tmp_path: Path) -> None:
    """NaN is NaN and -0.0 is 0.0: such rows are not rewritten."""
    table = str(tmp_path / "t")
    values = [float("nan"), -0.0, 1.5, None, 2.5]
    rows = [(n, "x", value, "v") for n, value in enumerate(values)]
    puredelta.write(spark.createDataFrame(rows, SCHEMA).coalesce(1), table)
    new = [float("nan"), 0.0, 1.25, 0.5, None]
    source = spark.createDataFrame([(n, "x", value, "v") for n, value in enumerate(new)], SCHEMA)
    result = puredelta.upsert(table, source, "a")
    assert result.num_updated_rows == 3
    assert result.report is puredelta.last_report()
    assert "looked up" in str(result.report)
    found = puredelta.read(spark, table).orderBy("a").selectExpr("CAST(c AS STRING)").collect()
    assert [row[0] for row in found] == ["NaN", "-0.0", "1.25", "0.5", None]
