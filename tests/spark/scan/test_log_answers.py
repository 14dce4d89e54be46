"""Counts, bounds and limits that the log answers: the same rows as a query of the files has."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.scan.log_answers import answered, counted, limited
from puredelta.spark.scan.skippable_files import SkippableFiles
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.spark.scan.skipping_cases import files_read, many_types

_NUM_QUERIES = 40
_PARTITIONS = ("p_int", "p_text", "p_day")
_COLUMNS = ("id", "i", "tiny", "small", "f", "d", "dec", "s", "mostly", "dt", "ts", *_PARTITIONS)
_CONDITIONS = (
    "p_int = 1",
    "p_int IN (0, 3, NULL)",
    "p_int BETWEEN 1 AND 2",
    "p_text IS NULL",
    "p_text LIKE 'a b%'",
    "p_day >= '2024-02-29'",
    "NOT (p_text = 'a b/c')",
    "p_int <=> NULL",
    "p_int = 0 OR p_text IS NOT NULL",
    "cast(p_int AS bigint) > 1",
    "p_int + 1 = 2",
    "p_int > 100",
    "id > 50",
    "p_int = 1 AND mostly IS NOT NULL",
)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each scan was shown."""
    shown: list[int] = []
    for name in ("every_file", "files_at", "files_for"):
        original = getattr(SkippableFiles, name)

        def recorded(self: Any, *args: Any, original: Any = original, **how: Any) -> Any:
            files = original(self, *args, **how)
            shown.append(len(self if files is None else files))
            return files

        monkeypatch.setattr(SkippableFiles, name, recorded)
    return shown


def _plain(spark: SparkSession, path: str) -> None:
    puredelta.write(many_types(spark), path)


def _partitioned(spark: SparkSession, path: str) -> None:
    puredelta.write(many_types(spark), path, partition_by=list(_PARTITIONS))


def _mapped_with_vectors(spark: SparkSession, path: str) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    puredelta.write(
        many_types(spark), path, partition_by=["p_int", "p_text"], properties=properties
    )
    DeltaTable.forPath(spark, path).delete("id BETWEEN 100 AND 105 OR id >= 230")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("make", "answered_min"), [(_plain, 4), (_partitioned, 15), (_mapped_with_vectors, 5)]
)
def test_x_73_answers_are_those_of_the_rows(
    spark: SparkSession,
    tmp_path: Path,
    make: Callable[[SparkSession, str], None],
    answered_min: int,
) -> None:
    path = str(tmp_path / "t")
    make(spark, path)
    rows = puredelta.read(spark, path)
    rng = random.Random(7)
    queries = []
    for _ in range(_NUM_QUERIES):
        condition = rng.choice(("true",) * 4 + _CONDITIONS)
        some = rng.sample(_COLUMNS, rng.choice((1, 1, 2)))
        calls = ["count(*)", *(f"{rng.choice(('min', 'max', 'count'))}({c})" for c in some)]
        queries.append((condition, calls[rng.randint(0, 1) :]))
    wanted = rows.agg(
        *(
            F.expr(f"{call} FILTER (WHERE {condition})").alias(f"q{n}_{k}")
            for n, (condition, calls) in enumerate(queries)
            for k, call in enumerate(calls)
        ),
        *(
            F.expr(f"count_if({condition})").alias(f"n{n}")
            for n, (condition, _) in enumerate(queries)
        ),
    ).collect()[0]
    num_answered = 0
    for n, (condition, calls) in enumerate(queries):
        query = rows.where(condition).agg(*map(F.expr, calls))
        answer = answered(query)
        if answer is not None:
            num_answered += 1
            want = tuple(wanted[f"q{n}_{k}"] for k in range(len(calls)))
            assert tuple(answer.collect()[0]) == want, (condition, calls)
            assert answer.schema == query.schema
        number = counted(rows.where(condition))
        assert number is None or number == wanted[f"n{n}"], condition
    assert num_answered >= answered_min


@pytest.fixture(scope="module")
def ten(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten files: ``id`` 0 to 99 in the first, and so on."""
    path = str(tmp_path_factory.mktemp("ten") / "t")
    puredelta.write(spark.range(0, 1000, 1, 10).selectExpr("id", "id % 7 AS k"), path)
    return path


def _answer(rows: DataFrame) -> list[Any]:
    found = answered(rows)
    assert found is not None
    return found.collect()


def test_answers_stand_anywhere_in_a_query(
    spark: SparkSession, ten: str, listed: list[int]
) -> None:
    puredelta.read(spark, ten).createOrReplaceTempView("ten_answers")
    text = "WITH m AS (SELECT max(id) AS top, count(*) AS n FROM ten_answers x) SELECT {} FROM m"
    assert _answer(spark.sql(text.format("top + n, top IS NULL AS none"))) == [(1999, False)]
    assert _answer(spark.sql("SELECT coalesce(max(id), 0) + 1 AS next FROM ten_answers")) == [
        (1000,)
    ]
    assert _answer(
        spark.sql("SELECT min(b) FROM (SELECT id AS b, k AS id FROM ten_answers) HAVING min(b) < 5")
    ) == [(0,)]
    assert listed == []
    found = answered(
        spark.sql("SELECT k FROM ten_answers WHERE id >= (SELECT max(id) FROM ten_answers)")
    )
    assert found is not None
    assert found.collect() == [(999 % 7,)]
    assert "Aggregate" not in analyzed_plan(found).text()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT id) FROM ten_kept",
        "SELECT count(*) FILTER (WHERE id > 5) FROM ten_kept",
        "SELECT sum(id), count(*) FROM ten_kept",
        "SELECT max(id + 1) FROM ten_kept",
        "SELECT k, count(*) FROM ten_kept GROUP BY k",
        "SELECT count(*) FROM ten_kept TABLESAMPLE (10 PERCENT)",
        "SELECT count(*) FROM ten_kept a JOIN ten_kept b ON a.id = b.id",
        "SELECT count(*) FROM (SELECT DISTINCT k FROM ten_kept)",
        "SELECT count(*) FROM (SELECT explode(array(1, 2)) FROM ten_kept)",
        "SELECT count(*) FROM ten_kept WHERE rand() < 0.5",
        "SELECT count(NULL) FROM ten_kept",
        "SELECT id FROM ten_kept ORDER BY id LIMIT 3",
        "SELECT id FROM ten_kept WHERE k = 3 LIMIT 3",
        "SELECT id FROM ten_kept LIMIT 3 OFFSET 2",
        "SELECT id FROM ten_kept LIMIT 950",
    ],
)
def test_x_73_what_needs_the_rows_is_left_alone(spark: SparkSession, ten: str, query: str) -> None:
    puredelta.read(spark, ten).createOrReplaceTempView("ten_kept")
    assert answered(spark.sql(query)) is None


def test_an_answer_is_of_the_version_of_the_frame(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    puredelta.write(spark.range(0, 10, 1, 2), path)
    before = puredelta.read(spark, path)
    puredelta.write(spark.range(100, 110, 1, 2), path, mode="append")
    assert counted(before) == 10
    assert _answer(before.agg(F.max("id"))) == [(9,)]
    assert counted(puredelta.read(spark, path)) == 20
    assert counted(puredelta.read(spark, path, version=0)) == 10


def test_two_frames_of_one_version_know_their_files(spark: SparkSession, ten: str) -> None:
    first = puredelta.read(spark, ten)
    for _ in range(3):
        assert counted(puredelta.read(spark, ten)) == 1000
    assert counted(first) == 1000


def test_a_cached_frame_is_filled_and_asked(spark: SparkSession, ten: str) -> None:
    rows = puredelta.read(spark, ten).where("k < 10").cache()
    try:
        assert counted(rows) is None
        assert answered(rows.agg(F.count("*"))) is None
        assert limited(rows, 5) is None
    finally:
        rows.unpersist(blocking=True)


def test_settings_of_delta_spark_turn_it_off(spark: SparkSession, ten: str) -> None:
    rows = puredelta.read(spark, ten)
    off = {
        "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
        "spark.databricks.delta.stats.limitPushdown.enabled": "false",
    }
    with temporary_settings(spark, off):
        assert counted(rows) is None
        assert answered(rows.agg(F.max("id"))) is None
        assert answered(rows.limit(5)) is None


def test_a_limit_reads_the_first_files_that_have_enough(
    spark: SparkSession, tmp_path: Path, ten: str
) -> None:
    rows = puredelta.read(spark, ten)
    for limit, files in ((1, 1), (100, 1), (101, 2), (899, 9)):
        found = answered(rows.selectExpr("id + 1 AS x", "_metadata.file_name AS f").limit(limit))
        if found is None:  # _metadata is a column more than the table has
            found = answered(rows.selectExpr("id + 1 AS x").limit(limit))
        assert found is not None
        assert files_read(found) == files
        assert found.count() == limit
    shown = limited(rows.where("true"), 21)
    assert shown is not None
    assert files_read(shown) == 1
    path = str(tmp_path / "vectors")
    properties = {"delta.enableDeletionVectors": "true"}
    puredelta.write(
        spark.range(0, 400, 1, 4).selectExpr("id", "id DIV 200 AS p"),
        path,
        partition_by=["p"],
        properties=properties,
    )
    DeltaTable.forPath(spark, path).delete("id < 90 OR id BETWEEN 200 AND 210")
    rows = puredelta.read(spark, path)
    found = answered(rows.where("p = 1").limit(50))
    assert found is not None
    assert files_read(found) == 1
    assert {row.p for row in found.collect()} == {1}
    assert found.count() == 50
    assert counted(rows) == rows.count() == 400 - 101


def test_looking_for_an_answer_costs_the_same_whatever_the_plan(
    spark: SparkSession, ten: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls into the JVM for plans without Delta, while a frame of a table lives."""
    table = puredelta.read(spark, ten)
    spark.range(3).write.parquet(f"{tmp_path}/plain")
    deep = spark.range(1)
    for n in range(20):
        deep = deep.select("id", *[F.lit(n).alias(f"c{i}") for i in range(20 * (n % 2))])
    plain = spark.read.parquet(f"{tmp_path}/plain")
    many = plain
    for _ in range(15):
        many = many.union(plain)
    answered(table)  # tools of the JVM are fetched once
    calls: list[str] = []
    send = JavaClient.send_command

    def counted_call(self: Any, command: str, *args: Any, **how: Any) -> Any:
        if not command.startswith("m\n"):  # garbage collection of Python
            calls.append(command)
        return send(self, command, *args, **how)

    monkeypatch.setattr(JavaClient, "send_command", counted_call)
    looks: tuple[Callable[[DataFrame], object], ...] = (
        answered,
        counted,
        lambda rows: limited(rows, 3),
    )
    frames = (
        spark.range(1),
        deep,
        spark.sql("SELECT 1"),
        deep.groupBy("id").count().limit(1),
        plain,
        many,
        plain.where("id > 0").select("id"),
        spark.sql("SELECT * FROM range(3) WHERE id > (SELECT max(id) FROM range(2))"),
    )
    for frame in frames:
        for look in looks:
            calls.clear()
            assert look(frame) is None
            assert len(calls) == 1, calls
    assert counted(table) == 1000
