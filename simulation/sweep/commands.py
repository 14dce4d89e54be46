"""The commands of the sweep, each with the table it finds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import puredelta
from puredelta import DeltaTable
from simulation.sweep.feature_drops import DROPS
from simulation.sweep.subject import (
    Subject,
    age,
    nothing,
    small_rows,
    small_table,
    statement,
)


def _parquet(spark: SparkSession, root: Path) -> None:
    small_rows(spark, 0, 20).write.partitionBy("v").parquet(str(root / "table"))
    (root / "table" / "_SUCCESS").unlink()


def _aged(**properties: str) -> Callable[[SparkSession, Path], None]:
    """Return what makes a table whose log has two checkpoints, all of it long ago."""

    def make(spark: SparkSession, root: Path) -> None:
        small_table(delta__checkpointInterval="2", **properties)(spark, root)
        path = str(root / "table")
        for number in range(3):
            puredelta.write(small_rows(spark, 40 + number, 41 + number), path, mode="append")
        age(root / "table" / "_delta_log")

    return make


def _in_row_groups(spark: SparkSession, root: Path) -> None:
    """Make a table of two files with several row groups and five columns."""
    (root / "table").mkdir()
    for number in range(2):
        ids = range(40 * number, 40 * number + 40)
        columns = {"id": ids, "v": [f"old{n % 3}" for n in ids], "w": ids, "x": ids, "y": ids}
        path = root / "table" / f"{number}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=10, write_page_index=True)
    puredelta.sql(spark, f"CONVERT TO DELTA parquet.`{root}/table`")


def _with_garbage(spark: SparkSession, root: Path) -> None:
    small_table()(spark, root)
    DeltaTable.forPath(spark, str(root / "table")).delete("id < 10")
    orphans = root / "table" / "orphans"
    orphans.mkdir()
    for file in list((root / "table").rglob("*.parquet")):
        shutil.copy(file, orphans)
    age(orphans)


def _overwritten(spark: SparkSession, root: Path) -> None:
    small_table()(spark, root)
    puredelta.write(small_rows(spark, 0, 5, "new"), str(root / "table"), mode="overwrite")


def _source(spark: SparkSession, root: Path) -> None:
    puredelta.write(small_rows(spark, 0, 20), str(root / "source"))


def _database(spark: SparkSession, root: Path) -> None:
    spark.sql("DROP DATABASE IF EXISTS sweep CASCADE")
    spark.sql(f"CREATE DATABASE sweep LOCATION '{root}'")


def _parquet_entry(spark: SparkSession, root: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS sweep_parquet")
    spark.sql(
        "CREATE TABLE sweep_parquet (id BIGINT, v STRING) USING parquet PARTITIONED BY (v) "
        f"LOCATION '{root}/table'"
    )
    spark.sql("MSCK REPAIR TABLE sweep_parquet")


def _on(root: str, spark: SparkSession) -> DeltaTable:
    return DeltaTable.forPath(spark, f"{root}/table")


def _merge(spark: SparkSession, root: str) -> object:
    return (
        _on(root, spark)
        .alias("t")
        .merge(small_rows(spark, 10, 40, "new").alias("s"), "t.id = s.id")
        .whenMatchedDelete("t.id % 5 = 0")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


def _merge_in_place(spark: SparkSession, root: str) -> object:
    source = small_rows(spark, 30, 50, "new").alias("s")
    merge = _on(root, spark).alias("t").merge(source, "t.id = s.id")
    return merge.whenMatchedUpdate(set={"v": "s.v"}).execute()


def _append(spark: SparkSession, root: str) -> object:
    return puredelta.write(small_rows(spark, 90, 99, "new"), f"{root}/table", mode="append")


_VECTORS = {"delta__enableDeletionVectors": "true"}
_CHANGES = {"delta__enableChangeDataFeed": "true"}

COMMANDS: Mapping[str, Subject] = {
    "merge": Subject(prepare=small_table(), run=_merge),
    "merge, vectors": Subject(prepare=small_table(**_VECTORS), run=_merge),
    "merge, change feed": Subject(prepare=small_table(**_CHANGES), run=_merge),
    "merge, in place": Subject(prepare=_in_row_groups, run=_merge_in_place),
    "update": Subject(
        prepare=small_table(), run=lambda s, r: _on(r, s).update("id % 2 = 0", {"v": "'x'"})
    ),
    "delete": Subject(prepare=small_table(), run=lambda s, r: _on(r, s).delete("id % 2 = 0")),
    "delete, vectors": Subject(
        prepare=small_table(**_VECTORS), run=lambda s, r: _on(r, s).delete("id % 2 = 0")
    ),
    "update, in place": Subject(
        prepare=_in_row_groups, run=lambda s, r: _on(r, s).update("id % 9 = 0", {"v": "'x'"})
    ),
    "delete, row groups": Subject(
        prepare=_in_row_groups, run=lambda s, r: _on(r, s).delete("id IN (3, 4, 45)")
    ),
    "insert": Subject(prepare=small_table(), run=_append),
    "overwrite": Subject(
        prepare=small_table(),
        run=lambda s, r: puredelta.write(
            small_rows(s, 0, 5, "new"), f"{r}/table", mode="overwrite"
        ),
    ),
    "create": Subject(
        prepare=nothing, run=lambda s, r: puredelta.write(small_rows(s, 0, 9), f"{r}/table")
    ),
    "create, named": Subject(
        prepare=nothing,
        run=statement(
            "CREATE TABLE sweep_table USING delta LOCATION '{root}/table' "
            "AS SELECT id, 'x' AS v FROM range(9)"
        ),
        table="sweep_table",
    ),
    "convert": Subject(
        prepare=_parquet,
        run=statement("CONVERT TO DELTA parquet.`{root}/table` PARTITIONED BY (v STRING)"),
    ),
    "optimize": Subject(
        prepare=small_table(), run=lambda s, r: _on(r, s).optimize().executeCompaction()
    ),
    "vacuum": Subject(prepare=_with_garbage, run=lambda s, r: _on(r, s).vacuum()),
    "restore": Subject(prepare=_overwritten, run=lambda s, r: _on(r, s).restoreToVersion(0)),
    "clone": Subject(
        prepare=_source,
        run=statement("CREATE TABLE delta.`{root}/table` SHALLOW CLONE delta.`{root}/source`"),
    ),
    "checkpoint": Subject(prepare=small_table(delta__checkpointInterval="2"), run=_append),
    "clean-up": Subject(prepare=_aged(), run=_append),
    **DROPS,
}

IN_CATALOG: Mapping[str, Subject] = {
    "create, managed": Subject(
        prepare=nothing,
        enter=_database,
        run=statement("CREATE TABLE sweep.table USING delta AS SELECT id, 'x' AS v FROM range(9)"),
        table="sweep.table",
        is_managed=True,
    ),
    "convert, named": Subject(
        prepare=_parquet,
        enter=_parquet_entry,
        run=statement("CONVERT TO DELTA sweep_parquet"),
        table="sweep_parquet",
    ),
}
"""Commands that need the catalog of this session."""

EVERY: Mapping[str, Subject] = {**COMMANDS, **IN_CATALOG}
