"""What an activated Connect session does by path, and what it refuses by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    stream = spark.readStream.format("rate").load()
    refused: list[Callable[[], Any]] = [
        lambda: rows.writeTo(name).overwrite(F.col("p") == 1),
        lambda: rows.writeTo("named").using("delta").create(),
        lambda: rows.write.format("delta").saveAsTable("named"),
        lambda: stream.writeStream.format("delta").start(other),
        lambda: puredelta.DeltaTable.create(spark).tableName("n").addColumn("a", "INT").execute(),
    ]
    reader = spark.readStream.format("delta")
    streams: list[Callable[[], Any]] = [
        lambda: reader.option("schemaTrackingLocation", "/c").load(other),
        lambda: spark.readStream.option("schemaLocation", "/c").table(f"delta.`{other}`"),
        lambda: spark.readStream.load(other, "delta", startingVersion="soon"),
        lambda: spark.readStream.load(other, "delta", startingTimestamp="2020-01-01"),
    ]
    return [found, [_error_class(call) for call in refused], [_error_class(c) for c in streams]]


def _error_class(call: Callable[[], Any]) -> str:
    try:
        call()
    except DeltaError as error:
        return error.getCondition()
    return "nothing"
