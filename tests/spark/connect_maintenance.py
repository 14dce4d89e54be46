"""What an operator does with a table, which a Connect session can do by path."""

from __future__ import annotations

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
