"""What writes of a Connect client say of rows that come from the table itself (X-29a)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable


def own_reads(spark: SparkSession, directory: Path) -> Any:
    """Append rows of many origins; tell of each whether that was a blind append, or its error."""
    path, other = str(directory / "own table"), str(directory / "other")
    for root in (path, other):
        puredelta.write(spark.range(2), root)
    stale = puredelta.read(spark, path)
    puredelta.read(spark, other).createOrReplaceTempView("other_rows")

    def appended(rows: DataFrame) -> str:
        try:
            version = puredelta.write(rows, path, mode="append").version
        except DeltaError as error:
            return error.code.error_class
        entry = TableLog.open(path).history(limit=1)[0]
        assert entry.commit_info is not None
        assert entry.version == version
        return "blind" if entry.commit_info.is_blind_append else "reads"

    def of_view(text: str) -> Callable[[], DataFrame]:
        def rows() -> DataFrame:
            puredelta.read(spark, path).createOrReplaceTempView("own_rows")
            return spark.sql(text)

        return rows

    origins: dict[str, Callable[[], DataFrame]] = {
        "local": lambda: spark.range(1),
        "text": lambda: spark.sql("SELECT 5L AS id"),
        "other": lambda: puredelta.read(spark, other),
        "view of other": lambda: spark.table("other_rows"),
        "own": lambda: puredelta.read(spark, path).limit(1),
        "joined": lambda: spark.range(1).join(puredelta.read(spark, path), "id").limit(1),
        "older": lambda: stale,
        "version": lambda: puredelta.read(spark, path, version=0),
        "view of own": of_view("SELECT max(id) AS id FROM own_rows"),
        "view in a subquery": of_view("SELECT (SELECT max(id) FROM own_rows) AS id"),
        "local again": lambda: spark.range(1),
        "older view": lambda: spark.table("own_rows"),
    }
    found = {name: appended(rows()) for name, rows in origins.items()}
    empty = str(directory / "empty")
    puredelta.write(spark.range(2).where("false"), empty)
    nothing = puredelta.read(spark, empty)
    puredelta.write(spark.range(1), empty, mode="append")
    path = empty
    found["older and empty"] = appended(nothing)
    return {**found, "renewed": _renewed(spark, directory)}


def _renewed(spark: SparkSession, directory: Path) -> list[Any]:
    """Frames of an older version show the newest one to a write, in any part of a plan."""
    path = str(directory / "renewed")
    puredelta.write(spark.range(3).selectExpr("id", "id * 10 AS v"), path)
    rows = puredelta.read(spark, path)
    both = rows.alias("a").join(rows.alias("b"), F.col("a.id") == F.col("b.id") + 1)
    united = rows.union(rows).where("id > 4").distinct()
    found: list[Any] = []
    for n, stale in enumerate((rows.where(rows["id"] == 3), both.select("a.id", "b.v"), united)):
        puredelta.write(spark.range(3 + n, 4 + n).selectExpr("id", "id AS v"), path, mode="append")
        puredelta.write(stale, path, mode="overwrite")
        found.append(sorted(map(list, puredelta.read(spark, path).collect())))
    merge = DeltaTable.forPath(spark, path).alias("t").merge(rows.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"v": rows["v"] + 1}).execute()
    found.append(sorted(map(list, puredelta.read(spark, path).collect())))
    for change in ("ADD COLUMNS (w INT)", "ALTER COLUMN id COMMENT 'c'", "DROP COLUMN v"):
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES {_MAPPED}")
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` {change}")
        try:
            puredelta.write(rows, path, mode="append")
        except DeltaError as error:
            found.append(error.code.error_class)
    return [*found, puredelta.read(spark, path).count()]


_MAPPED = "('delta.columnMapping.mode' = 'name')"
