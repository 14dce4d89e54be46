"""What an operator does with a table and sees of it, over Connect by path."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from puredelta.api import sql, write
from puredelta.tables import DeltaTable


def maintenance(spark: SparkSession, directory: Path) -> Any:
    """Replace, compact, empty, restore, convert: rows after each, and the history of it all."""
    path = str(directory / "t")
    rows = spark.sql("SELECT id, 'a' AS v FROM range(10)")
    write(rows, path, properties={"delta.enableChangeDataFeed": "true"})
    table = DeltaTable.forPath(spark, path)

    def counts() -> list[int]:
        return list(table.toDF().selectExpr("count(*)", "count_if(v = 'b')").collect()[0])

    replaced = rows.where("id < 3").selectExpr("id", "'b' AS v")
    write(replaced, path, mode="overwrite", options={"replaceWhere": "id < 5"})
    found: list[Any] = [counts()]
    table.addFeatureSupport("deletionVectors")
    table.optimize().executeZOrderBy("id").collect()
    table.vacuum()
    found.append(counts())
    table.restoreToVersion(0).collect()
    found.append(counts())
    spark.range(4).write.parquet(f"{directory}/p")
    sql(spark, f"CONVERT TO DELTA parquet.`{directory}/p`")
    converted = DeltaTable.forPath(spark, f"{directory}/p")
    found.append(converted.toDF().count())
    changes = sql(spark, f"SELECT * FROM table_changes_by_path('{path}', 1, 1)")
    kinds = changes.groupBy("_change_type").count().collect()
    found.append(sorted(list(kind) for kind in kinds))
    found.append(converted.detail().collect()[0].numFiles)
    return [*found, [row.operation for row in table.history().collect()][::-1]]


def progress(spark: SparkSession, directory: Path) -> Any:
    """Whether a slow MERGE shows its stage and its tasks, and what stays of that afterwards."""
    path = str(directory / "shown")
    write(spark.range(10), path)

    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(5)  # the server says how far it is every two seconds or so
            yield batch

    source = spark.range(5, 15, 1, 1).mapInArrow(slow, "id bigint").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    shown = io.StringIO()
    spark.conf.set("spark.puredelta.progress", "on")
    try:
        with redirect_stderr(shown):
            merge.execute()
    finally:
        spark.conf.unset("spark.puredelta.progress")
    lines = shown.getvalue().split("\r")
    handlers = spark.client._progress_handlers
    return [
        any(": 3 source" in line for line in lines),
        any(re.search(r", \d+/\d+ tasks ", line) for line in lines),
        lines[-1].strip(),
        len(handlers),
    ]
