"""The commands of the sweep, each with the table it finds."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta import DeltaTable

_LONG_AGO = timedelta(days=40).total_seconds()


def _nothing(_: SparkSession, __: Path) -> None:
    """Find nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One command."""

    prepare: Callable[[SparkSession, Path], None]
    """Make what it finds, once."""
    run: Callable[[SparkSession, str], object]
    """Run it in a directory, named as users name one."""
    table: str | None = None
    """Its name in the catalog, if it makes an entry there."""
    is_managed: bool = False
    """Whether the directory is the catalog's, so that the entry comes first."""
    enter: Callable[[SparkSession, Path], None] = _nothing
    """Tell the catalog of a copy of it."""


def _rows(spark: SparkSession, first: int, end: int, value: str = "old") -> DataFrame:
    return spark.range(first, end, 1, 2).selectExpr("id", f"concat('{value}', id % 3) AS v")


def _table(**properties: str) -> Callable[[SparkSession, Path], None]:
    """Return what makes a table of two versions with a few files."""

    def make(spark: SparkSession, root: Path) -> None:
        settings = {name.replace("__", "."): value for name, value in properties.items()}
        path = str(root / "table")
        puredelta.write(_rows(spark, 0, 20), path, properties=settings)
        puredelta.write(_rows(spark, 20, 30), path, mode="append")

    return make


def _parquet(spark: SparkSession, root: Path) -> None:
    _rows(spark, 0, 20).write.partitionBy("v").parquet(str(root / "table"))
    (root / "table" / "_SUCCESS").unlink()


def _aged(**properties: str) -> Callable[[SparkSession, Path], None]:
    """Return what makes a table whose log has two checkpoints, all of it long ago."""

    def make(spark: SparkSession, root: Path) -> None:
        _table(delta__checkpointInterval="2", **properties)(spark, root)
        path = str(root / "table")
        for number in range(3):
            puredelta.write(_rows(spark, 40 + number, 41 + number), path, mode="append")
        then = time.time() - _LONG_AGO
        for file in (root / "table" / "_delta_log").iterdir():
            os.utime(file, (then, then))

    return make


def _with_garbage(spark: SparkSession, root: Path) -> None:
    _table()(spark, root)
    DeltaTable.forPath(spark, str(root / "table")).delete("id < 10")
    orphans = root / "table" / "orphans"
    orphans.mkdir()
    for file in list((root / "table").rglob("*.parquet")):
        shutil.copy(file, orphans)
    then = time.time() - _LONG_AGO
    for file in orphans.iterdir():
        os.utime(file, (then, then))


def _overwritten(spark: SparkSession, root: Path) -> None:
    _table()(spark, root)
    puredelta.write(_rows(spark, 0, 5, "new"), str(root / "table"), mode="overwrite")


def _source(spark: SparkSession, root: Path) -> None:
    puredelta.write(_rows(spark, 0, 20), str(root / "source"))


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
        .merge(_rows(spark, 10, 40, "new").alias("s"), "t.id = s.id")
        .whenMatchedDelete("t.id % 5 = 0")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


def _append(spark: SparkSession, root: str) -> object:
    return puredelta.write(_rows(spark, 90, 99, "new"), f"{root}/table", mode="append")


def _sql(text: str) -> Callable[[SparkSession, str], object]:
    def run(spark: SparkSession, root: str) -> object:
        return puredelta.sql(spark, text.replace("{root}", root))

    return run


_VECTORS = {"delta__enableDeletionVectors": "true"}
_CHANGES = {"delta__enableChangeDataFeed": "true"}

COMMANDS: Mapping[str, Subject] = {
    "merge": Subject(prepare=_table(), run=_merge),
    "merge, vectors": Subject(prepare=_table(**_VECTORS), run=_merge),
    "merge, change feed": Subject(prepare=_table(**_CHANGES), run=_merge),
    "update": Subject(
        prepare=_table(), run=lambda s, r: _on(r, s).update("id % 2 = 0", {"v": "'x'"})
    ),
    "delete": Subject(prepare=_table(), run=lambda s, r: _on(r, s).delete("id % 2 = 0")),
    "delete, vectors": Subject(
        prepare=_table(**_VECTORS), run=lambda s, r: _on(r, s).delete("id % 2 = 0")
    ),
    "insert": Subject(prepare=_table(), run=_append),
    "overwrite": Subject(
        prepare=_table(),
        run=lambda s, r: puredelta.write(_rows(s, 0, 5, "new"), f"{r}/table", mode="overwrite"),
    ),
    "create": Subject(
        prepare=_nothing, run=lambda s, r: puredelta.write(_rows(s, 0, 9), f"{r}/table")
    ),
    "create, named": Subject(
        prepare=_nothing,
        run=_sql(
            "CREATE TABLE sweep_table USING delta LOCATION '{root}/table' "
            "AS SELECT id, 'x' AS v FROM range(9)"
        ),
        table="sweep_table",
    ),
    "convert": Subject(
        prepare=_parquet,
        run=_sql("CONVERT TO DELTA parquet.`{root}/table` PARTITIONED BY (v STRING)"),
    ),
    "optimize": Subject(
        prepare=_table(), run=lambda s, r: _on(r, s).optimize().executeCompaction()
    ),
    "vacuum": Subject(prepare=_with_garbage, run=lambda s, r: _on(r, s).vacuum()),
    "restore": Subject(prepare=_overwritten, run=lambda s, r: _on(r, s).restoreToVersion(0)),
    "clone": Subject(
        prepare=_source,
        run=_sql("CREATE TABLE delta.`{root}/table` SHALLOW CLONE delta.`{root}/source`"),
    ),
    "checkpoint": Subject(prepare=_table(delta__checkpointInterval="2"), run=_append),
    "clean-up": Subject(prepare=_aged(), run=_append),
}

IN_CATALOG: Mapping[str, Subject] = {
    "create, managed": Subject(
        prepare=_nothing,
        enter=_database,
        run=_sql("CREATE TABLE sweep.table USING delta AS SELECT id, 'x' AS v FROM range(9)"),
        table="sweep.table",
        is_managed=True,
    ),
    "convert, named": Subject(
        prepare=_parquet,
        enter=_parquet_entry,
        run=_sql("CONVERT TO DELTA sweep_parquet"),
        table="sweep_parquet",
    ),
}
"""Commands that need the catalog of this session."""

EVERY: Mapping[str, Subject] = {**COMMANDS, **IN_CATALOG}
