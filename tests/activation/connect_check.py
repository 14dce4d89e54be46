"""What an activated Connect session does by path and by name, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError


def activated(spark: SparkSession, directory: Path) -> Any:
    """Write, merge and read through the doors; then the error classes of what cannot be."""
    assert puredelta.activate(spark)
    try:
        return _through_the_doors(spark, f"delta.`{directory}/t`", str(directory / "s"))
    finally:
        puredelta.deactivate()


def _through_the_doors(spark: SparkSession, name: str, other: str) -> Any:
    rows = spark.sql("SELECT id, id % 2 AS p FROM range(4)")
    rows.writeTo(name).using("delta").partitionedBy("p").create()
    rows.writeTo(name).append()
    rows.where("p = 1").writeTo(name).overwritePartitions()
    news = spark.sql("SELECT 1L AS id, 9L AS p UNION ALL SELECT 7L, 9L").alias("s")
    merge = news.mergeInto(name, F.expr(f"{name.removeprefix('delta.')}.id = s.id"))
    merge.whenMatched().delete().whenNotMatched().insertAll().merge()
    rows.write.format("delta").save(other)
    found = sorted(map(list, spark.sql(f"SELECT * FROM {name}").collect()))
    of_seven = (F.col("id") == 7) & F.col("p").isin(1, 9) & (F.col("p").cast("string") != "x'y")
    spark.sql("SELECT 7 AS id, 1 AS p").writeTo(name).overwrite(of_seven)
    spark.sql("SELECT 7 AS id, 5 AS p").writeTo(name).overwrite(F.expr("id = 7"))
    found.append(max(map(list, spark.sql(f"SELECT * FROM {name}").collect())))
    even = F.udf(lambda n: n % 2 == 0, "boolean")
    stream = spark.readStream.format("rate").load()
    refused: list[Callable[[], Any]] = [
        lambda: rows.writeTo(name).overwrite(even("id")),
        lambda: stream.writeStream.format("delta").start(other),
        lambda: rows.write.format("delta").saveAsTable("named"),
    ]
    rows.writeTo("named").using("delta").tableProperty("location", f"{other}-named").create()
    rows.write.format("delta").mode("append").saveAsTable("named")
    builder = puredelta.DeltaTable.create(spark).tableName("n").addColumn("a", "INT")
    empty = builder.location(f"{other}-n").execute().toDF()
    named = [puredelta.DeltaTable.forName(spark, "named").toDF().count(), empty.columns]
    reader = spark.readStream.format("delta")
    streams: list[Callable[[], Any]] = [
        lambda: reader.option("schemaTrackingLocation", "/c").load(other),
        lambda: spark.readStream.option("schemaLocation", "/c").table(f"delta.`{other}`"),
        lambda: spark.readStream.load(other, "delta", startingVersion="soon"),
        lambda: spark.readStream.load(other, "delta", startingTimestamp="2020-01-01"),
    ]
    errors = [[_error_class(call) for call in calls] for calls in (refused, streams)]
    return [found, *errors, named]


def activated_sql(spark: SparkSession, directory: Path) -> Any:
    """Every kind of statement that changes rows, as text; then what is refused, and as what."""
    rows = spark.sql("SELECT id, id % 2 AS p FROM range(10)")
    puredelta.write(rows, str(directory / "t"))
    table = f"delta.`{directory}/t`"
    merge = (
        f"MERGE INTO {table} t USING (SELECT 1L id, 9L p UNION ALL SELECT 77, 9) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    refused = (
        f"MERGE INTO {table} t USIN s",
        f"DELETE FROM {table} WHER id = 1",
        f"CREATE TEMPORARY VIEW v AS SELECT * FROM {table}",
        f"CACHE TABLE c AS SELECT * FROM {table}",
        f"BEGIN DELETE FROM {table} WHERE id = 1; END",
    )
    unknown = f"UPDATE {table} SET nope = 1"
    assert puredelta.activate(spark)
    try:
        plan = spark.sql(f"EXPLAIN {merge}").first()
        changed = [list(row) for text in (
            merge,
            f"UPDATE {table} SET p = 8 WHERE id = 2",
            f"DELETE FROM {table} WHERE id = 3",
            f"EXECUTE IMMEDIATE 'DELETE FROM {table} WHERE id = ?' USING 4",
        ) for row in spark.sql(text).collect()]  # fmt: skip
        spark.sql(f"UPDATE {table} SET p = :p WHERE id = :id", args={"p": 7, "id": 5})
        left = spark.sql(f"SELECT p, count(*) FROM {table} GROUP BY p ORDER BY p").collect()
        errors = [_error_class(lambda text=text: spark.sql(text)) for text in refused]  # type: ignore[misc]
        plain = spark.sql("BEGIN SELECT 1 AS one; END").collect()
        view = spark.sql("CREATE TEMPORARY VIEW v AS SELECT 'delta.`/x`' AS text").collect()
        proposed = _error(lambda: spark.sql(unknown)).partition("? [")[2].partition("]")[0]
        return [
            str(plan[0]).partition(":")[0][:8] if plan else "",
            changed,
            list(map(list, left)),
            errors,
            [list(map(list, plain)), view],
            sorted(proposed.split(", ")),
        ]
    finally:
        puredelta.deactivate()


def _error(call: Callable[[], Any]) -> str:
    try:
        call()
    except AnalysisException as error:
        return str(error)
    return "nothing"


def _error_class(call: Callable[[], Any]) -> str:
    try:
        call()
    except (DeltaError, AnalysisException) as error:
        return error.getCondition() or ""
    return "nothing"
