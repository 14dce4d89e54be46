"""What `test_late_answers` asks of a Spark Connect session, run as a program of its own."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.connect.messages import plan_of
from puredelta.spark.scan import late_planner
from puredelta.tables import DeltaTable
from tests.connect_session import Requests, answers_to, connect_builder
from tests.spark.scan.skipping_cases import many_types

_PARTITIONS = ("p_int", "p_text", "p_day")
_COLUMNS = ("id", "i", "tiny", "small", "f", "d", "dec", "s", "mostly", "dt", "ts", *_PARTITIONS)
_CONDITIONS = (
    "p_int = 1",
    "p_int IN (0, 3)",
    "p_int IN (0, 3, NULL)",
    "p_int BETWEEN 1 AND 2",
    "p_text IS NULL",
    "p_text LIKE 'a b%'",
    "p_day >= '2024-02-29'",
    "NOT (p_text = 'a b/c')",
    "p_int <=> NULL",
    "p_int = 0 OR p_text IS NOT NULL",
    "p_int + 1 = 2",
    "p_int > 100",
    "p_int = 1000L",
    "id > 50",
    "p_int = 1 AND mostly IS NOT NULL",
    "TRUE",
)
_LAYOUTS: dict[str, tuple[list[str], dict[str, str], str | None]] = {
    "plain": ([], {}, None),
    "partitioned": (list(_PARTITIONS), {}, None),
    "mapped with vectors": (
        ["p_int", "p_text"],
        {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
        "id BETWEEN 100 AND 105 OR id >= 230",
    ),
    "without statistics": (["p_int"], {"delta.dataSkippingNumIndexedCols": "0"}, None),
}
QUERIES = {"sample": 4, "every": 24}
"""The generated queries of a layout."""
LAYOUTS = {"sample": ("mapped with vectors",), "every": tuple(_LAYOUTS)}
ANSWERS: list[bool] = []
"""Whether each plan that was sent for rows had an answer."""


def _watch() -> None:
    original = late_planner.put_answers

    def recorded(plan: Any) -> bool:
        ANSWERS.append(original(plan))
        return ANSWERS[-1]

    late_planner.put_answers = recorded
    late_planner._ANALYZED_FILES_MAX = -1  # each request is planned anew


def _computed(rows: DataFrame) -> tuple[list[Any], Any]:
    """Return rows and schema as Spark has them."""
    kept = late_planner.put_answers
    late_planner.put_answers = lambda _: False
    try:
        found = rows.collect()
    finally:
        late_planner.put_answers = kept  # type: ignore[assignment]
    explained: Any = rows.sparkSession
    return found, explained.client.schema(_planned(rows))


def _planned(rows: DataFrame) -> Any:
    plan: Any = rows._plan
    return plan.to_proto(rows.sparkSession.client)  # type: ignore[attr-defined]


def _differences(rows: DataFrame) -> tuple[bool, list[Any]]:
    """Return whether rows were answered, and how the answer differs from Spark's own."""
    wanted, schema = _computed(rows)
    ANSWERS.clear()
    frame: Any = rows
    table = frame.toArrow()
    found = rows.collect()
    wrong: list[Any] = []
    if repr(found) != repr(wanted):
        wrong.append([repr(found), repr(wanted)])
    if rows.schema != schema:
        wrong.append([rows.schema.json(), schema.json()])
    if [f.nullable for f in table.schema] != [f.nullable for f in schema]:
        wrong.append([str(table.schema), schema.json()])
    return ANSWERS[0], wrong


def _texts(rng: random.Random) -> tuple[str, list[str]]:
    condition = rng.choice((None,) * 4 + _CONDITIONS)
    some = rng.sample(_COLUMNS, rng.choice((1, 1, 2)))
    spelled = [rng.choice((c, c.upper(), f"x.{c}", f"`{c}`")) for c in some]
    calls = [f"{rng.choice(('min', 'MAX', 'count'))}({c})" for c in spelled]
    calls = [rng.choice(("count(*)", "count(1)")), *calls][rng.randint(0, 1) :]
    names = [call + rng.choice(("", "", f" n{k}", f" AS `n {k}`")) for k, call in enumerate(calls)]
    where = "" if condition is None else f" WHERE {condition}"
    text = f"SELECT {', '.join(names)} FROM {{t}} AS x{where}"
    form = rng.choice(
        (
            "{}",
            "{}",
            "SELECT * FROM ({})",
            "WITH q AS ({}) SELECT * FROM q",
            "SELECT id, q.* FROM range(2) CROSS JOIN ({}) q",
            "{} UNION ALL {}",
        )
    )
    return form.replace("{}", text), [c.replace("x.", "") for c in calls]


def texts(spark: SparkSession, directory: Path, amount: str) -> Any:
    """Generated queries as text and as frames, over layouts; beside what Spark computes."""
    found: dict[str, Any] = {}
    for layout in LAYOUTS[amount]:
        partitions, properties, deleted = _LAYOUTS[layout]
        path = str(directory / layout.replace(" ", ""))
        puredelta.write(many_types(spark), path, partition_by=partitions, properties=properties)
        if deleted is not None:
            DeltaTable.forPath(spark, path).delete(deleted)
        rng = random.Random(5)
        num_answered, wrong = 0, []
        for n in range(QUERIES[amount]):
            text, calls = _texts(rng)
            query = spark.sql(text.replace("{t}", f"delta.`{path}`"))
            if n % 3 == 0:
                rows = puredelta.read(spark, path).where(rng.choice(_CONDITIONS))
                query = rows.agg(*(F.expr(call) for call in calls))
            answered, differences = _differences(query)
            num_answered += answered
            wrong += [[text, calls, one] for one in differences]
        found[layout] = [num_answered, wrong]
    return found


def _ten(spark: SparkSession, directory: Path) -> str:
    path = str(directory / "ten")
    puredelta.write(spark.range(0, 1000, 1, 10).selectExpr("id", "id % 7 AS k"), path)
    return path


def forms(spark: SparkSession, directory: Path) -> Any:
    """Frames, nested texts, expressions over calls, joins of answers, functions of frames."""
    path = _ten(spark, directory)
    rows = puredelta.read(spark, path)
    of_path = f"delta.`{path}`"
    frames = (
        rows.groupBy().count(),
        rows.agg(F.max("id"), F.min(F.col("k")).alias("low"), F.count("*"), F.count(F.lit(1))),
        rows.agg({"id": "max"}),
        rows.select(F.col("id").alias("x")).groupBy().max("x"),
        rows.alias("a").agg(F.max("a.id")),
        rows.withColumnRenamed("id", "z").orderBy("k").agg(F.expr("max(z) AS top")),
        rows.crossJoin(rows.agg(F.max("id").alias("top"))).where("id = top"),
        spark.sql(f"SELECT id AS b, k AS id FROM {of_path}").agg(F.min("b"), F.max("id")),
        spark.sql("SELECT max(id) FROM {r}", r=rows),
        spark.sql(f"SELECT coalesce(max(id), 0) + 1 AS next, count(*) > 0 f FROM {of_path}"),
        spark.sql(f"SELECT k FROM {of_path} WHERE id >= (SELECT max(id) FROM {of_path})"),
        spark.sql(f"WITH m AS (SELECT max(id) t, count(*) n FROM {of_path} x) SELECT t + n FROM m"),
        spark.sql(f"SELECT count(*), count(*) FROM {of_path}"),
        spark.sql(f"SELECT min(b) FROM (SELECT id AS b, k AS id FROM {of_path})"),
    )
    return [[*_differences(frame)] for frame in frames]


def left_alone(spark: SparkSession, directory: Path) -> Any:
    """Queries that need the rows; those that are wrong are refused as ever."""
    path = _ten(spark, directory)
    answered = []
    for text in LEFT_ALONE:
        ANSWERS.clear()
        try:
            spark.sql(text.replace("{t}", f"delta.`{path}`")).collect()
        except Exception as error:  # noqa: BLE001 - the test counts them
            answered.append([text, type(error).__name__])
        if any(ANSWERS):
            answered.append([text, "answered"])
    rows = puredelta.read(spark, path)
    for frame in (
        rows.agg(F.sum("id")),
        rows.agg(F.countDistinct("id")),
        rows.groupBy("k").agg(F.max("id")),
        rows.limit(5).groupBy().count(),
        rows.sample(0.5).groupBy().count(),
        rows.dropDuplicates(["k"]).groupBy().count(),
        rows.where("rand() < 0.5").groupBy().count(),
        rows.selectExpr("explode(array(1, 2))").groupBy().count(),
        rows.join(rows.alias("b"), "k").groupBy().count(),
        rows.cache().groupBy().count(),
    ):
        ANSWERS.clear()
        frame.collect()
        if any(ANSWERS):
            answered.append([str(plan_of(frame))[:500], "answered"])
    rows.unpersist()
    return answered


LEFT_ALONE = (
    "SELECT count(DISTINCT id) FROM {t}",
    "SELECT count(*) FILTER (WHERE id > 5) FROM {t}",
    "SELECT sum(id), count(*) FROM {t}",
    "SELECT max(id + 1) FROM {t}",
    "SELECT k, count(*) FROM {t} GROUP BY k",
    "SELECT count(*) FROM {t} TABLESAMPLE (10 PERCENT)",
    "SELECT count(*) FROM {t} a JOIN {t} b ON a.id = b.id",
    "SELECT count(*) FROM {t}, {t}",
    "SELECT count(*) FROM (SELECT DISTINCT k FROM {t})",
    "SELECT count(*) FROM (SELECT explode(array(1, 2)) FROM {t})",
    "SELECT count(*) FROM (SELECT id FROM {t} LIMIT 3)",
    "SELECT count(*) FROM {t} WHERE rand() < 0.5",
    "SELECT count(NULL) FROM {t}",
    "SELECT count(*) OVER () FROM {t}",
    "SELECT max(id) AS m, m + 1 AS n FROM {t}",
    "SELECT count(*) FROM {t} WHERE k = 'x'",
    "SELECT max(nothing) FROM {t}",
    "SELECT max(y.id) FROM {t} x",
    "SELECT count(*) FROM {t} WHERE id",
)


def settings(spark: SparkSession, directory: Path) -> Any:
    """Settings that turn the answers off; a version; requests."""
    path = _ten(spark, directory)
    found = []
    for key, value in (
        ("spark.databricks.delta.optimizeMetadataQuery.enabled", "false"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.caseSensitive", "true"),
    ):
        spark.conf.set(key, value)
        ANSWERS.clear()
        found.append([spark.sql(f"SELECT max(id) FROM delta.`{path}`").collect()[0][0], *ANSWERS])
        spark.conf.unset(key)
    before = puredelta.read(spark, path)
    puredelta.write(spark.range(5).selectExpr("id", "id AS k"), path, mode="append")
    found.append([before.count(), puredelta.read(spark, path).count()])
    with Requests(spark) as counted:
        spark.sql(f"SELECT count(*) FROM delta.`{path}`").collect()
    found.append([counted["ExecutePlan"], counted["AnalyzePlan"]])
    found.append([len(spark.sql(f"SELECT count(*) FROM delta.`{path}`").inputFiles()) > 1])
    return found


AMOUNTS = {"sample": (forms, settings), "every": (forms, left_alone, settings)}


def main(directory: Path, amount: str) -> None:
    spark = connect_builder().getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    puredelta.activate(spark)
    _watch()
    answers = {"texts": texts(spark, directory / "texts", amount)}
    answers |= answers_to(AMOUNTS[amount], spark, directory=directory)
    puredelta.deactivate()
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
