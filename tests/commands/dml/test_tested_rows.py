"""Rows that workers find by conditions, beside those that Spark finds."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from puredelta.commands.dml.positions import SOURCE_SETS
from puredelta.commands.dml.search import joined_words, look_up
from puredelta.commands.dml.search_plan import SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.spec import DeleteSpec
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.offload.key_lookup import KeyLookup
from puredelta.spark.scan.bitmaps import CountedWords
from puredelta.spark.session.session import NotApplicable
from puredelta.worker.lookup.conditions import NO_CLAUSE
from tests.commands.dml.tables import (
    delete,
    delete_by_source,
    execute_spec,
    insert,
    lay_table,
    merge,
    update,
    utc,
)

NAN, INF = float("nan"), float("inf")
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "l": (pa.int64(), [-(1 << 63), -7, 0, 5, 1 << 40]),
    "i": (pa.int32(), [-7, 0, 3, (1 << 31) - 1]),
    "s": (pa.int16(), [-1, 0, 9]),
    "b": (pa.int8(), [-128, 0, 127]),
    "x": (pa.float64(), [NAN, INF, -0.0, 0.0, 1.5, 1e300]),
    "f": (pa.float32(), [NAN, -0.0, 0.5, 1.5]),
    "g": (pa.bool_(), [True, False]),
    "t": (pa.string(), ["", " a", "abc", "Abc", "ä", "😀", "z" * 40]),
    "d": (pa.decimal128(9, 2), [Decimal(n) for n in ("-1.50", "0.00", "7.25", "9999999.99")]),
    "w": (pa.decimal128(30, 4), [Decimal(n) for n in ("-1.5000", "0.0000", "1" * 20 + ".0001")]),
    "day": (pa.date32(), [dt.date(*n) for n in ((1905, 1, 1), (1969, 12, 31), (2024, 2, 29))]),
    "ts": (pa.timestamp("us", "UTC"), [utc(1905, 1, 1), utc(1970, 1, 1), utc(2024, 2, 29, 12)]),
    "local": (pa.timestamp("us"), [utc(n, 2, 28).replace(tzinfo=None) for n in (1969, 2024)]),
}
SCHEMA = pa.schema(
    [*((name, kind) for name, (kind, _) in VALUES.items()), ("p", pa.string()), ("q", pa.int32())]
)
CONDITIONS = """
l = 5; l <> 5; l > 0 AND i < 3; NOT (l > 0); l IS NULL; l IS NOT NULL OR t = 'abc'; l <=> NULL;
i <=> 3; i IN (3, 0, NULL); NOT (i IN (3, 0)); l = i; s < i; b = 127; b > s; x = 0; x > 1.5D;
x = double('NaN'); x <> 1.5D; x >= f; f = 0.5; f < 1.5D; g; NOT g; g = true; g AND l > 0; t = 'abc';
t > 'B'; t = ''; t BETWEEN 'A' AND 'b'; t = '😀'; d = 7.25; d > 7; d < 0.005; d <= w; w > 0;
w = -1.5; day = DATE'2024-02-29'; day < DATE'1910-10-15'; day >= DATE'1969-12-31' AND g;
ts > TIMESTAMP'1970-01-01 00:00:00Z'; ts = TIMESTAMP'1905-01-01 00:00:00Z'; ts IS NULL;
local < TIMESTAMP_NTZ'2000-01-01 00:00:00'; p = 'a' AND l = 5; p IS NULL AND i = 3;
q = 2 OR l = 5; q > 1 AND t = 'abc'; p > 'a' OR day IS NULL; q IS NULL OR d = 0;
l % 5 = 0; i % 2 = 1; abs(s) = 1; l + 1 > 5; i + s = 2; coalesce(i, 0) = 0;
coalesce(t, 'abc') = 'abc'; upper(t) = 'ABC'; lower(t) = 'abc'; length(t) > 2; trim(t) = 'a';
substring(t, 1, 1) = 'a'; concat(t, p) = 'abca'; t || '-' || p = 'abc-a'; year(day) = 2024;
month(day) = 2 AND l > 0; day + 1 = DATE'2024-03-01'; datediff(day, DATE'1970-01-01') < 0;
CASE WHEN g THEN l ELSE 0 END = 5; if(g, i, s) = 0; d + 1 > 8; d * 2 = 14.5; round(d, 1) = 7.3;
cast(i AS bigint) = l; cast(l AS string) = '5'; cast(i AS decimal(12, 2)) = d; nullif(i, 0) IS NULL;
greatest(i, s) = 3; x * 2 = 3; x + f = 3; q % 2 = 0 AND i IS NOT NULL; p || t = 'aabc';
cast(q AS bigint) = l; coalesce(p, 'none') = 'none' AND g
"""
NO_PROOF = {"lower(t) = 'abc'", "upper(t) = 'ABC'", "i + s = 2"}
"""Of texts that are not of ASCII letters, and of sums that overflow Arrow raises an error."""


def listed(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split(";")]


def some_rows(
    dice: random.Random, count: int, p: str | None, q: int | None
) -> list[dict[str, Any]]:
    def value(name: str) -> Any:
        return None if dice.random() < 0.15 else dice.choice(VALUES[name][1])

    return [{**{name: value(name) for name in VALUES}, "p": p, "q": q} for _ in range(count)]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> TableLog:
    """Files of two partition columns, one with deleted rows, one without some columns."""
    dice = random.Random(48)
    root = tmp_path_factory.mktemp("tested") / "table"
    files = [
        some_rows(dice, 90, *values) for values in (("a", 2), ("b", 1), (None, None), ("a", 2))
    ]
    made = lay_table(
        root, SCHEMA, files, partition_by=["p", "q"], deleted={1: [0, 7, 64, 89]}, with_stats=False
    )
    short = next(root.rglob("part-00003.parquet"))
    pq.write_table(pq.read_table(short, partitioning=None).drop_columns(["t", "day", "d"]), short)
    return made


class SeenError(Exception):
    """Ends a statement before it writes anything."""

    def __init__(self, found: CountedWords | NotApplicable, due: CountedWords) -> None:
        self.found, self.due = found, due


def both(context: StatementContext, plan: SearchPlan, lookup: KeyLookup) -> CountedWords:
    raise SeenError(look_up(context, plan, lookup), joined_words(context, plan))


def rows_of(words: CountedWords) -> dict[int, list[int]]:
    return {file: rows.rows().tolist() for file, rows in words.files().items() if len(rows.words)}


def left_to_spark(spark: SparkSession, log: TableLog, condition: str) -> str | None:
    """Compare the rows of a condition; return why workers left it to Spark, if they did."""
    try:
        execute_spec(spark, log, DeleteSpec(condition=condition), look_up=both)
    except SeenError as seen:
        found, due = seen.found, seen.due
        if isinstance(found, NotApplicable):
            return found.reason
        assert rows_of(found) == rows_of(due), condition
        assert (found.hits.sum(), {*found.row_sets}) == (due.hits.sum(), {*due.row_sets})
        return None
    except ArithmeticException:
        return "an error of a row, as Spark finds it"
    return "Spark alone"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("step", [12, pytest.param(1, marks=pytest.mark.thorough)])
def test_workers_find_the_rows_that_spark_finds(
    spark: SparkSession, log: TableLog, ansi: str, step: int
) -> None:
    conditions = listed(CONDITIONS)[::step]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        left = {one: left_to_spark(spark, log, one) for one in conditions}
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert {one: why for one, why in left.items() if why and one not in NO_PROOF} == {}


@pytest.mark.parametrize("condition", ["t LIKE 'a%'", "t RLIKE 'a'", "x % 2 = 0", "hash(l) = 0"])
def test_other_conditions_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    rows = some_rows(random.Random(2), 9, "a", 1)
    log = lay_table(tmp_path / "table", SCHEMA, [rows])
    assert left_to_spark(spark, log, condition) == "Spark alone"


MATCHES = """
t.i = s.i AND lower(t.u) = lower(s.u); t.i = s.i AND coalesce(t.l, 0) <> coalesce(s.l, 0);
t.i = s.i AND t.l + 1 > s.l; t.i <=> s.i AND concat(t.u, s.u) <> 'aa'; t.i = s.i AND t.d * 2 > s.d;
t.i = s.i AND t.s BETWEEN s.s - 1 AND s.s + 1; t.i = s.i AND t.l % 2 = 1 AND s.g;
t.i = s.i AND (t.x > s.x OR year(t.day) = year(s.day)); t.u = s.u AND t.p || 'x' = 'ax'
"""
"""Keys, and conditions of the table of functions."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("on", listed(MATCHES))
def test_workers_find_the_pairs_that_spark_finds(
    spark: SparkSession, tmp_path: Path, on: str
) -> None:
    dice = random.Random(on)
    schema = SCHEMA.append(pa.field("u", pa.string()))
    rows = [{**row, "u": dice.choice(["a", "B", "b", None])} for row in some_rows(dice, 60, "a", 1)]
    news = [{**row, "u": dice.choice(["A", "b", "b", None])} for row in some_rows(dice, 40, "b", 2)]
    log = lay_table(tmp_path / "table", schema, [rows[:40], rows[40:]], with_stats=False)
    pq.write_table(pa.Table.from_pylist(news, schema), tmp_path / "source.parquet")
    source = spark.read.parquet(str(tmp_path / "source.parquet"))
    clauses = (
        delete("nullif(t.s, 0) IS NULL"),
        update("s.l IS NULL OR abs(t.s) > 0", u="s.u"),
        insert(),
        delete_by_source("length(t.t) > 2"),
    )
    with pytest.raises(SeenError) as seen:
        merge(spark, log, source, on, *clauses, look_up=both)
    found, due = seen.value.found, seen.value.due
    assert isinstance(found, CountedWords), found
    assert {*map(len, (found.words, due.words))} != {0}
    for sets in (range(4), range(SOURCE_SETS, SOURCE_SETS + 4), (NO_CLAUSE,)):
        assert rows_of(found.select(*sets)) == rows_of(due.select(*sets)), sets
    assert found.hits.sum() == due.hits.sum()
