"""A session that was activated: PySpark's own calls on tables at a path."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm import catalog


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a table")


def contents(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows.collect()), key=str)


def name(path: str) -> str:
    return f"delta.`{path}`"


def operations(path: str) -> list[str | None]:
    return [entry.commit_info.operation for entry in TableLog.open(path).history()]


@pytest.mark.smoke
def test_reader_writer_and_sql(active: SparkSession, path: str) -> None:
    spark = active
    assert puredelta.activate(spark), "twice is once"
    rows = spark.sql("SELECT id, id % 2 AS p FROM range(4)")
    writer = rows.write.format("delta").partitionBy("p").option("userMetadata", "first")
    writer.option("delta.enableChangeDataFeed", True).save(path)
    with pytest.raises(InvalidRequestError) as refused:
        rows.write.format("delta").save(path)
    assert refused.value.code is ErrorCode.TABLE_ALREADY_EXISTS
    rows.write.save(path, format="DELTA", mode="ignore")
    rows.limit(0).write.mode("append").save(path=path, format="delta", userMetadata="none")
    spark.range(9, 10).selectExpr("id", "1L AS p").write.format("delta").mode("append").save(path)
    assert spark.read.format("delta").load(path).count() == 5
    old = spark.read.option("versionAsOf", 0).load(path, format="delta")
    assert contents(old) == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert "FileScan parquet" in old._jdf.queryExecution().executedPlan().toString()
    assert spark.read.load(path, "delta", versionAsOf=0).count() == 4
    spark.sql(f"DELETE FROM {name(path)} WHERE id = :x", args={"x": 9})
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    changes = changes.option("startingVersion", 1).load(path)
    assert contents(changes.select("id", "_change_type")) == [(9, "delete"), (9, "insert")]
    spark.sql(
        f"MERGE INTO {name(path)} t USING {{s}} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        s=spark.range(3, 5).selectExpr("id", "7L AS p"),
    )
    spark.sql(f"UPDATE {name(path)} SET p = 8 WHERE id = 4")
    expected = [(0, 0), (1, 1), (2, 0), (3, 7), (4, 8)]
    assert contents(spark.table(name(path))) == expected
    assert contents(spark.read.table(name(path))) == expected
    assert spark.read.option("versionAsOf", 0).table(name(path)).count() == 4
    assert operations(path) == ["UPDATE", "MERGE", "DELETE", "WRITE", "WRITE"]
    query = f"SELECT count(*), max({name(path)}.id) FROM {name(path)} WHERE p < (SELECT max(p) FROM"
    assert contents(spark.sql(f"{query} {name(path)} VERSION AS OF 0)")) == [(2, 2)]


def test_other_formats_and_statements_are_untouched(active: SparkSession, path: str) -> None:
    spark = active
    spark.range(3).write.mode("overwrite").option("compression", "none").parquet(path)
    assert spark.read.load(path).count() == 3, "the default format"
    assert spark.read.format("parquet").schema("id long").load([path]).count() == 3
    assert spark.sql("SELECT :x + id AS y FROM {r}", args={"x": 1}, r=spark.range(1)).columns
    assert spark.sql("SELECT 'delta.`/x`' AS text").first()[0] == "delta.`/x`"
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("no.such_table")
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    assert spark.read.format("delta").load(path).count() == 3


def test_names_of_other_tables_cost_few_calls_into_the_jvm(
    active: SparkSession, monkeypatch: Any
) -> None:
    active.range(3).write.mode("overwrite").format("parquet").saveAsTable("rows_elsewhere")
    active.range(3).createOrReplaceTempView("rows_shown")
    calls: list[str] = []
    send = JavaClient.send_command

    def counted_call(self: Any, command: str, *args: Any, **how: Any) -> Any:
        if not command.startswith("m\n"):  # garbage collection of Python
            calls.append(command)
        return send(self, command, *args, **how)

    looks: tuple[tuple[Callable[[], object], int], ...] = (
        (lambda: active.table("rows_elsewhere"), 2),
        (lambda: active.sql("SELECT 1"), 5),
        (lambda: active.sql("SELECT max(id) FROM rows_elsewhere AS r WHERE id IN (1, 2)"), 6),
        (lambda: active.sql("SELECT * FROM rows_shown"), 7),
        (lambda: active.sql("SELECT * FROM rows_shown a JOIN rows_shown b USING (id)"), 9),
    )
    for look, _ in looks:
        look()  # objects of the session, and identifiers of such names, are fetched once
    monkeypatch.setattr(JavaClient, "send_command", counted_call)
    for look, most in looks:
        calls.clear()
        look()
        assert 0 < len(calls) <= most, calls
    monkeypatch.undo()
    active.sql("DROP TABLE rows_elsewhere")


def test_the_default_format_may_be_delta(active: SparkSession, path: str) -> None:
    active.conf.set("spark.sql.sources.default", "delta")
    try:
        active.range(2).write.save(path)
        assert active.read.load(path).count() == 2
    finally:
        active.conf.unset("spark.sql.sources.default")
    assert operations(path) == ["WRITE"]


def test_what_a_reader_cannot_be_told(active: SparkSession, path: str) -> None:
    reader = active.read.format("delta")
    with pytest.raises(TableNotFoundError):
        reader.load(path)
    with pytest.raises(InvalidRequestError, match="Only one path"):
        reader.load([path, path])
    with pytest.raises(InvalidRequestError, match="'path' is not specified"):
        reader.load()
    with pytest.raises(InvalidRequestError, match="schema at read time"):
        reader.schema("a int").load(path)
    changes = active.read.format("delta").option("readChangeFeed", "true")
    with pytest.raises(InvalidRequestError, match="Cannot time travel"):
        changes.option("versionAsOf", 1).load(path)


def test_threads_do_not_meet(active: SparkSession, tmp_path: Path) -> None:
    found: dict[int, int] = {}

    def work(n: int) -> None:
        path = str(tmp_path / f"t{n}")
        active.range(n).write.format("delta").save(path)
        found[n] = active.sql(f"SELECT count(*) FROM {name(path)}").first()[0]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {1: 1, 2: 2, 3: 3}


def test_a_session_with_the_jar_is_left_alone(spark: SparkSession, monkeypatch: Any) -> None:
    monkeypatch.setattr("puredelta.activation.session._JAR_CLASS", "java.lang.String")
    with pytest.warns(UserWarning, match="has delta-spark's JAR"):
        assert not puredelta.activate(spark)
    assert not hasattr(vars(SparkSession)["sql"], "__wrapped__")


def test_a_query_by_path_asks_the_catalog_for_nothing(
    active: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for the path nor for the field that holds its rows."""
    path = str(tmp_path / "t")
    puredelta.write(active.range(3), path)
    asked = []
    monkeypatch.setattr(catalog, "find_entry", lambda _, parts, **__: asked.append(parts))
    assert active.sql(f"SELECT sum(id) FROM delta.`{path}`").first() == (3,)
    assert active.sql("SELECT max(id) FROM {rows}", rows=active.range(3)).first() == (2,)
    assert not asked
    active.sql(f"SELECT id FROM delta.`{path}`").createOrReplaceTempView("field")
    assert active.sql("SELECT id FROM field").count() == 3
    active.catalog.dropTempView("field")
    assert asked == [("field",)]
