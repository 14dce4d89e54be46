"""Streams of delta-spark and of puredelta: the same batches, and one checkpoint for both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from puredelta.commands.read_table import read_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def delivered(rows: DataFrame, checkpoint: Path) -> list[list[str]]:
    batches: list[list[str]] = []

    def take(batch: DataFrame, _: int) -> None:
        if rows := sorted(map(str, batch.drop("_commit_timestamp").collect())):
            batches.append(rows)

    writer = rows.writeStream.foreachBatch(take).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    return batches


def offsets(checkpoint: Path) -> list[str]:
    logs = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [path.read_text().splitlines()[2] for path in logs]


def theirs(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(path)


def ours(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return read_stream(spark, path, options)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("streamed") / "t")
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, k INT) USING delta PARTITIONED BY (k) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for n in range(3):
        rows = spark.range(n * 10, n * 10 + 10, 1, 2).selectExpr("id", "CAST(id % 2 AS INT) AS k")
        rows.write.format("delta").mode("append").save(path)
    spark.sql(f"UPDATE {name} SET id = -id WHERE id IN (3, 14)")
    spark.sql(f"OPTIMIZE {name}")
    spark.sql(f"DELETE FROM {name} WHERE id = 25")
    return path


CASES: dict[str, dict[str, str]] = {
    "whole": {"maxFilesPerTrigger": "2"},
    "from a version": {
        "startingVersion": "1",
        "maxFilesPerTrigger": "3",
        "ignoreChanges": "true",
    },
    "bytes": {"startingVersion": "1", "maxBytesPerTrigger": "1", "skipChangeCommits": "true"},
    "changes": {"readChangeFeed": "true", "startingVersion": "0", "maxFilesPerTrigger": "1"},
    "changes of all": {"readChangeFeed": "true", "maxFilesPerTrigger": "2"},
    "left out": {"excludeRegex": "part-00000", "maxFilesPerTrigger": "2"},
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_batches(spark: SparkSession, tmp_path: Path, table: str, case: str) -> None:
    options = CASES[case]
    a = delivered(theirs(spark, table, **options), tmp_path / "a")
    b = delivered(ours(spark, table, **options), tmp_path / "b")
    assert b == a


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_one_checkpoint_for_both(
    spark: SparkSession, tmp_path: Path, table: str, first: str
) -> None:
    """Each takes what has come since, with a limit that leaves places inside of commits."""
    path, checkpoint = str(tmp_path / "t"), tmp_path / "c"
    turns: list[Any] = [theirs, ours] if first == "theirs" else [ours, theirs]
    seen: list[str] = []
    for n, read in enumerate([*turns, *turns]):
        rows = spark.range(n * 10, n * 10 + 10, 1, 4)
        rows.write.format("delta").mode("append").save(path)
        options = {"maxFilesPerTrigger": "3", "startingVersion": "0"}
        batches = delivered(read(spark, path, **options), checkpoint)
        seen += [row for batch in batches for row in batch]
    assert sorted(seen) == sorted(f"Row(id={n})" for n in range(40))
    kinds = {tuple(json.loads(text))[:5] for text in offsets(checkpoint)}
    assert len(kinds) == 1, "the same keys in the same order"
