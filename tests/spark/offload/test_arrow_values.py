"""Values that workers compute beside those of Spark, over edge values, in every mode."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from puredelta.spark.offload.arrow_values import (
    VALUES,
    ArrowValue,
    NotInTableError,
    stored_as,
    value_of,
)
from puredelta.spark.resolve.analysis import open_analysis
from puredelta.spark.resolve.expressions import ExpressionTree, Request, Scope
from puredelta.spark.session.session import SessionInfo, no_rows
from puredelta.worker.expressions import evaluated_rows
from tests.worker.expressions import expression

INF = float("inf")
EDGES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "b": (pa.int8(), [-128, -1, 0, 1, 127]),
    "s": (pa.int16(), [-32768, -1, 0, 3, 32767]),
    "i": (pa.int32(), [-(1 << 31), -7, 0, 2, (1 << 31) - 1]),
    "j": (pa.int32(), [-(1 << 31), -1, 0, 2, 65536]),
    "l": (pa.int64(), [-(1 << 63), -1, 0, 1 << 53, (1 << 63) - 1]),
    "x": (pa.float64(), [float("nan"), INF, -INF, -0.0, 0.0, 5e-324, 1.5, 1.7e308]),
    "y": (pa.float64(), [float("nan"), INF, -0.0, 0.0, -2.5, 1.7e308]),
    "f": (pa.float32(), [float("nan"), -0.0, 0.0, 1.5, 3.0e38]),
    "g": (pa.bool_(), [True, False]),
    "h": (pa.bool_(), [True, False]),
    "t": (pa.string(), ["", " a ", "ABC", "\tz ", "straße", "ÄÖ", "😀x", "abcdefgh"]),
    "u": (pa.string(), ["", "abc", "ABC", "Z", "😀"]),
    "d": (pa.decimal128(9, 2), [Decimal(n) for n in ("-9999999.99", "0.00", "0.05", "1234567.89")]),
    "e": (pa.decimal128(20, 5), [Decimal(n) for n in ("-1.00005", "0", "999999999999999.99999")]),
    "w": (pa.decimal128(38, 10), [Decimal(n) for n in ("0", "1" * 28 + ".5", "-7.0000000001")]),
    "day": (pa.date32(), [dt.date(*n) for n in ((1, 1, 1), (1582, 10, 15), (1970, 1, 1))]),
    "end": (pa.date32(), [dt.date(*n) for n in ((1969, 12, 31), (2024, 2, 29), (9999, 12, 31))]),
    "ts": (pa.timestamp("us", "UTC"), [-62135596800000000, -1, 0, 1_730_000_000_123_456]),
}
COMPUTED = """
1; NULL; 'x'; 1.5D; 2.50; date'2024-02-29'; timestamp'2020-02-02 10:00:00'; true; i; t; ts; i +
1; i + j; l - 1; l + i; b + s; b * 3; s * s; l * i; -i; -l; -x; -d; x + y; x * 2; x - i; x / y;
x / 2; i / j; f + x; d + e; d - e; d * e; d * 2; d + 1; w; i = j; i < l; i <=> j; x = y; x < y;
x <=> y; x >= y; t = u; t < u; t <=> u; d > e; day <= end; ts > timestamp'1970-01-01 00:00:00';
g AND h; g OR h; NOT g; g = h; i IS NULL; x IS NOT NULL; coalesce(i, j, 0); coalesce(t, 'none');
nvl(d, 0); ifnull(t, u); nullif(i, 0); nullif(t, 'ABC'); nvl2(i, j, 5); if(g, i, j); if(i > 0,
t, NULL); CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' END; CASE t WHEN 'ABC' THEN 1 ELSE 2 END;
CASE WHEN j = 0 THEN 0 ELSE i + 1 END; t || '-' || u; concat(t, u); upper(u); lower(u);
upper('ab'); trim(t); ltrim(t); rtrim(t); length(t); substring(t, 2, 3);
substring(t, 0, 2); substring(t, -3, 2);
substring(t, -9, 4); substring(t, 2); left(t, 2); date_add(day, 3); date_sub(end, 400);
date_add(day, s); datediff(end, day); day + 1; cast(i AS bigint); cast(b AS double); cast(l AS
double); cast(i AS decimal(12, 2)); cast(d AS decimal(20, 4)); cast(l AS decimal(12, 2));
cast(i AS decimal(5, 1)); cast(b AS decimal(3, 1)); cast(d AS decimal(7, 1)); cast(e AS decimal(9,
0)); cast(e AS decimal(22, 7)); cast(e AS decimal(10, 8)); cast(l AS decimal(20, 0)); i
BETWEEN -1 AND 5; (i + 1) * 2 -
j; abs(1) + i; year(day); month(end); day(day); i % j; l % i; b % 3; abs(i); abs(x); abs(d);
round(d, 1); round(d); round(e, 3); round(d, 7); round(i, 2); i IN (0, 2, NULL); t IN ('ABC', u);
x IN (y, 1.5D); g AND i NOT IN (1, 2); greatest(i, j, 3); least(l, i); greatest(d, e);
least(day, end); d / 7; e / (d + 1); d / (d + 1); (i % 100) / 3.0; cast(l AS int);
cast(i AS tinyint); cast(i AS string); cast(day AS string); cast(g AS string);
concat(cast(l AS string), '-', cast(end AS string)); try_cast(l AS int)
"""
"""Expressions of the table."""
REFUSED = """
try_add(i, 1); try_divide(x, y); collate(t, 'UTF8_LCASE') = u; rand(); md5(t); cast(x AS int);
cast(d AS string); cast(ts AS string); w * w; x % y; i DIV 2; initcap(t); substring(t, i, 2);
trim(BOTH 'x' FROM t); array(i)[0]; i & 1; round(x, 1); round(d, -1); d / e; w / w; to_date(t);
cast(w AS decimal(20, 0));
cast(x AS decimal(9, 2)); reverse(t); repeat(t, 2); cast(ts AS date); greatest(x, y);
greatest(t, u); greatest(ts, ts)
"""
ZONES = ("UTC", "America/New_York")


def edge_table(draw: random.Random, num_rows: int) -> pa.Table:
    """Return combinations of edge values; a tenth is NULL."""
    return pa.table(
        {
            name: pa.array(
                [None if draw.random() < 0.1 else draw.choice(values) for _ in range(num_rows)],
                pa.int64() if pa.types.is_timestamp(kind) else kind,
            ).cast(kind)
            for name, (kind, values) in EDGES.items()
        }
    )


def calm_table(num_rows: int) -> pa.Table:
    """Return values with which nothing overflows, no divisor is 0, and `u` is of ASCII."""
    small = {name: [n % 5 + 1 for n in range(num_rows)] for name in "bsijl"}
    more = {name: [Decimal(n % 7) / 4 for n in range(num_rows)] for name in "dew"}
    floats = {name: [n % 7 / 4 + 0.25 for n in range(num_rows)] for name in "xyf"}
    rest = edge_table(random.Random(1), num_rows)
    given = {**small, **more, **floats, "u": [f"aZ{n % 7}" for n in range(num_rows)]}
    return pa.table(
        {
            name: pa.array(given[name], kind) if name in given else rest[name]
            for name, (kind, _) in EDGES.items()
        }
    )


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    keys = {"ansi": "spark.sql.ansi.enabled", "zone": "spark.sql.session.timeZone"}
    before = {keys[name]: spark.conf.get(keys[name]) for name in values}
    for name, value in values.items():
        spark.conf.set(keys[name], value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def listed(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split(";")]


def translated(
    spark: SparkSession, table: pa.Table, expressions: Sequence[str]
) -> dict[str, ArrowValue | str]:
    """Return each expression as workers compute it, or the reason why they do not."""
    session = SessionInfo.of(spark)
    analysis = open_analysis(spark, spark.createDataFrame(table), no_rows(spark), session=session)
    requests = [Request(expression=e, scope=Scope.TARGET) for e in expressions]
    found: dict[str, ArrowValue | str] = {}
    for one in analysis.resolver.resolve(requests).expressions:
        found[str(one.request.expression)] = value_or_reason(one.tree, ansi=session.ansi)
    return found


def value_or_reason(tree: ExpressionTree | None, *, ansi: bool) -> ArrowValue | str:
    try:
        return "not deterministic" if tree is None else value_of(tree, ansi=ansi)
    except NotInTableError as reason:
        return str(reason)


def computed(value: ArrowValue, table: pa.Table) -> list[Any]:
    """Return the values as a worker computes them."""
    column = lambda column: table[column.name].combine_chunks()  # noqa: E731
    found = evaluated_rows(value.expression, column, len(table))
    assert found.type == value.kind
    return plain(found)


def plain(column: pa.Array) -> list[Any]:
    if pa.types.is_temporal(column.type):  # Python has no year 10000
        column = column.cast(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())
    return list(map(repr, column.to_pylist()))


def of_spark(
    spark: SparkSession, table: pa.Table, expressions: Sequence[str]
) -> dict[str, list[Any]]:
    frame = spark.createDataFrame(table).coalesce(1)
    rows = frame.selectExpr(*(f"{e} AS c{n}" for n, e in enumerate(expressions))).toArrow()
    return {e: plain(rows[f"c{n}"].combine_chunks()) for n, e in enumerate(expressions)}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_of_workers_are_those_of_spark(spark: SparkSession, ansi: str, zone: str) -> None:
    edges, calm = edge_table(random.Random(7), 400), calm_table(60)
    with settings(spark, ansi=ansi, zone=zone):
        found = translated(spark, edges, listed(COMPUTED))
        assert {e: why for e, why in found.items() if isinstance(why, str)} == {}
        for table in (edges, calm):
            mine: dict[str, list[Any]] = {}
            for expression, value in found.items():
                assert isinstance(value, ArrowValue)
                try:
                    mine[expression] = computed(value, table)
                except pa.ArrowException:
                    assert table is edges, expression
            assert len(mine) > len(found) // 2
            assert of_spark(spark, table, list(mine)) == mine


def test_whatever_is_not_in_the_table_is_left_to_spark(spark: SparkSession) -> None:
    found = translated(spark, calm_table(2), listed(REFUSED))
    assert {e for e, why in found.items() if not isinstance(why, str)} == set()
    assert found["initcap(t)"] == "InitCap is no function that workers compute"


def test_every_row_of_the_table_has_an_expression_here(spark: SparkSession) -> None:
    used: set[str] = set()
    session = SessionInfo.of(spark)
    rows = spark.createDataFrame(calm_table(1))
    resolver = open_analysis(spark, rows, no_rows(spark), session=session).resolver
    requests = [Request(expression=e, scope=Scope.TARGET) for e in listed(COMPUTED)]
    for one in resolver.resolve(requests).expressions:
        assert one.tree is not None
        used |= {str(node["class"]).rsplit(".", 1)[-1] for node in one.tree.nodes}
    assert VALUES.keys() - used == set()


@pytest.mark.parametrize("function", ["text_length", "trim_blanks", "trim_left", "trim_right"])
def test_texts_of_other_bytes_have_no_proof(function: str) -> None:
    texts = pa.array([b"ab", b"\xff\xfe"]).view(pa.string())
    with pytest.raises(pa.ArrowException):
        evaluated_rows(expression((function, ("target", "t"))), lambda *_: texts, 2)
    with pytest.raises(pa.ArrowException):
        evaluated_rows(expression(("text_part", ("target", "t"), 0, 1)), lambda *_: texts, 2)
    with pytest.raises(pa.ArrowException):
        evaluated_rows(expression(("ascii_upper", ("target", "t"))), lambda *_: texts, 2)


@pytest.mark.parametrize(
    ("expression", "kind", "cast"),
    [
        ("d * 1.1", pa.decimal128(9, 2), "decimal(9,2)"),
        ("e", pa.decimal128(12, 1), "decimal(12,1)"),
        ("i", pa.int16(), "smallint"),
        ("l", pa.int32(), "int"),
        ("e / 3", pa.decimal128(20, 2), "decimal(20,2)"),
        ("i", pa.decimal128(12, 1), "decimal(12,1)"),
        ("l", pa.decimal128(7, 2), "decimal(7,2)"),
        ("NULL", pa.string(), "string"),
        ("b", pa.float64(), "double"),
    ],
)
def test_values_fit_their_columns_as_in_spark(
    spark: SparkSession, expression: str, kind: pa.DataType, cast: str
) -> None:
    table = calm_table(60)
    value = translated(spark, table, [expression])[expression]
    assert isinstance(value, ArrowValue)
    due = of_spark(spark, table, [f"cast({expression} AS {cast})"])
    assert [computed(stored_as(value, kind), table)] == list(due.values())
