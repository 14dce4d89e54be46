"""New values from a source: workers compute the ones that Spark would, and refuse all others."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from puredelta.commands.dml import in_place
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaMergeBuilder, DeltaTable
from tests.commands.dml.tables import delta_fields, lay_table
from tests.commands.dml.test_in_place import made_by_workers

ZONE = dt.timezone.utc
FIRST = dt.datetime(2024, 1, 1, tzinfo=ZONE)
SCHEMA = pa.schema(
    [
        ("p", pa.int32()),
        ("id", pa.int64()),
        ("k", pa.string()),
        ("n", pa.int32()),
        ("d", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("x", pa.float64()),
        *((f"c{n}", pa.int64()) for n in range(8)),
    ]
)
SOURCE = (
    "p int, id long, k string, n int, d decimal(9,2), day date, at timestamp, x double, "
    "lo int, hi int"
)


def row(number: int) -> dict[str, Any]:
    draw = random.Random(number)
    some = draw.random
    return {
        "p": number // 40,
        "id": None if number % 17 == 5 else number,
        "k": None if number % 13 == 4 else f"k{number}",
        "n": None if some() < 0.2 else draw.randrange(-5, 5),
        "d": None if some() < 0.2 else Decimal(draw.randrange(-(10**8), 10**8)).scaleb(-2),
        "day": None if some() < 0.2 else dt.date(2024, 1, 1) + dt.timedelta(number),
        "at": None if some() < 0.2 else FIRST + dt.timedelta(hours=number, microseconds=number),
        "x": draw.choice([None, 0.0, -0.0, float("nan"), number / 3]),
        **{f"c{n}": number * n for n in range(8)},
    }


FILES = [[row(n) for n in range(start, start + 40)] for start in (0, 40, 80)]


def mapped_fields(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the table's columns with other names in files."""
    fields = delta_fields(schema)
    numbers = itertools.count(1)
    for one in fields:
        one["metadata"] = {
            "delta.columnMapping.id": next(numbers),
            "delta.columnMapping.physicalName": f"col-{one['name']}",
        }
    for inner in inner_fields([one["type"] for one in fields]):
        inner["metadata"] = {
            "delta.columnMapping.id": next(numbers),
            "delta.columnMapping.physicalName": inner["name"],
        }
    return fields


def inner_fields(types: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields of structs, however deep."""
    for kind in types:
        if isinstance(kind, dict):
            yield from kind.get("fields", ())
            yield from inner_fields([one["type"] for one in kind.get("fields", ())])
            yield from inner_fields([kind.get(k) for k in ("elementType", "valueType")])


def source_rows(numbers: range) -> list[tuple[Any, ...]]:
    """Return rows whose keys some rows of the table have, with other values."""
    found = []
    for number in numbers:
        one, other = row(number), row(number + 1000)
        values = (one["p"], one["id"], one["k"], *(other[n] for n in ("n", "d", "day", "at", "x")))
        found.append((*values, -3, 3))
    return found


@dataclass(frozen=True)
class Case:
    """A MERGE, and what is special about the table."""

    on: str
    clauses: Callable[[DeltaMergeBuilder], DeltaMergeBuilder]
    rows: list[tuple[Any, ...]] = field(default_factory=lambda: source_rows(range(0, 130, 3)))
    table: dict[str, Any] = field(default_factory=dict)
    is_refused: bool = False
    """Whether some file is left to Spark."""


def plain(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return merge.whenMatchedUpdate(
        set={
            "n": "s.n",
            "d": "s.d",
            "day": "s.day",
            "at": "s.at",
            "x": "s.x",
            "c1": "coalesce(s.n, t.c1)",
            "c2": "CASE WHEN s.x > t.x THEN s.id ELSE t.c2 END",
        }
    )


def of_clauses(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return (
        merge.whenMatchedUpdate("s.n < 0", set={"n": "s.n + t.n", "k": "concat(t.k, s.k)"})
        .whenMatchedUpdate("t.c1 > 40", set={"n": "NULL", "c3": "t.c3 + s.id"})
        .whenNotMatchedInsert(values={"id": "s.id", "p": "s.p", "n": "s.n"})
        .whenNotMatchedBySourceUpdate("t.c1 < 60", set={"c4": "t.c4 - 1"})
    )


def one_value(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return merge.whenMatchedUpdate(set={"c1": "s.n", "d": "t.d + s.d"})


def text(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return merge.whenMatchedUpdate(set={"c1": "s.n", "k": "lower(s.k)"})


def leaving(merge: DeltaMergeBuilder) -> DeltaMergeBuilder:
    """Let some rows go, or become rows of the source, in files in which others change."""
    return (
        merge.whenMatchedDelete("s.n < -2")
        .whenMatchedUpdate("s.n < 2", set={"n": "s.n + t.n", "k": "lower(s.k)", "x": "s.x"})
        .whenMatchedUpdate(set={name: WHOLE.get(name, "7L") for name in SCHEMA.names})
        .whenNotMatchedInsert("s.n > 0", values={"id": "s.id", "p": "s.p", "n": "s.n"})
        .whenNotMatchedBySourceDelete("t.c1 > 100")
        .whenNotMatchedBySourceUpdate("t.c1 < 60", set={"c4": "t.c4 - 1"})
    )


WHOLE = {name: f"s.{name}" for name in ("p", "id", "k", "n", "d", "day", "at", "x")}


def required(*names: str) -> list[dict[str, Any]]:
    """Return the table's columns, some of which have no NULL."""
    return [{**one, "nullable": one["name"] not in names} for one in delta_fields(SCHEMA)]


def between(*numbers: int) -> list[tuple[Any, ...]]:
    """Return several rows for each key, with ranges that do not overlap."""
    found = source_rows(range(0, 120, 3))
    return [(*one[:8], low, low + 2) for one in found for low in numbers]


CASES = {
    "numbers": Case("t.id = s.id", plain),
    "clauses": Case("t.id = s.id", of_clauses),
    "texts": Case("t.k = s.k", plain),
    "instants": Case(
        "t.at = s.at", plain, [(*list(row(n).values())[:8], n, n) for n in range(0, 60, 2)]
    ),
    "equal NULLs": Case("t.k <=> s.k AND t.p = s.p", one_value, source_rows(range(0, 40, 3))),
    "rows that leave": Case("t.id = s.id", leaving),
    "rows that leave, by other names": Case(
        "t.id = s.id",
        leaving,
        table={
            "properties": {"delta.columnMapping.mode": "name"},
            "physical": {name: f"col-{name}" for name in SCHEMA.names},
            "fields": mapped_fields(SCHEMA),
            "protocol": {"minReaderVersion": 2, "minWriterVersion": 5},
        },
    ),
    "rows that leave partitions": Case(
        "t.p = s.p AND t.id = s.id", leaving, table={"partition_by": ["p"]}
    ),
    "rows that leave, no ASCII": Case(
        "t.id = s.id",
        leaving,
        [
            (*one[:2], "É" if number == 1 else one[2], *one[3:])
            for number, one in enumerate(source_rows(range(0, 130, 3)))
        ],
        is_refused=True,
    ),
    "several keys": Case("t.id = s.id AND t.k = s.k", text),
    "one source row for many": Case("t.p = s.p", one_value, source_rows(range(0, 120, 40))),
    "ranges": Case("t.id = s.id AND t.n >= s.lo AND t.n < s.hi", one_value, between(-6, -4, 0, 2)),
    "keys in a range": Case(
        "t.id >= s.lo AND s.hi > t.id AND s.p < 3",
        of_clauses,
        [(*one[:8], 7 * n, 7 * n + 3) for n, one in enumerate(source_rows(range(20)))],
    ),
    "the other rows of a key": Case(
        "t.id = s.id AND s.lo = -4 AND t.p < 2", one_value, between(-6, -4, 0)
    ),
    "partitions": Case(
        "t.p = s.p AND t.id = s.id AND (t.p > 0 OR s.lo < t.p)",
        plain,
        table={"partition_by": ["p"]},
    ),
    "other names": Case(
        "t.id = s.id AND t.n >= s.lo",
        of_clauses,
        table={
            "properties": {"delta.columnMapping.mode": "name"},
            "physical": {name: f"col-{name}" for name in SCHEMA.names},
            "fields": mapped_fields(SCHEMA),
            "protocol": {"minReaderVersion": 2, "minWriterVersion": 5},
        },
    ),
    "rows under a deletion vector": Case(
        "t.id = s.id",
        plain,
        table={
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            },
            "deleted": {1: [3, 4]},
        },
    ),
    "rules of other columns": Case(
        "t.id = s.id AND s.n IS NOT NULL",
        one_value,
        table={
            "fields": [
                {**one, "nullable": one["name"] not in ("c1", "c2")} for one in delta_fields(SCHEMA)
            ],
            "properties": {"delta.constraints.positive": "C5 >= 0 AND id + c5 <> -1"},
            "protocol": {"minReaderVersion": 1, "minWriterVersion": 3},
        },
    ),
    "no ASCII": Case(
        "t.id = s.id", text, [(*one[:2], "É", *one[3:]) for one in source_rows(range(40, 44))],
        is_refused=True,
    ),
}  # fmt: skip
SAMPLE = ("rows that leave", "clauses", "ranges", "keys in a range", "partitions")


def merged(spark: SparkSession, path: Path, case: Case) -> tuple[Any, ...]:
    """Run the statement; return what is to be equal, whoever computes the values."""
    lay_table(path, SCHEMA, FILES, **case.table)
    found = DeltaTable.forPath(spark, str(path))
    source = spark.createDataFrame(case.rows, SOURCE)
    case.clauses(found.alias("t").merge(source.alias("s"), case.on)).execute()
    rows = sorted(map(repr, found.toDF().collect()))
    adds = TableLog.open(str(path)).snapshot().files.adds()
    stats = sorted(json.dumps(json.loads(add.stats or "{}"), sort_keys=True) for add in adds)
    metrics = found.history(1).collect()[0]["operationMetrics"]
    counts = {n: v for n, v in metrics.items() if "Time" not in n and "Bytes" not in n}
    if case.clauses is leaving:  # new rows are in other files
        return rows, {n: v for n, v in counts.items() if "Rows" in n}
    return rows, stats, counts


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name",
    [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.thorough) for n in CASES],
)
def test_workers_write_what_spark_would(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    done = made_by_workers(monkeypatch)
    here = merged(spark, tmp_path / "here", case)
    assert [bool(one.refused) for one in done] == [case.is_refused]
    monkeypatch.setattr(in_place, "computed_values", lambda *_: "a test says so")
    assert merged(spark, tmp_path / "spark", case) == here
    assert len(done) == 1


def test_a_report_says_why_spark_computes_values_of_the_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    lay_table(tmp_path, SCHEMA, FILES)
    table = DeltaTable.forPath(spark, str(tmp_path)).alias("t")
    source = spark.createDataFrame(source_rows(range(3)), SOURCE).alias("s")

    def choice(on: str, value: str) -> tuple[str, str | None]:
        merge = table.merge(source, on).whenMatchedUpdate(set={"c1": value})
        (one,) = (c for c in merge.explain().choices if c.subject == "new values")
        return one.chosen, one.reason

    assert choice("t.id = s.id", "s.n")[0] == "computed by workers, in the files"
    spark_does = "computed by Spark"
    assert choice("t.id = s.id", "ascii(s.k)") == (
        spark_does,
        "Ascii is no function that workers compute",
    )
    by_join = "a value of the source, whose rows are found by a join"
    assert choice("t.id BETWEEN s.lo AND s.hi", "s.n")[0] == "computed by workers, in the files"
    assert choice("t.x > s.x", "s.n") == (spark_does, by_join)


def test_a_rule_of_a_new_value_is_checked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = made_by_workers(monkeypatch)
    fields = [{**one, "nullable": one["name"] != "c1"} for one in delta_fields(SCHEMA)]
    constraint = {"delta.constraints.positive": "C5 >= 0"}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 3}
    lay_table(tmp_path, SCHEMA, FILES, fields=fields, properties=constraint, protocol=protocol)
    table = DeltaTable.forPath(spark, str(tmp_path)).alias("t")
    (one,) = source_rows(range(1, 2))
    source = spark.createDataFrame([(*one[:3], None, *one[4:])], SOURCE).alias("s")
    with pytest.raises(Exception, match="NOT NULL constraint violated for column: c1"):
        table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"c1": "s.n"}).execute()
    assert [list(one.refused) for one in done] == [[0]]
    with pytest.raises(Exception, match="positive"):
        table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"c5": "s.n"}).execute()
    assert len(done) == 1
    assert TableLog.open(str(tmp_path)).snapshot().version == 0


DECIMAL = pa.decimal128(9, 2)
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        (
            "n",
            pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("x", DECIMAL)]))]),
        ),
        ("l", pa.list_(pa.struct([("y", pa.timestamp("us", "UTC"))]))),
        ("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
        *((f"c{n}", pa.int64()) for n in range(8)),
    ]
)
NESTED_SOURCE = """id long, n struct<a:long, b:string, c:struct<x:decimal(9,2)>>,
l array<struct<y:timestamp>>, m map<string, array<int>>, turned struct<b:string, a:long,
c:struct<x:decimal(9,2)>>"""


def nested_row(number: int) -> dict[str, Any]:
    draw = random.Random(number)
    maybe = lambda value: None if draw.random() < 0.2 else value  # noqa: E731
    inner = maybe({"x": maybe(Decimal(number).scaleb(-2))})
    return {
        "id": number,
        "n": maybe({"a": maybe(number), "b": maybe(f"b{number}"), "c": inner}),
        "l": maybe([maybe({"y": maybe(FIRST)}) for _ in range(draw.randrange(3))]),
        "m": maybe({f"k{n}": maybe([maybe(n)]) for n in range(draw.randrange(3))}),
        **{f"c{n}": number * n for n in range(8)},
    }


def nested_source(numbers: range) -> list[tuple[Any, ...]]:
    found = []
    for number in numbers:
        new = nested_row(number + 1000)
        turned = new["n"] and {name: new["n"][name] for name in ("b", "a", "c")}
        found.append((number, new["n"], new["l"], new["m"], turned))
    return found


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_renamed", [False, True], ids=["plain", "other names"])
def test_workers_copy_nested_columns_of_the_source(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_renamed: bool
) -> None:
    done = made_by_workers(monkeypatch)
    table: dict[str, Any] = {}
    if is_renamed:
        table = {
            "properties": {"delta.columnMapping.mode": "name"},
            "fields": mapped_fields(NESTED),
        }
        table |= {"physical": {name: f"col-{name}" for name in NESTED.names}}
        table |= {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    old = [nested_row(n) for n in range(80)]
    source = spark.createDataFrame(nested_source(range(0, 90, 3)), NESTED_SOURCE)

    def after(path: Path, **values: str) -> list[Any]:
        lay_table(path, NESTED, [old[:40], old[40:]], **table)
        found = DeltaTable.forPath(spark, str(path))
        merge = found.alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdate(set=values).execute()
        return sorted(map(repr, found.toDF().collect()))

    values = {"n": "s.n", "l": "s.l", "m": "s.m", "c1": "s.n.a", "c2": "t.c2 + s.id"}
    plain = {**values, "c1": "s.id"}
    here = after(tmp_path / "here", **plain)
    assert [bool(one.refused) for one in done] == ([] if is_renamed else [False])
    done.clear()
    turned = after(tmp_path / "turned", **{**plain, "n": "s.turned"})
    of_field = after(tmp_path / "field", **values)
    assert not done
    monkeypatch.setattr(in_place, "computed_values", lambda *_: "a test says so")
    assert after(tmp_path / "spark", **plain) == here == turned
    assert after(tmp_path / "field2", **values) == of_field
