"""What `test_connect_skipping` asks of a Spark Connect session, run as a program of its own."""

from __future__ import annotations

import atexit
import json
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.scan import connect_scan
from puredelta.tables import DeltaTable
from tests.connect_session import Checks, Requests, answers_to, connect_builder
from tests.spark.scan.skipping_cases import KINDS, PARTITIONED_BY, conditions, many_types


def files(rows: DataFrame) -> int:
    return len(rows.inputFiles())


def ten(spark: SparkSession, directory: Path) -> str:
    """A table of ten files: ``id`` 0 to 99 in the first, and so on."""
    path = str(directory / "ten")
    rows = spark.range(0, 1000, 1, 10).selectExpr("id", "id % 7 AS k", "string(id) AS s")
    puredelta.write(rows, path)
    return path


def kinds(spark: SparkSession, directory: Path) -> Any:
    """Files and rows of each kind of condition, as a frame's filter and in the text of a query."""
    path = str(directory / "t")
    puredelta.write(many_types(spark), path)
    rows = puredelta.read(spark, path)
    counts = [F.expr(f"count_if({c})").alias(kind) for kind, c in KINDS.items()]
    counted = rows.agg(*counts).collect()[0]
    found = {}
    for kind, condition in KINDS.items():
        nested = rows.select("*", F.lit(1).alias("one")).where(condition).groupBy().count()
        text = f"SELECT x.* FROM {{t}} AS x CROSS JOIN (SELECT 1 AS one) WHERE {condition}"
        as_text = spark.sql(text, t=rows)
        found[kind] = [files(rows.where(condition)), files(nested), files(as_text), counted[kind]]
    return found


def columns(spark: SparkSession, directory: Path) -> Any:
    """Conditions of Columns, bound to frames and under other names."""
    rows = puredelta.read(spark, ten(spark, directory))
    shown = rows.select(F.col("id").alias("x"), "s")
    frames = (
        rows.where(F.col("id") == 5),
        rows.where(rows["id"] == 5),
        rows.where(rows.id.isin(1, 2, 999)),
        rows.where(F.col("id").between(110, 120) & F.col("s").startswith("11")),
        rows.where(~(F.col("id") >= 100)),
        shown.where("x > 990"),
        shown.where(shown["x"] > 990).orderBy("x"),
        rows.withColumnRenamed("id", "key").where("key < 10"),
        rows.withColumn("z", F.col("k") + 1).where("z > 1 AND id < 10"),
        rows.alias("a").where("a.id < 10"),
        rows.drop("s").where("id < 10").limit(3),
        rows.limit(3).where("id < 10"),
    )
    return [files(frame) for frame in frames]


def plans(spark: SparkSession, directory: Path) -> Any:
    """Joins, unions, subqueries, aggregates, windows and functions of Python."""
    rows = puredelta.read(spark, ten(spark, directory))
    a, b = rows.alias("a"), rows.alias("b")
    joined = a.join(b, F.expr("a.id = b.id")).where("a.id < 50")
    outer = a.join(b, F.expr("a.id = b.id"), "left").where("b.id IS NULL")
    text = "SELECT count(*) AS n FROM {t} WHERE id = (SELECT max(id) FROM {t} WHERE id < 250)"
    nested = spark.sql(text, t=rows)
    union = rows.where("id < 10").union(rows.where("id > 990"))
    even = F.udf(lambda n: n % 2 == 0, "boolean")
    by_function = rows.where(even("id") & (F.col("id") < 100))
    numbered = rows.selectExpr("*", "row_number() OVER (ORDER BY id) AS n")
    mapped = rows.where("id < 10").mapInArrow(lambda batches: batches, rows.schema)
    return [
        [files(joined), joined.count()],
        outer.count(),
        nested.collect()[0]["n"],
        [files(union), union.count()],
        [files(by_function), by_function.count()],
        numbered.where("id = 500").collect()[0]["n"],
        [files(mapped), mapped.count()],
        rows.groupBy("k").count().where("k = 3 AND count > 0").collect()[0]["count"],
    ]


def no_row_is_skipped(spark: SparkSession, directory: Path) -> Any:
    """Generated conditions over partitions, deletion vectors and renamed columns."""
    wrong = []
    for layout in ((), PARTITIONED_BY):
        path = str(directory / f"t{len(layout)}")
        options = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
        puredelta.write(many_types(spark), path, partition_by=layout, properties=options)
        DeltaTable.forPath(spark, path).delete("id % 30 IN (0, 29)")
        rows = puredelta.read(spark, path)
        tried = list(conditions(8, seed=len(layout)))
        counts = [F.expr(f"count_if({c})").alias(f"c{n}") for n, c in enumerate(tried)]
        wanted = rows.agg(*counts).collect()[0]
        for n, condition in enumerate(tried):
            text = f"SELECT one FROM {{t}} AS x, (SELECT 1 AS one) q WHERE {condition}"
            found = [rows.where(condition).count(), spark.sql(text, t=rows).count()]
            if found != [wanted[f"c{n}"]] * 2:
                wrong.append([condition, found, wanted[f"c{n}"]])
    return wrong


def requests(spark: SparkSession, directory: Path) -> Any:
    """Requests of a query beside those of the same query over plain Parquet files."""
    path = ten(spark, directory)
    rows = puredelta.read(spark, path)
    rows.write.parquet(str(directory / "plain"))
    plain = spark.read.parquet(str(directory / "plain"))
    found = []
    for query in (
        lambda frame: frame.collect(),
        lambda frame: frame.where("id = 5").collect(),
        lambda frame: frame.where(F.col("id") + 0 == 5).collect(),
        lambda frame: frame.groupBy("k").count().collect(),
        lambda frame: frame.columns,
    ):
        counts = []
        for frame in (plain, rows):
            with Requests(spark) as counted:
                query(frame.select("id", "k"))
            counts.append(sum(counted.values()))
        found.append(counts[1] - counts[0])
    return found


def repeated(spark: SparkSession, directory: Path) -> Any:
    """Questions about texts that are sent again, and their rows."""
    path = ten(spark, directory)
    puredelta.activate(spark)
    spark.sql(f"CREATE TABLE repeated USING delta LOCATION '{path}'")
    spark.range(1).selectExpr("5L AS id").createOrReplaceTempView("five")
    spark.sql("DECLARE VARIABLE wanted = 5")

    def ask(text: str) -> list[int]:
        with Requests(spark) as counted:
            rows = spark.sql(text).collect()
        return [counted["AnalyzePlan"], *sorted(row[0] for row in rows)]

    spark.sql("SELECT k FROM repeated WHERE k = 5").collect()  # later hooks are lost in `ask`
    assert ask("SELECT id FROM repeated WHERE id = 5") == [0, 5]  # the client knows all of it
    plain = "SELECT id FROM repeated WHERE id = 5 + 0"
    found = [ask(plain), ask(plain), ask(plain.replace("5", "905"))]
    found.append(
        [
            files(spark.sql(plain)),
            files(spark.sql(plain).union(spark.table("repeated").select("id"))),
        ]
    )
    found.append([spark.sql(plain).where("id > 5").count(), spark.sql(plain).columns == ["id"]])
    of_variable = "SELECT id FROM repeated WHERE id = wanted"
    found += [ask(of_variable), ask(of_variable)]
    spark.sql("SET VAR wanted = 905")
    found.append(ask(of_variable))
    of_view = "SELECT id FROM repeated JOIN five USING (id)"
    found += [ask(of_view), ask(of_view)]
    found += [ask(plain), ask(plain)]
    spark.conf.set("spark.sql.ansi.enabled", "false")
    found.append(ask(plain))
    spark.conf.unset("spark.sql.ansi.enabled")
    spark.range(5, 6).selectExpr("id", "0L AS k", "'' AS s").write.insertInto("repeated")
    found += [ask(plain), ask(plain)]
    spark.sql("DROP TABLE repeated")
    puredelta.deactivate()
    return found


def many_files(spark: SparkSession, directory: Path) -> Any:
    """Requests of queries over more files than the server lists at once, and their rows."""
    path, key = str(directory / "forty"), "spark.sql.sources.parallelPartitionDiscovery.threshold"
    puredelta.write(
        spark.range(0, 80, 1, 20).selectExpr("id", "id % 2 AS p"), path, partition_by="p"
    )
    rows = puredelta.read(spark, path)
    found: list[Any] = [files(rows)]

    def ask(query: DataFrame) -> None:
        with Requests(spark) as counted:
            answer = query.collect()
        found.append([counted["Config"], counted["AnalyzePlan"], *answer[0]])

    sums = rows.groupBy("p").agg(F.sum("id")).orderBy("p")
    ask(sums)  # the server has listed the files for `files`
    ask(rows.where("id >= 8").groupBy("p").agg(F.sum("id")).orderBy("p"))
    found.append(spark.conf.get(key))
    ask(rows.where("p = 1").select(F.count("p"), F.sum("id")))  # of 20 files
    ask(rows.select(F.sum("id"), F.max("p")))
    for n in range(20):
        spark.range(n).collect()
    ask(sums)  # the server has forgotten the files
    ask(sums)
    spark.conf.set(key, "5")
    ask(puredelta.read(spark, path).groupBy("p").agg(F.sum("id")).orderBy("p"))
    spark.conf.unset(key)
    refused = []

    def refuse(*_: Any) -> None:
        refused.append(key)
        raise PySparkException("CONFIG_NOT_AVAILABLE")

    taken, connect_scan.settings_for_a_while = connect_scan.settings_for_a_while, refuse
    for least in (4, 12):
        ask(rows.where(f"id >= {least}").groupBy("p").agg(F.sum("id")).orderBy("p"))
    connect_scan.settings_for_a_while = taken
    connect_scan._refusing.clear()
    tasks = key.replace("threshold", "parallelism")
    before = spark.conf.get(tasks)
    with connect_scan._few_tasks(spark, ["s3a://bucket/file"] * 40):
        inside = spark.conf.get(tasks)
    return [*found, len(refused), inside, spark.conf.get(tasks) == before]


def caches(spark: SparkSession, directory: Path) -> Any:
    """A cached frame keeps its rows; its files may go, and a new frame reads others."""
    path = ten(spark, directory)
    rows = puredelta.read(spark, path)
    kept = rows.where("id < 200").cache()
    before = kept.count()
    for file in kept.inputFiles():
        Path(file.removeprefix("file:")).rename(Path(directory) / Path(file).name)
    below = kept.select("id").where("id = 7")
    answers = [kept.count(), kept.where("id = 5").count(), below.count()]
    level = kept.storageLevel
    kept.unpersist()
    return [before, answers, level.useMemory, kept.storageLevel.useMemory]


def meanings(spark: SparkSession, directory: Path) -> Any:
    """Frames are compared by their meaning, not by the files that are left."""
    path = ten(spark, directory)
    rows = puredelta.read(spark, path)
    one, other = rows.where("id = 5"), rows.where(F.col("id") == 5)
    one_more = spark.range(1000, 1001).selectExpr("id", "id AS k", "'x' AS s")
    puredelta.write(one_more, path, mode="append")
    newer = puredelta.read(spark, path)
    return [
        one.sameSemantics(other),
        one.semanticHash() == other.semanticHash(),
        one.sameSemantics(rows.where("id = 6")),
        rows.sameSemantics(newer),
        newer.count() - rows.count(),
    ]


def other_calls(spark: SparkSession, directory: Path) -> Any:
    """Local iterators, explanations, observations, views, writers, checkpoints, streams."""
    from pyspark.sql import Observation  # noqa: PLC0415

    path = ten(spark, directory)
    rows = puredelta.read(spark, path).where("id < 10")
    explained: Any = rows
    rows.createOrReplaceTempView("below_ten")
    rows.write.parquet(str(directory / "copy"))
    observation = Observation("seen")
    observed = puredelta.read(spark, path).observe(observation, F.count(F.lit(1)).alias("n"))
    above = observed.where("id < 10").count()
    return [
        len(list(rows.toLocalIterator(prefetchPartitions=True))),
        rows.toPandas().shape[0],
        "PushedFilters" in explained._explain_string(mode="formatted"),
        spark.sql("SELECT count(*) AS n FROM below_ten WHERE id > 4").collect()[0]["n"],
        spark.read.parquet(str(directory / "copy")).count(),
        [above, observation.get["n"]],
        rows.isStreaming,
        rows.localCheckpoint().count(),
        rows.tail(1)[0]["id"],
    ]


def values(spark: SparkSession, directory: Path) -> Any:
    """Values that look like conditions, and texts with commas, where the optimizer is asked."""
    path = str(directory / "t")
    texts = [
        "a",
        "b",
        "a, b",
        "a,b",
        "a)",
        "a), EqualTo(id,7",
        "a)]\nReadSchema: struct<>",
        "'",
        "",
    ]
    schema = "id int, s string"
    rows = spark.createDataFrame(list(enumerate(texts)), schema).repartition(1)
    for n in range(len(texts)):
        puredelta.write(rows.where(f"id = {n}"), path, mode="append")
    table = puredelta.read(spark, path)
    wrong = []
    for n, text in enumerate(texts):
        query = "SELECT id FROM {t} WHERE s = :s"
        by_text = [row["id"] for row in spark.sql(query, args={"s": text}, t=table).collect()]
        in_list = "SELECT id FROM {t} WHERE s IN (:s, 'nothing, else')"
        by_list = [row["id"] for row in spark.sql(in_list, args={"s": text}, t=table).collect()]
        by_function = [row["id"] for row in table.where(F.concat("s", F.lit("")) == text).collect()]
        if not by_text == by_list == by_function == [n]:
            wrong.append([text, by_text, by_list, by_function])
    return wrong


def clock(spark: SparkSession, directory: Path) -> Any:
    path = str(directory / "t")
    for days in range(9):
        day = f"date_sub(current_date(), {days})"
        puredelta.write(spark.range(1).selectExpr("id", f"{day} AS day"), path, mode="append")
    rows = puredelta.read(spark, path)
    return [rows.where("day >= current_date() - 2").count(), rows.where("day > now()").count()]


def threads(spark: SparkSession, directory: Path) -> Any:
    """One frame in many threads, each with conditions of its own."""
    rows = puredelta.read(spark, ten(spark, directory))
    wrong: list[int] = []

    def count(n: int) -> None:
        if rows.where(f"id >= {n * 100} AND id < {n * 100 + 50}").count() != 50:
            wrong.append(n)

    workers = [threading.Thread(target=count, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return wrong


def sessions(spark: SparkSession, directory: Path) -> Any:
    """A clone and a new session read by their own frames."""
    path = ten(spark, directory)
    found: list[Any] = [puredelta.read(spark, path).where("id = 5").count()]
    maker: Any = spark
    for make in ("cloneSession", "newSession"):
        if not hasattr(maker, make):
            found.append([1, 1])
            continue
        other = getattr(maker, make)()
        # At exit the client would ask the server, which has ended with the first session.
        atexit.unregister(getattr(other.client, "_on_exit", None))
        rows = puredelta.read(other, path)
        found.append([files(rows.where("id = 5")), rows.where("id = 5").count()])
    return [found[0], found[1:]]


CHECKS: Checks = (
    kinds,
    columns,
    plans,
    no_row_is_skipped,
    requests,
    repeated,
    many_files,
    caches,
    meanings,
    other_calls,
    values,
    clock,
    threads,
    sessions,
)
AMOUNTS = {
    "sample": (columns, plans, requests, caches, meanings),
    "every": CHECKS,
}


@contextmanager
def connected() -> Iterator[SparkSession]:
    spark = connect_builder().getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    with connected() as session:
        random.seed(0)
        answers = answers_to(AMOUNTS[sys.argv[2]], session, directory=Path(sys.argv[1]))
    print(json.dumps(answers))  # noqa: T201 - the answer
