"""What `test_cluster` asks of a cluster whose workers lack pyarrow.

Run as a program of its own: ``without_pyarrow.py DIRECTORY``. The answers are one JSON object on
the last line.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.session.storage import open_log
from puredelta.tables import DeltaTable
from tests.cluster.store_alone import installed, session
from tests.servers import s3
from tests.servers.cluster import Cluster


def workers(spark: SparkSession) -> list[Any]:
    """Return which workers ran a task, and whether they have pyarrow."""

    def look(numbers: Iterator[int]) -> Iterator[tuple[str, bool]]:
        for _ in numbers:
            time.sleep(0.2)
            folder = Path.cwd().parts
            name = next(name for name in ("one", "two") if name in folder)
            try:
                has_it = importlib.util.find_spec("pyarrow.lib") is not None
            except ModuleNotFoundError:  # not even an empty folder of its name
                has_it = False
            yield name, has_it

    seen = spark.sparkContext.parallelize(range(12), 12).mapPartitions(look).collect()
    return sorted(set(seen))


def upsert(spark: SparkSession, path: str) -> str:
    """Write a table, merge into it and delete from it; say whether the rows are right."""
    puredelta.write(spark.range(0, 2000, 1, 8).withColumn("x", F.col("id")), path)
    table = DeltaTable.forPath(spark, path)
    source = spark.range(1000, 3000, 1, 8).withColumn("x", F.col("id") * 2).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll()
    merge.whenNotMatchedInsertAll().execute()
    table.delete("id % 10 = 0")
    expected = {n: 2 * n if n >= 1000 else n for n in range(3000) if n % 10}
    found = Counter(map(tuple, puredelta.read(spark, path).collect()))
    return "exact" if found == Counter(expected.items()) else f"{len(found)} rows"


def main(directory: Path) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    name = next(name for name in s3.SERVERS if s3.is_installed(name))
    with (
        s3.s3_server(name, directory / "s3") as endpoint,
        Cluster(directory / "workers") as cluster,
    ):
        hidden = [*installed(), Path(pa.__file__).parent]
        cluster.add_workers(["one", "two"], hidden)
        spark = session(cluster, endpoint)
        spark.sparkContext.setLogLevel("OFF")
        answers["workers"] = workers(spark)
        answers["shared disk"] = upsert(spark, str(directory / "table"))
        path = f"s3a://{s3.BUCKET}/table"
        try:
            answers["store"] = upsert(spark, path)
        except Exception as error:  # noqa: BLE001 - the test reads it
            answers["store"] = str(error)
        answers["store left"] = [file.path for file in open_log(spark, path).store.walk("")]
        spark.stop()
    return answers


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201 - the answers
