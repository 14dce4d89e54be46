"""Values that staged rows hold, so that workers look up what only Spark computes of the source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.commands.dml import search, source
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.session import NotApplicable
from puredelta.tables import DeltaMergeBuilder, DeltaTable
from tests.commands.dml.tables import lay_table

ZONE = dt.timezone.utc
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("k", pa.string()),
        ("d", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("v", pa.int64()),
        *((f"c{n}", pa.int64()) for n in range(4)),
    ]
)
SOURCE = (
    "key string, k string, x double, dated string, n int, op string, v long, st struct<n: long>"
)


def row(number: int) -> dict[str, Any]:
    return {
        "id": None if number % 17 == 5 else number,
        "n": number % 50,
        "k": None if number % 13 == 4 else f"k{number}",
        "d": Decimal(number).scaleb(-1),
        "day": dt.date(2024, 1, 1) + dt.timedelta(number),
        "at": dt.datetime(2024, 1, 1, tzinfo=ZONE) + dt.timedelta(hours=number),
        "v": number,
        **{f"c{n}": n for n in range(4)},
    }


FILES = [[row(n) for n in range(start, start + 40)] for start in (0, 40, 80)]


def source_row(number: int) -> tuple[Any, ...]:
    old = row(number)
    return (
        f" {number} " if old["id"] is not None else None,
        None if old["k"] is None else f"K{number}",
        number / 10,
        f"{old['day']} 00:00:00",
        number,
        "dD "[number % 3].strip(),
        number + 1000,
        (number,),
    )


ROWS = [source_row(n) for n in range(0, 130, 7)]
JUNK = [*ROWS, ("junk", "Kx", 0.25, "2024-13-01 00:00:00", -1, "", 9, None)]


def upsert(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return merge.whenMatchedUpdate(set={"v": "s.v", "c1": "t.c1 + s.n"}).whenNotMatchedInsert(
        values={"k": "s.key", "v": "s.v"}
    )


def whole_keys(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    """New rows are those of the source alone."""
    values = {"id": "s.n", "k": "s.key", "v": "s.v"}
    rest = dict.fromkeys(["n", "d", "day", "at", "c0", "c1", "c2", "c3"], "NULL")
    whole = {**rest, **values}
    return merge.whenMatchedUpdate(set=whole).whenNotMatchedInsert(values=whole)


def of_clauses(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return (
        merge.whenMatchedDelete("initcap(s.op) = 'D' AND s.n <= t.v")
        .whenMatchedUpdate("s.v % 2 = 0", set={"v": "s.v"})
        .whenNotMatchedInsert("s.v % 3 = 1", values={"k": "s.key"})
        .whenNotMatchedBySourceUpdate("t.v < 9", set={"c2": "t.v"})
    )


@dataclass(frozen=True)
class Case:
    on: str
    rows: list[tuple[Any, ...]] = field(default_factory=lambda: ROWS)
    clauses: Callable[[DeltaMergeBuilder], DeltaMergeBuilder] = upsert
    ansi: bool = True
    is_looked_up: bool = True


CASES = {
    "implicit cast": Case("t.id = s.key"),
    "cast": Case("CAST(s.key AS INT) = t.id"),
    "cast of the target that holds all": Case("t.n = CAST(s.key AS BIGINT) AND t.v = s.n"),
    "equal NULLs": Case("t.id <=> CAST(s.key AS BIGINT) AND t.v = s.n"),
    "texts": Case("t.k = lower(s.k)"),
    "decimals": Case("t.d = CAST(s.x AS DECIMAL(9, 2))"),
    "dates": Case("t.day = to_date(s.dated)"),
    "instants": Case("t.at = timestamp_seconds(1704067200 + 3600 * s.n)"),
    "the clock": Case(
        "t.day = date_sub(date_add(current_date(), s.n), datediff(now(), DATE '2024-1-1'))"
    ),
    "a field of a struct": Case("t.v = s.st.n AND s.st.n IN (7, 21, 35) AND s.key LIKE ' %'"),
    "a condition of the source": Case("t.v = s.n AND s.key RLIKE '[37] $'"),
    "clauses": Case("t.v = s.n", clauses=of_clauses),
    "keys and clauses": Case("t.id = s.key AND length(s.op) < 2", clauses=of_clauses),
    "no ANSI": Case("t.id = s.key", JUNK, ansi=False),
    "a range": Case("t.id >= CAST(s.key AS INT) AND s.n + 1L > t.id"),
    "a failing row that is left out": Case(
        "t.id = s.key AND s.key RLIKE '[0-9]'", JUNK, is_looked_up=False
    ),
    "a part that two share": Case("t.id = CAST(s.key AS INT) AND CAST(s.key AS INT) % 2 = 0"),
    "a float": Case("t.id = s.x", is_looked_up=False),
    "a number of the target": Case("t.id + 1 = s.key"),
    "texts of both sides": Case("lower(t.k) = lower(s.k)", clauses=whole_keys),
    "a text of the target": Case("upper(t.k) = s.k", clauses=of_clauses),
    "equal NULLs of the target": Case("upper(t.k) <=> s.k"),
    "a cast of the target": Case("CAST(t.id AS STRING) = trim(s.key)"),
    "a decimal of the target": Case("t.d + 1 = CAST(s.x + 1 AS DECIMAL(10, 2))"),
    "a date of the target": Case("date_add(t.day, 2) = date_add(to_date(s.dated), 2)"),
    "two of one column": Case("t.id + 1 = s.n + 1L AND t.id * 2 = s.n * 2L AND t.v >= 0"),
    "a NULL of the target": Case("coalesce(t.id, -1) = coalesce(CAST(s.key AS BIGINT), -2)"),
    "two columns of the target": Case("concat(t.k, t.n) = s.k", is_looked_up=False),
    "a float of the target": Case("CAST(t.n AS DOUBLE) = s.x", is_looked_up=False),
    "an order of the target": Case("t.id + 1 > s.v", is_looked_up=False),
}
SAMPLE = (
    "implicit cast", "equal NULLs", "texts", "keys and clauses", "a part that two share",
    "texts of both sides", "a text of the target", "equal NULLs of the target", "two of one column",
)  # fmt: skip


@contextmanager
def set_ansi(spark: SparkSession, value: bool) -> Iterator[None]:
    spark.conf.set("spark.sql.ansi.enabled", value)
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def lookups(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets what workers answered."""
    done: list[Any] = []
    plain = search.look_up_keys

    def counted(*arguments: Any) -> Any:
        done.append(plain(*arguments))
        return done[-1]

    monkeypatch.setattr(search, "look_up_keys", counted)
    return done


def outcome(path: Path, rows: DataFrame, case: Case) -> tuple[Any, ...]:
    """Run the statement; return what is to be equal, however matches are found."""
    lay_table(path, SCHEMA, FILES)
    found = DeltaTable.forPath(rows.sparkSession, str(path))
    merge = case.clauses(found.alias("t").merge(rows.alias("s"), case.on))
    try:
        merge.execute()
    except PySparkException as error:
        assert TableLog.open(str(path)).snapshot().version == 0
        return (error.getCondition(),)
    metrics = found.history(1).collect()[0]["operationMetrics"]
    counts = {n: v for n, v in metrics.items() if "Rows" in n}
    return sorted(map(repr, found.toDF().collect())), counts


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "name",
    [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.thorough) for n in CASES],
)
def test_workers_find_the_rows_that_spark_would(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    done = lookups(monkeypatch)
    rows = spark.createDataFrame(case.rows, SOURCE)
    with set_ansi(spark, case.ansi):
        here = outcome(tmp_path / "here", rows, case)
        assert len(done) == case.is_looked_up
        assert not any(isinstance(one, NotApplicable) for one in done)
        monkeypatch.setattr(source, "_valued", lambda *_: None)
        assert outcome(tmp_path / "spark", rows, case) == here
    assert len(here) == 2
    assert len(done) == case.is_looked_up
    assert sorted(p.name for p in (tmp_path / "here").iterdir() if p.name.startswith("_")) == [
        "_delta_log"
    ]


SHARED = "t.id = CAST(s.key AS INT) AND CAST(s.key AS INT) % 2 = 0 AND s.n >= 0"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "on", ["t.id = s.key", "t.day = to_date(s.dated)", SHARED, "CAST(t.k AS INT) = s.n"]
)
def test_an_error_of_a_value_is_the_one_of_the_join(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    case = Case(on, JUNK)
    rows = spark.createDataFrame(JUNK, SOURCE)
    here = outcome(tmp_path / "here", rows, case)
    assert here in [("CAST_INVALID_INPUT",), ("CANNOT_PARSE_TIMESTAMP",)]
    monkeypatch.setattr(source, "_valued", lambda *_: None)
    assert outcome(tmp_path / "spark", rows, case) == here


@pytest.mark.thorough
def test_a_source_in_files_of_its_own_is_staged_for_its_values(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = lookups(monkeypatch)
    spark.createDataFrame(ROWS, SOURCE).write.parquet(str(tmp_path / "source"))
    rows = spark.read.parquet(str(tmp_path / "source"))
    here = outcome(tmp_path / "here", rows, CASES["implicit cast"])
    monkeypatch.setattr(source, "_valued", lambda *_: None)
    assert outcome(tmp_path / "spark", rows, CASES["implicit cast"]) == here
    assert len(done) == 1


LAYOUTS = {
    "plain": "",
    "partitioned by the key": "PARTITIONED BY (k)",
    "mapped": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "with vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("column", ["k STRING", "k CHAR(5)", "k TIMESTAMP"])
def test_expressions_of_the_target_are_keys_in_each_layout(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, column: str
) -> None:
    """Nothing is looked up in padded texts, or in the texts of partition values."""
    done = lookups(monkeypatch)
    is_time = column.endswith("TIMESTAMP")
    value = "timestamp_seconds(id)" if is_time else "concat('a', id)"
    key = "date_add(CAST({0}.k AS DATE), {0}.id)" if is_time else "upper({0}.k)"

    def outcome_at(path: Path) -> Any:
        target = f"delta.`{path}`"
        sql = partial(puredelta.sql, spark)
        sql(f"CREATE TABLE {target} (id INT, {column}, v INT) USING delta {LAYOUTS[layout]}")
        for n in range(2):
            some = f"FROM range({n * 4}, {n * 4 + 4})"
            sql(f"INSERT INTO {target} SELECT CAST(id AS INT) AS id, {value} AS k, 0 AS v {some}")
        sql(f"DELETE FROM {target} WHERE id = 2")
        given = f"SELECT CAST(id AS INT) AS id, {value} AS k, 5 AS v FROM range(1, 12, 2)"
        on = f"{key.format('t')} = {key.format('s')}"
        sql(
            f"MERGE INTO {target} t USING ({given}) s ON {on} "
            "WHEN MATCHED THEN UPDATE SET v = s.v + t.id WHEN NOT MATCHED THEN INSERT *"
        )
        return sorted(map(tuple, puredelta.read(spark, path).collect()))

    here = outcome_at(tmp_path / "here")
    answers = len(done)
    monkeypatch.setattr(source, "_valued", lambda *_: None)
    assert outcome_at(tmp_path / "spark") == here
    assert answers == 1 + (column == "k STRING")  # the DELETE is searched by workers, too


def test_an_explanation_names_the_lookup(spark: SparkSession, tmp_path: Path) -> None:
    lay_table(tmp_path, SCHEMA, FILES)
    table = DeltaTable.forPath(spark, str(tmp_path)).alias("t")
    rows = spark.createDataFrame(ROWS, SOURCE).alias("s")
    report = upsert(table.merge(rows, "t.id = s.key")).explain()
    (search_choice,) = (one for one in report.choices if one.subject == "search")
    assert (
        search_choice.chosen == "keys of the source are looked up in the files, in Python workers"
    )
