"""Conditions on the sources of generated partition columns: what is left out holds no row
(X-70b)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest
from hypothesis import event, given, reject
from hypothesis import strategies as st

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.derived import derived_conditions
from puredelta.log.skipping.pruning import SkippedBy, prune
from puredelta.protocol.actions.actions import Add, Metadata, Protocol
from puredelta.protocol.schema.partition_values import encode_partition_value
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Or,
    Predicate,
    Ref,
    Side,
    StartsWith,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

SOURCES: dict[str, DataType] = {
    "ts": TIMESTAMP,
    "n": TIMESTAMP_NTZ,
    "d": DATE,
    "s": STRING,
    "l": LONG,
}
DAYS = (
    *("2023-12-31", "2024-01-01", "2024-01-31", "2024-02-29"),
    *("2024-12-31", "2025-01-01", "0001-01-01"),
)
MOMENTS = st.builds(
    lambda day, hour, minute: dt.datetime.fromisoformat(day).replace(hour=hour, minute=minute),
    st.sampled_from(DAYS),
    st.sampled_from([0, 1, 12, 23]),
    st.sampled_from([0, 30, 59]),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "ts": MOMENTS.map(lambda m: m.replace(tzinfo=dt.timezone.utc)),
    "n": MOMENTS,
    "d": MOMENTS.map(lambda m: m.date()),
    "s": st.text("ab\u00e9", max_size=4),
    "l": st.integers(-2, 2),
}
Column: TypeAlias = "tuple[str, DataType, Any]"


def local(value: Any, zone: dt.timezone) -> Any:
    """A moment as the session of a writer shows it."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        try:
            return value.astimezone(zone).replace(tzinfo=None)
        except OverflowError:
            return value.replace(tzinfo=None)
    return value


def parts(name: str) -> list[Column]:
    return [
        (f"{part}({name})", INTEGER, lambda v, part=part: getattr(v, part.lower()))
        for part in ("YEAR", "MONTH", "DAY", *(() if name == "d" else ("HOUR",)))
    ]


def first_of(start: int, length: int) -> Callable[[str], str]:
    return lambda value: value[max(start - 1, 0) :][:length]


def shapes(name: str) -> list[list[Column]]:
    """Lists of generated columns: text, type, and the value of a local source."""
    if name == "l":
        return [[("l", LONG, lambda v: v)]]
    if name == "s":
        cut = [(0, 2), (1, 1), (1, 3), (2, 2)]
        texts: list[list[Column]] = [
            [(f"SUBSTRING(s, {start}, {length})", STRING, first_of(start, length))]
            for start, length in cut
        ]
        return [*texts, [("s", STRING, lambda v: v)]]
    every = parts(name)
    some = [every, every[:1], every[1:], every[:2], [every[0], every[2]], [every[1]]]
    some += [[(text, DATE, _day)] for text in (f"CAST({name} AS DATE)", f"DATE(`{name}`)")]
    if name == "d":
        some.append([("TRUNC(d, 'MONTH')", DATE, lambda v: v.replace(day=1))])
        some.append([('trunc(d, "year")', DATE, lambda v: v.replace(day=1, month=1))])
    else:
        month = f"DATE_TRUNC('MONTH', {name})"
        some.append([(month, SOURCES[name], lambda v: v.replace(day=1, hour=0, minute=0))])
    some += [
        [(f"date_format({name}, '{pattern}')", STRING, partial(digits, pattern=pattern))]
        for pattern in ("yyyy-MM", "yyyy-MM-dd", "yyyy-MM-dd-HH")
    ]
    return some


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


def digits(value: dt.date, pattern: str) -> str:
    hour = value.hour if isinstance(value, dt.datetime) else 0
    whole = f"{value.year:04d}-{value.month:02d}-{value.day:02d}-{hour:02d}"
    return whole[: {"yyyy-MM": 7, "yyyy-MM-dd": 10, "yyyy-MM-dd-HH": 13}[pattern]]


def table(columns: list[Column]) -> TableConfig:
    sources = [StructField(name, kind) for name, kind in SOURCES.items()]
    generated = [
        StructField(f"p{n}", kind, metadata={"delta.generationExpression": text})
        for n, (text, kind, _) in enumerate(columns)
    ]
    schema = StructType((*sources, *generated))
    metadata = Metadata(
        id="t",
        schema_string=encode_schema(schema),
        partition_columns=tuple(f.name for f in generated),
        configuration={},
    )
    return TableConfig.of(Protocol(min_reader_version=1, min_writer_version=4), metadata)


@st.composite
def conditions(draw: st.DrawFn, name: str) -> Predicate:
    ref, values = Ref(Side.TARGET, (name,), SOURCES[name]), VALUES[name]
    kind = draw(st.integers(0, 8))
    if kind == 0:
        return IsNull(ref)
    if kind == 1:
        return OneOf(ref, tuple(draw(st.lists(st.none() | values, min_size=1, max_size=3))))
    if kind == 2 and name == "s":
        return StartsWith(ref, draw(values))
    compare = Compare(draw(st.sampled_from(list(CompareOp))), ref, Const(draw(values)))
    if kind == 3:
        return Not(compare)
    if kind in (4, 5):
        combine = And if kind == 4 else Or
        return combine((compare, draw(conditions(name))))
    return compare


def holds(predicate: Predicate, value: Any) -> bool | None:
    """Whether a condition is true of a value, with Spark's NULL."""
    match predicate:
        case IsNull():
            return value is None
        case OneOf(_, values):
            return value in values if value is not None else None
        case StartsWith(_, prefix):
            return None if value is None else value.startswith(prefix)
        case Not(child):
            inner = holds(child, value)
            return None if inner is None else not inner
        case And(some):
            found = [holds(part, value) for part in some]
            return False if False in found else None if None in found else True
        case Or(some):
            found = [holds(part, value) for part in some]
            return True if True in found else None if None in found else False
        case Compare(op, _, Const(other)):
            if value is None:
                return False if op is CompareOp.NULL_SAFE_EQUAL else None
            return {
                CompareOp.EQUAL: value == other,
                CompareOp.NULL_SAFE_EQUAL: value == other,
                CompareOp.LESS: value < other,
                CompareOp.LESS_OR_EQUAL: value <= other,
                CompareOp.GREATER: value > other,
                CompareOp.GREATER_OR_EQUAL: value >= other,
            }[op]
    raise AssertionError(predicate)


def file(values: dict[str, str | None]) -> Add:
    return Add(path="f", partition_values=values, size_bytes=1, modified_ms=0, data_change=True)


@given(data=st.data())
def test_no_partition_with_a_row_of_the_condition_is_left_out(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(SOURCES)))
    columns = data.draw(st.sampled_from(shapes(name)))
    config = table(columns)
    value = data.draw(st.none() | VALUES[name])
    zone = dt.timezone(dt.timedelta(minutes=data.draw(st.sampled_from([0, 345, 840, -720]))))
    shown = local(value, zone)
    computed = {
        f"p{n}": None if value is None else make(shown) for n, (_, _, make) in enumerate(columns)
    }
    for n, (_, kind, _) in enumerate(columns):
        if kind == TIMESTAMP and computed[f"p{n}"] is not None:
            moment = computed[f"p{n}"].replace(tzinfo=zone)
            try:
                computed[f"p{n}"] = moment.astimezone(dt.timezone.utc)
            except OverflowError:  # Python has no moment before year 1
                reject()
    kinds = {column.name: column.type for column in config.partition_schema.fields}
    add = file({c: encode_partition_value(v, kinds[c]) or None for c, v in computed.items()})
    predicate = data.draw(conditions(name))
    pruning = prune(FileTable.of([add]), config, predicate)
    kept = pruning.mask.to_pylist() == [True]
    event(f"left out: {not kept}")
    assert kept or holds(predicate, value) is not True, (predicate, add, columns[0][0])


MARCH = dt.datetime(2024, 3, 5, 12, tzinfo=dt.timezone.utc)


def kept_of(expression: str, kind: DataType, values: list[Any], predicate: Predicate) -> list[Any]:
    config = table([(expression, kind, None)])
    files = FileTable.of([file({"p0": encode_partition_value(v, kind)}) for v in values])
    pruning = prune(files, config, predicate)
    assert all(some.by is SkippedBy.PARTITION_VALUES for some in pruning.skipped)
    return [v for v, kept in zip(values, pruning.mask.to_pylist(), strict=True) if kept]


@pytest.mark.parametrize(
    ("expression", "kind", "values", "left"),
    [
        ("CAST(ts AS DATE)", DATE, [dt.date(2024, 3, n) for n in range(1, 10)], [4, 5, 6]),
        ("date_format(ts, 'yyyy-MM')", STRING, ["2024-02", "2024-03", "2024-04"], ["2024-03"]),
        ("YEAR(ts)", INTEGER, [2023, 2024, 2025], [2024]),
        ("YEAR(CAST(ts AS DATE))", INTEGER, [2023, 2024, 2025], [2024]),
        ("((year ( /* it's */ `ts`)) ) -- it's", INTEGER, [2023, 2024, 2025], [2024]),
    ],
)
def test_a_moment_leaves_out_days_months_and_years(
    expression: str, kind: DataType, values: list[Any], left: list[Any]
) -> None:
    """A day more on both sides: which zone the days are of is not known."""
    moment = Compare(CompareOp.EQUAL, Ref(Side.TARGET, ("ts",), TIMESTAMP), Const(MARCH))
    kept = kept_of(expression, kind, values, moment)
    assert [getattr(value, "day", value) for value in kept] == left


def test_the_day_of_a_moment_has_no_hour() -> None:
    moment = MARCH.replace(tzinfo=None)
    config = table([*parts("n")[:3], ("HOUR(CAST(n AS DATE))", INTEGER, lambda _: 0)])
    values = {"p0": "2024", "p1": "3", "p2": "5", "p3": "0"}
    equal = Compare(CompareOp.EQUAL, Ref(Side.TARGET, ("n",), TIMESTAMP_NTZ), Const(moment))
    assert prune(FileTable.of([file(values)]), config, equal).mask.to_pylist() == [True]


NOT_UNDERSTOOD = (
    *("ts", "upper(s)", "CAST(s AS DATE)", "YEAR(nothing)", "MINUTE(ts)", "YEAR(ts", "YEAR(ts))"),
    *("YEAR(ts) + 1", "YEAR(ts, ts)", "(YEAR)(ts)", '"ts"', "DATE_TRUNC('MONTH')"),
)


@pytest.mark.parametrize("expression", [*NOT_UNDERSTOOD, "date_format(ts, 'MM-yyyy')"])
def test_what_is_not_understood_leaves_out_nothing(expression: str) -> None:
    config = table([(expression, STRING, None)])
    ref = Ref(Side.TARGET, ("ts",), TIMESTAMP)
    assert derived_conditions(Compare(CompareOp.LESS, ref, Const(MARCH)), config) == ()


def test_an_expression_that_the_protocol_does_not_enforce_says_nothing() -> None:
    config = table([("CAST(ts AS DATE)", DATE, None)])
    ref = Ref(Side.TARGET, ("ts",), TIMESTAMP)
    predicate = Compare(CompareOp.LESS, ref, Const(MARCH))
    assert len(derived_conditions(predicate, config)) == 1
    old = TableConfig.of(Protocol(min_reader_version=1, min_writer_version=2), config.metadata)
    assert derived_conditions(predicate, old) == ()
