"""Recipes over Spark Connect in a process of its own; the last line is the answers, in JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from tests.recipes import streams as model
from tests.recipes.test_streams import check_apply_changes, check_scd2, check_sync, check_upsert


def main(directory: str) -> dict[str, Any]:
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    given = model.random_streams(5, streams=range(10), batches=2)
    check_upsert(spark, f"{directory}/upsert", given)
    check_sync(spark, f"{directory}/sync", given, 5)
    check_scd2(spark, f"{directory}/scd2", given)
    truncated = model.with_truncates(given, 5)
    check_apply_changes(spark, f"{directory}/one", truncated, apply_as_truncates="op = 'T'")
    check_apply_changes(
        spark, f"{directory}/two", given, stored_as_scd_type=2, ignore_null_updates=True
    )
    rows = spark.createDataFrame([(1, "a"), (1, "b")], "id INT, v STRING")
    try:
        puredelta.upsert(f"{directory}/refused", rows, "id", create=True)
        refused = ""
    except DeltaError as error:
        refused = error.code.name
    changed = puredelta.diff(spark, f"{directory}/upsert", 1, 2)
    blamed = puredelta.blame(spark, f"{directory}/upsert")
    return {
        "refused": refused,
        "diff": changed.count() > 0,
        "blame": blamed.where("_version IS NULL").count(),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))  # noqa: T201 - the answer
