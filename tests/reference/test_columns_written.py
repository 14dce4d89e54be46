"""Tables that fill columns themselves: delta-spark creates them, then both write in turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


def merges(spark: SparkSession, path: Path) -> dict[str, Callable[[DataFrame], Any]]:
    """The same call on either implementation: upsert by ``k``, and touch what no row matches."""
    import delta.tables  # noqa: PLC0415 - only where the reference is installed

    def upsert(table: Any, rows: DataFrame, given: dict[str, str]) -> None:
        (
            table.alias("t")
            .merge(rows.alias("s"), "t.k = s.k")
            .whenMatchedUpdate(set={"v": "s.v"})
            .whenNotMatchedInsert(values=given)
            .whenNotMatchedBySourceUpdate("t.k < 0", set={"v": "'old'"})
            .execute()
        )

    given = {"k": "s.k", "v": "s.v"}
    return {
        "ours": lambda rows: upsert(DeltaTable.forPath(spark, str(path)), rows, given),
        "theirs": lambda rows: upsert(
            delta.tables.DeltaTable.forPath(spark, str(path)), rows, given
        ),
    }


def in_turns(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    """Write with both: ours, theirs, ours again; both must read the same."""
    by = merges(spark, path)
    rows = "select explode(array({})) k, '{}' v"
    puredelta.write(spark.sql(rows.format("-1, 1, 2", "a")), str(path), mode="append")
    by["theirs"](spark.sql(rows.format("2, 3", "bcd")))
    by["ours"](spark.sql(rows.format("3, 4, 5", "ef")))
    by["theirs"](spark.sql(rows.format("5, 6", "g")))
    spark.sql(rows.format("7", "h")).write.format("delta").mode("append").save(str(path))
    by["ours"](spark.sql(rows.format("7, 8", "i")))
    ours = puredelta.read(spark, str(path)).sort("k").collect()
    theirs = spark.read.format("delta").load(str(path)).sort("k").collect()
    assert [r.asDict(recursive=True) for r in ours] == [r.asDict(recursive=True) for r in theirs]
    return [r.asDict(recursive=True) for r in ours]


def test_m100_m101_m106_defaults_generated_columns_and_char(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (k INT, v VARCHAR(3), d STRING DEFAULT concat('x', 'y'), "
        "c CHAR(4) DEFAULT 'ab', g INT GENERATED ALWAYS AS (length(V) + K), "
        "p STRING GENERATED ALWAYS AS (substring(v, 1, 1))) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', "
        "'delta.enableChangeDataFeed' = 'true')"
    )
    before = TableLog.open(str(path)).snapshot().config
    rows = in_turns(spark, path)
    assert [(r["k"], r["v"], r["g"], r["p"]) for r in rows] == [
        (-1, "old", 2, "o"),
        (1, "a", 2, "a"),
        (2, "bcd", 5, "b"),
        (3, "ef", 5, "e"),
        (4, "ef", 6, "e"),
        (5, "g", 6, "g"),
        (6, "g", 7, "g"),
        (7, "i", 8, "i"),
        (8, "i", 9, "i"),
    ]
    assert {(r["d"], r["c"]) for r in rows} == {("xy", "ab  ")}
    assert TableLog.open(str(path)).snapshot().config == before


@pytest.mark.parametrize(("start", "step"), [(10, 5), (-1, -2)])
def test_m102_identity_columns(spark: SparkSession, tmp_path: Path, start: int, step: int) -> None:
    import delta.tables  # noqa: PLC0415 - only where the reference is installed

    path = tmp_path / "t"
    (
        delta.tables.DeltaTable.create(spark)
        .location(str(path))
        .addColumn(
            "id",
            "BIGINT",
            generatedByDefaultAs=delta.tables.IdentityGenerator(start=start, step=step),
        )
        .addColumn("k", "INT")
        .addColumn("v", "STRING")
        .execute()
    )
    rows = in_turns(spark, path)
    values = [r["id"] for r in rows]
    assert len(set(values)) == len(rows) == 9
    assert all((value - start) % step == 0 for value in values)
    mark = TableLog.open(str(path)).snapshot().config.identity_columns["id"].high_water_mark
    assert mark == (max if step > 0 else min)(values)
    assert [values[0], values[1], values[2]] == [start, start + step, start + 2 * step]


def test_v2_checkpoints_and_domains(spark: SparkSession, tmp_path: Path) -> None:
    """M-112: what a MERGE does not understand stays; delta-spark reads our checkpoint."""
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (k INT, v STRING) USING delta CLUSTER BY (k) TBLPROPERTIES "
        "('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2', "
        "'delta.enableInCommitTimestamps' = 'true')"
    )
    domains = TableLog.open(str(path)).snapshot().domain_metadata
    rows = in_turns(spark, path)
    assert len(rows) == 9
    snapshot = TableLog.open(str(path)).snapshot()
    assert snapshot.domain_metadata == domains
    assert snapshot.in_commit_timestamp_ms is not None
    log = path / "_delta_log"
    tops = sorted(f.name for f in log.glob("*.checkpoint.*.json") if not f.name.startswith("."))
    assert [int(name[:20]) for name in tops] == [2, 4, 6]
    assert list(log.glob("*.checkpoint.parquet")) == []
    # Without the commits before it, the newest checkpoint is all there is.
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 6
    for version in range(6):
        (log / f"{version:020d}.json").unlink()
    spark.catalog.clearCache()
    copied = tmp_path / "copy"
    path.rename(copied)
    assert spark.read.format("delta").load(str(copied)).count() == 9
