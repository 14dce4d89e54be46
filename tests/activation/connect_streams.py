"""What `test_connect_streams` asks of a Connect server whose Python lacks this package.

``connect_streams DIRECTORY sample|every`` starts the server and asks it.
``connect_streams DIRECTORY sc://...`` is a client of it that starts a query which never ends, and
kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.tables import DeltaTable
from tests.connect_session import answers_to

_TRIES = 6


def started(make: Callable[[], Any]) -> Any:
    """Start a query; Spark's own limit for its Python worker may be too short where all is slow."""
    for _ in range(_TRIES - 1):
        try:
            return make()
        except (PySparkException, DeltaError) as failure:  # noqa: PERF203
            if "Python" not in str(failure):
                raise
            time.sleep(5)
    return make()


def done(make: Callable[[], Any]) -> None:
    query = started(make)
    query.awaitTermination()
    if query.exception() is not None:
        raise query.exception()


def commits(path: Path | str) -> list[str]:
    """The operations of a table's commits, and the batches that they name."""
    found = []
    for file in sorted((Path(path) / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        operation = next(a["commitInfo"]["operation"] for a in actions if "commitInfo" in a)
        batches = [f" {a['txn']['version']}" for a in actions if "txn" in a]
        found.append(operation + "".join(batches))
    return found


def ids(spark: SparkSession, path: Path | str) -> list[int]:
    return sorted(row[0] for row in spark.read.format("delta").load(str(path)).collect())


def repeat_last_batch(checkpoint: Path) -> None:
    """Let a query forget that its last batch was done, as after a crash."""
    last = max((checkpoint / "commits").glob("[0-9]"))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def source(spark: SparkSession, directory: Path, first: int = 0) -> DataFrame:
    """A stream of a Parquet folder: ten rows a file and batch, one file more for each call."""
    rows = spark.range(first, first + 10, 1, 1).selectExpr("id", "id % 2 AS day")
    rows.write.mode("append").parquet(str(directory / "source"))
    reader = spark.readStream.schema("id BIGINT, day BIGINT").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory / "source"))


def sink(spark: SparkSession, directory: Path) -> Any:
    """Batches into a path: a restart goes on, and a batch that is repeated changes nothing."""
    out, checkpoint = directory / "t", directory / "c"

    def run(rows: DataFrame) -> None:
        writer = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
        writer = writer.partitionBy("day").trigger(availableNow=True)
        done(lambda: writer.start(str(out)))

    source(spark, directory)
    run(source(spark, directory, 10))
    before = commits(out)
    repeat_last_batch(checkpoint)
    run(source(spark, directory, 20))
    return [before, commits(out), ids(spark, out) == list(range(30))]


def between_tables(spark: SparkSession, directory: Path) -> Any:
    """A stream of a table by name into a complete result by name, then a batch's own MERGE."""
    events = spark.range(0, 30, 1, 1).selectExpr("id", "id % 3 AS shard")
    events.write.format("delta").saveAsTable("events")
    counts = spark.readStream.table("events").groupBy("shard").count()
    writer = counts.writeStream.outputMode("complete").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(directory / "c"))
    done(lambda: writer.toTable("counts", format="delta"))
    more = spark.range(30, 33, 1, 1).selectExpr("id", "0L AS shard")
    more.write.format("delta").mode("append").saveAsTable("events")
    done(lambda: writer.toTable("counts", format="delta"))
    counted = sorted(map(list, spark.table("counts").collect()))

    target = str(directory / "totals")
    spark.sql("SELECT 1L AS id, 9L AS shard").write.format("delta").save(target)

    def upsert(batch: DataFrame, number: int) -> None:
        from delta.tables import DeltaTable as Table  # noqa: PLC0415 - on the server

        session = batch.sparkSession
        session.conf.set("spark.databricks.delta.write.txnAppId", "totals")
        session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
        table = Table.forPath(session, target).alias("t")
        merge = table.merge(batch.alias("s"), "t.id = s.id").whenMatchedUpdateAll()
        merge.whenNotMatchedInsertAll().execute()

    rows = (
        spark.readStream.format("delta")
        .option("maxFilesPerTrigger", 1)
        .load(DeltaTable.forName(spark, "events").detail().collect()[0]["location"])
    )
    merged = rows.writeStream.foreachBatch(upsert).trigger(availableNow=True)
    merged = merged.option("checkpointLocation", str(directory / "m"))
    done(merged.start)
    repeat_last_batch(directory / "m")
    done(merged.start)
    is_merge = {operation.partition(" ")[0] for operation in commits(target)[1:]}
    return [counted, ids(spark, target) == list(range(33)), sorted(is_merge), len(commits(target))]


def killed_client(spark: SparkSession, directory: Path) -> Any:
    """A client is killed while its query runs; another one goes on with the checkpoint."""
    source(spark, directory)
    rows = source(spark, directory, 10)
    client: Any = spark.client  # type: ignore[attr-defined]
    url = f"sc://{client._builder.endpoint}"
    command = [sys.executable, "-m", "tests.activation.connect_streams", str(directory), url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(command, env=environment, check=False).returncode
    source(spark, directory, 20)
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(directory / "c"))
    done(lambda: writer.trigger(availableNow=True).start(str(directory / "t")))
    return [killed, ids(spark, directory / "t") == list(range(30))]


def die_in_query(spark: SparkSession, directory: Path) -> None:
    """Start a query that never ends, wait for its first batch, and kill this process."""
    puredelta.activate(spark)
    reader = spark.readStream.schema("id BIGINT, day BIGINT").option("maxFilesPerTrigger", 1)
    writer = reader.parquet(str(directory / "source")).writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(directory / "c"))
    started(lambda: writer.start(str(directory / "t")))
    while not (directory / "t" / "_delta_log" / f"{0:020}.json").exists():
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)


def refused(spark: SparkSession, directory: Path) -> Any:
    """Error classes of what cannot be."""
    rows = spark.readStream.format("rate").load()
    writer = rows.writeStream.format("delta")
    calls: tuple[Callable[[], Any], ...] = (
        lambda: writer.start(str(directory / "t")),
        lambda: writer.outputMode("update").start(str(directory / "t")),
    )
    found = []
    for call in calls:
        try:
            call()
        except (DeltaError, PySparkException) as error:  # noqa: PERF203
            found.append(error.getCondition())
    return [found, (directory / "t").exists()]


def iceberg_compat(spark: SparkSession, directory: Path) -> Any:
    """A stream from and into tables whose files have ids of elements and partition columns."""
    paths = [directory / "from", directory / "into"]
    for path in paths:
        puredelta.sql(
            spark,
            f"CREATE TABLE delta.`{path}` (id BIGINT, a ARRAY<BIGINT>, p INT) USING delta "
            "PARTITIONED BY (p) TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')",
        )
    rows = spark.range(0, 4, 1, 1).selectExpr("id", "array(id) AS a", "0 AS p")
    rows.write.format("delta").mode("append").save(str(paths[0]))
    writer = spark.readStream.format("delta").load(str(paths[0])).writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(directory / "c")).trigger(availableNow=True)
    done(lambda: writer.start(str(paths[1])))
    (last,) = (paths[1] / "_delta_log").glob(f"{1:020}.json")
    adds = [json.loads(line).get("add") for line in last.read_text().splitlines()]
    return [ids(spark, paths[1]), [add["tags"] for add in adds if add]]


AMOUNTS = {
    "sample": (sink, refused),
    "every": (sink, between_tables, refused, killed_client, iceberg_compat),
}


def without_package(directory: Path) -> None:
    """Let Python processes of the server find neither this package nor what it needs."""
    hidden = directory / "hidden"
    hidden.mkdir()
    for name in ("puredelta", "pyroaring", "obstore"):
        (hidden / f"{name}.py").write_text("raise ImportError('not on this server')\n")
    os.environ["PYTHONPATH"] = str(hidden)


def ask(directory: Path, amount: str) -> dict[str, Any]:
    """Let a new server answer the checks of an amount."""
    without_package(directory)
    builder = SparkSession.builder.remote("local[2]")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.sql.warehouse.dir", str(directory / "warehouse")).getOrCreate()
    puredelta.activate(spark)
    for check in AMOUNTS[amount]:
        (directory / check.__name__).mkdir()
    found = answers_to(AMOUNTS[amount], spark, directory=directory)
    spark.stop()
    return found


if __name__ == "__main__":
    place, asked = sys.argv[1:]
    if asked.startswith("sc://"):
        die_in_query(SparkSession.builder.remote(asked).create(), Path(place))
    print(json.dumps(ask(Path(place), asked)))  # noqa: T201 - the answer
