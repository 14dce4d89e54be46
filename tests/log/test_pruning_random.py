"""Random files and random predicates: no file that is skipped holds a matching row (X-72).

The judge evaluates every predicate row by row with Spark's rules for NULL and NaN. Statistics
are made as different writers make them: exact or wide, cut, incomplete, with NaN or without.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, Metadata, Protocol
from puredelta.protocol.schema.partition_values import encode_partition_value
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Opaque,
    Or,
    Predicate,
    Ref,
    Side,
    StartsWith,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

Row = dict[str, Any]

MONEY = DecimalType(9, 2)
UTC = dt.timezone.utc


def single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


INTEGERS = st.integers(-4, 4) | st.sampled_from([2**31 - 1, -(2**31)])
DOUBLES = st.sampled_from([-1.5, -0.0, 0.0, 0.1, 1.5, 1e300, math.inf, -math.inf, math.nan])
FLOATS = st.sampled_from([-1.5, 0.0, 0.1, 1.5, 16777217.0, math.inf, math.nan]).map(single)
TEXTS = st.text(st.sampled_from("ab\x7f\uff5e\U00010000"), max_size=3) | st.sampled_from(
    ["a" * 32, "a" * 33, "a" * 32 + "b", "a" * 32 + "\U0010ffff" + "b"]
)
INSTANTS = st.integers(-3_000, 3_000).map(
    lambda micros: dt.datetime(2020, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=micros)
)
VALUES: dict[str, tuple[DataType, st.SearchStrategy[Any]]] = {
    "i": (INTEGER, INTEGERS),
    "l": (LONG, INTEGERS | st.sampled_from([2**63 - 1, -(2**63)])),
    "f": (FLOAT, FLOATS),
    "d": (DOUBLE, DOUBLES),
    "m": (MONEY, st.integers(-300, 300).map(lambda cents: Decimal(cents).scaleb(-2))),
    "s": (STRING, TEXTS),
    "day": (DATE, st.dates(dt.date(2019, 12, 30), dt.date(2020, 1, 2))),
    "ts": (TIMESTAMP, INSTANTS),
    "ntz": (TIMESTAMP_NTZ, INSTANTS.map(lambda t: t.replace(tzinfo=None))),
    "b": (BOOLEAN, st.booleans()),
}
COLUMNS = {name: data_type for name, (data_type, _) in VALUES.items()}
NESTED = "n"  # a struct with a field `l`
PARTITIONS = ("p_i", "p_s", "p_d")
SCHEMA = StructType(
    (
        *(StructField(name, data_type) for name, data_type in COLUMNS.items()),
        StructField(NESTED, StructType((StructField("l", LONG),))),
        *(StructField(p, COLUMNS[p[2:]]) for p in PARTITIONS),
    )
)
CONFIG = TableConfig.of(
    Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"timestampNtz"}),
        writer_features=frozenset({"timestampNtz"}),
    ),
    Metadata(id="t", schema_string=encode_schema(SCHEMA), partition_columns=PARTITIONS),
)


def leaf(path: tuple[str, ...]) -> DataType:
    return COLUMNS["l" if path[0] == NESTED else path[0].removeprefix("p_")]


PATHS = [*((name,) for name in COLUMNS), (NESTED, "l"), *((p,) for p in PARTITIONS)]


# --- files ----------------------------------------------------------------------------------


def order(value: Any) -> Any:
    """Spark's order: NaN above every number, text by its bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def cut_minimum(value: Any) -> Any:
    return value[:32] if isinstance(value, str) else value


def cut_maximum(value: Any) -> Any:
    """As X-63 says, for the texts used here."""
    if not isinstance(value, str) or len(value) <= 32:
        return value
    tie = "\x7f" if value[32] < "\x7f" else "\U0010ffff"
    return value[:33] + tie if value[32] == "\U0010ffff" else value[:32] + tie


def as_json(stats: Row, *, indent: int | None) -> str:
    """Marked texts become numbers with exactly those digits."""
    return re.sub(r'"#([^"#]*)#"', r"\1", json.dumps(stats, indent=indent))


def spell(value: Any, data_type: DataType) -> Any:
    """Write a bound as `to_json` does: timestamps cut to milliseconds, NaN as text."""
    match value:
        case bool():
            return value
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case float():
            shortest = encode_partition_value(value, data_type)
            assert shortest is not None
            return f"#{shortest}#"
        case Decimal():
            return f"#{value}#"
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
            return text if value.tzinfo is None else f"{text}Z"
        case dt.date():
            return value.isoformat()
        case _:
            return value


@dataclass(frozen=True)
class File:
    add: Add
    rows: tuple[Row, ...]


@st.composite
def files(draw: st.DrawFn) -> File:
    """A file with up to four physical rows, of which a deletion vector may hide some."""
    count = draw(st.integers(0, 4))
    nulls_first = draw(st.booleans())
    written: list[Row] = []
    for _ in range(count):
        row = {n: draw(st.none() | v if nulls_first else v) for n, (_, v) in VALUES.items()}
        nested = draw(st.none() | INTEGERS)
        written.append({**row, NESTED: nested})
    partition = {p: draw(st.none() | VALUES[p[2:]][1]) for p in PARTITIONS}
    partition["p_s"] = partition["p_s"] or None
    stats = {} if draw(st.integers(0, 9)) == 0 else draw(statistics(written))
    has_vector = draw(st.booleans())
    alive = [row for row in written if not has_vector or draw(st.booleans())]
    if has_vector:
        stats["tightBounds"] = False
    add = Add(
        path="f",
        partition_values={
            p: encode_partition_value(v, COLUMNS[p[2:]]) for p, v in partition.items()
        },
        size_bytes=1,
        modified_ms=0,
        data_change=True,
        stats=as_json(stats, indent=draw(st.sampled_from([None, 1]))),
        deletion_vector=DeletionVectorDescriptor(
            storage_type="i", path_or_inline="", offset=None, size_bytes=1, cardinality=1
        )
        if has_vector
        else None,
    )
    return File(add, tuple({**row, **partition} for row in alive))


@st.composite
def statistics(draw: st.DrawFn, rows: list[Row]) -> dict[str, Any]:
    """True statistics of all physical rows, each part possibly left out."""
    excludes_nan = draw(st.booleans())
    low: Row = {}
    high: Row = {}
    nulls: Row = {}
    for path in [*((name,) for name in COLUMNS), (NESTED, "l")]:
        name, data_type = path[0], leaf(path)
        values = [row[name] for row in rows if row[name] is not None]
        if excludes_nan:
            values = [v for v in values if not (isinstance(v, float) and math.isnan(v))]

        def put(section: Row, value: Any, path: tuple[str, ...] = path) -> None:
            if draw(st.integers(0, 7)):
                (section if len(path) == 1 else section.setdefault(path[0], {}))[path[-1]] = value

        if values and data_type != BOOLEAN:
            put(low, spell(cut_minimum(min(values, key=order)), data_type))
            put(high, spell(cut_maximum(max(values, key=order)), data_type))
        put(nulls, sum(row[name] is None for row in rows))
    found = {"numRecords": len(rows), "minValues": low, "maxValues": high, "nullCount": nulls}
    return {k: v for k, v in found.items() if draw(st.integers(0, 15))}


# --- predicates -----------------------------------------------------------------------------


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    path = draw(st.sampled_from(PATHS))
    data_type = leaf(path)
    ref = Ref(Side.TARGET, path, data_type)
    values = VALUES["l" if path[0] == NESTED else path[0].removeprefix("p_")][1]
    others: st.SearchStrategy[Any] = values
    if data_type in {INTEGER, LONG, MONEY}:
        others = values | st.sampled_from([Decimal("0.5"), Decimal("1.005"), 2**40, -(10**30)])
    kinds: list[Callable[[], Predicate]] = [
        lambda: IsNull(ref),
        lambda: Compare(
            draw(st.sampled_from(list(CompareOp))), ref, Const(draw(st.none() | others))
        ),
        lambda: Compare(draw(st.sampled_from(list(CompareOp))), ref, Const(draw(others))),
        lambda: OneOf(ref, tuple(draw(st.lists(st.none() | others, max_size=4)))),
        lambda: Opaque(frozenset({ref})),
    ]
    if data_type == STRING:
        kinds.append(lambda: StartsWith(ref, draw(TEXTS)))
    if data_type == BOOLEAN:
        kinds.append(lambda: ref)
    return draw(st.sampled_from(kinds))()


PREDICATES = st.recursive(
    leaves() | st.sampled_from([Const(True), Const(False), Const(None)]),
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts)))
    ),
    max_leaves=5,
)


def truth(predicate: Predicate, row: Row) -> bool | None:
    """Evaluate for one row in three-valued logic; what is opaque counts as TRUE and FALSE."""
    match predicate:
        case Const(value):
            return value
        case Ref(_, path, _):
            return row[path[0]]
        case IsNull(Ref(_, path, _)):
            return row[path[0]] is None
        case Compare(op, Ref(_, path, _), Const(value)):
            return compare(op, row[path[0]], value)
        case OneOf(Ref(_, path, _), values):
            answers = [compare(CompareOp.EQUAL, row[path[0]], v) for v in values]
            return True if True in answers else None if None in answers else False
        case StartsWith(Ref(_, path, _), prefix):
            return None if row[path[0]] is None else row[path[0]].startswith(prefix)
        case Not(child):
            inner = truth(child, row)
            return None if inner is None else not inner
        case And(parts):
            answers = [truth(p, row) for p in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [truth(p, row) for p in parts]
            return True if True in answers else None if None in answers else False
        case _:
            return hash(str(row)) % 2 == 0


def compare(op: CompareOp, left: Any, right: Any) -> bool | None:
    if op is CompareOp.NULL_SAFE_EQUAL and (left is None or right is None):
        return left is right
    if left is None or right is None:
        return None
    a, b = order(left), order(right)
    match op:
        case CompareOp.EQUAL | CompareOp.NULL_SAFE_EQUAL:
            return bool(a == b)
        case CompareOp.LESS:
            return bool(a < b)
        case CompareOp.LESS_OR_EQUAL:
            return bool(a <= b)
        case CompareOp.GREATER:
            return bool(a > b)
        case _:
            return bool(a >= b)


@settings(
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(files(), min_size=1, max_size=5), PREDICATES)
def test_no_matching_row_is_ever_skipped(some: list[File], predicate: Predicate) -> None:
    mask = prune_files(FileTable.of([f.add for f in some]), CONFIG, predicate)
    assert mask.null_count == 0
    assert len(mask) == len(some)
    event(f"skipped: {mask.false_count > 0}")
    for file, kept in zip(some, mask.to_pylist(), strict=True):
        matching = [row for row in file.rows if truth(predicate, row) is True]
        assert kept or not matching, (predicate, matching[0], file.add.stats)
