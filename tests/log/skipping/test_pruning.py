"""Pruning rules one by one: what a file's partition values and statistics prove (X-68..X-72)."""

from __future__ import annotations

import datetime as dt
import json
from array import array
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import prune, prune_files
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, Metadata, Protocol
from puredelta.protocol.schema.predicates import (
    FALSE,
    TRUE,
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
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

MONEY = DecimalType(10, 2)
NAN = float("nan")


def config(
    columns: Mapping[str, DataType],
    *,
    partition_columns: Sequence[str] = (),
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    configuration: Mapping[str, str] | None = None,
    protocol: Protocol | None = None,
) -> TableConfig:
    schema = StructType(
        tuple(StructField(n, t, metadata=(metadata or {}).get(n, {})) for n, t in columns.items())
    )
    return TableConfig.of(
        protocol or Protocol(min_reader_version=1, min_writer_version=2),
        Metadata(
            id="t",
            schema_string=encode_schema(schema),
            partition_columns=tuple(partition_columns),
            configuration=configuration or {},
        ),
    )


def file(stats: Any = None, *, vector: bool = False, **values: str | None) -> Add:
    return Add(
        path="f",
        partition_values=values,
        size_bytes=1,
        modified_ms=0,
        data_change=True,
        stats=stats if stats is None or isinstance(stats, str) else json.dumps(stats),
        deletion_vector=DeletionVectorDescriptor(
            storage_type="i", path_or_inline="", offset=None, size_bytes=1, cardinality=1
        )
        if vector
        else None,
    )


def bounds(low: Any, high: Any, nulls: int | None = 0, rows: int | None = 10, **more: Any) -> str:
    """Statistics of one column ``c``."""
    content = {"minValues": {"c": low}, "maxValues": {"c": high}, **more}
    if rows is not None:
        content = {"numRecords": rows, **content}
    if nulls is not None:
        content["nullCount"] = {"c": nulls}
    return json.dumps(content)


def ref(data_type: DataType | None, *path: str) -> Ref:
    return Ref(Side.TARGET, path or ("c",), data_type)


def compare(data_type: DataType, op: str, value: Any) -> Compare:
    return Compare(CompareOp(op), ref(data_type), Const(value))


def kept(data_type: DataType, stats: Any, predicate: Predicate) -> bool:
    """Is a file of a table with one column ``c`` kept?"""
    (answer,) = prune_files(
        FileTable.of([file(stats)]), config({"c": data_type}), predicate
    ).to_pylist()
    return bool(answer)


INT_RANGE = bounds(5, 9)
ALL_NULL = json.dumps({"numRecords": 10, "nullCount": {"c": 10}})


@pytest.mark.parametrize(
    ("op", "value", "true", "false"),
    [
        ("=", 4, False, True),
        ("=", 5, True, True),
        ("=", 9, True, True),
        ("=", 10, False, True),
        ("<", 5, False, True),
        ("<", 6, True, True),
        ("<", 10, True, False),
        ("<=", 4, False, True),
        ("<=", 5, True, True),
        ("<=", 9, True, False),
        (">", 9, False, True),
        (">", 8, True, True),
        (">", 4, True, False),
        (">=", 10, False, True),
        (">=", 9, True, True),
        (">=", 5, True, False),
        ("<=>", 10, False, True),
        ("<=>", 7, True, True),
        # numbers between the values of the column
        ("=", Decimal("5.5"), False, True),
        ("<", Decimal("5.5"), True, True),
        ("<", 4.5, False, True),
        ("<=", 4.5, False, True),
        (">", 9.5, False, True),
        (">=", 9.5, False, True),
        (">=", 8.5, True, True),
        # numbers outside of every long
        ("<", 10**30, True, False),
        ("<", -(10**30), False, True),
        (">", 10**30, False, True),
        (">=", -(10**30), True, False),
        ("=", 10**30, False, True),
    ],
)
def test_integer_comparison_and_its_negation(op: str, value: Any, true: bool, false: bool) -> None:
    for data_type in (LONG, INTEGER):
        predicate = compare(data_type, op, value)
        assert kept(data_type, INT_RANGE, predicate) is true
        assert kept(data_type, INT_RANGE, Not(predicate)) is false


def test_missing_or_unreadable_statistics_keep_the_file_x69() -> None:
    beyond = compare(LONG, ">", 100)
    for stats in (
        None,
        "",
        "{}",
        "null",
        "[]",
        "not json",
        '{"numRecords":10',
        '{"maxValues":{"c":"x"}}',
        '{"maxValues":{"c":true}}',
        '{"maxValues":{"c":{"d":1}}}',
        '{"maxValues":{"d":1}}',
        '{"maxValues":[1]}',
        '{"maxValues":{"c":1e400}}',
        '{"maxValues":{"c":99999999999999999999}}',
        '{"minValues":{"c":1}}',
    ):
        assert kept(LONG, stats, beyond), stats
        assert kept(LONG, stats, IsNull(ref(LONG))), stats
        assert kept(LONG, stats, Not(IsNull(ref(LONG)))), stats


def test_one_unreadable_file_does_not_blind_the_others() -> None:
    good, bad = bounds(1, 2), bounds(1, 2)[:-1]
    files = FileTable.of([file(s) for s in (good, bad, None, good, '{"a":1}{"b":2}')])
    mask = prune_files(files, config({"c": LONG}), compare(LONG, ">", 2))
    assert mask.to_pylist() == [False, True, True, False, True]


@pytest.mark.parametrize(
    "stats",
    [
        '{\n  "numRecords": 3,\r\n  "maxValues": {"c": 2}\n}',
        '{"maxValues":{"c":2},"x":{"c":[1,{"y":null}]}}',
        '{"maxValues":{"c":2,"c":2}}',
        '{"maxValues":{"c":2.0}}',
        '{"maxValues":{"c":2e0}}',
    ],
)
def test_any_valid_json_is_understood(stats: str) -> None:
    assert not kept(LONG, stats, compare(LONG, ">", 2))


def test_null_counts_x69() -> None:
    null, not_null = IsNull(ref(LONG)), Not(IsNull(ref(LONG)))
    none, some, every = bounds(1, 2), bounds(1, 2, nulls=3), ALL_NULL
    assert [kept(LONG, s, null) for s in (none, some, every)] == [False, True, True]
    assert [kept(LONG, s, not_null) for s in (none, some, every)] == [True, True, False]
    assert not kept(LONG, every, compare(LONG, "=", 1)), "a NULL equals nothing"
    assert not kept(LONG, every, Not(compare(LONG, "=", 1))), "nor is it unequal"
    assert kept(LONG, every, Compare(CompareOp.NULL_SAFE_EQUAL, ref(LONG), Const(None)))
    assert kept(LONG, every, Not(compare(LONG, "<=>", 1)))
    assert not kept(LONG, none, Compare(CompareOp.NULL_SAFE_EQUAL, ref(LONG), Const(None)))


def test_wide_bounds_x69_m138() -> None:
    """With a deletion vector bounds still bound, and a null count counts only at its ends."""
    wide = {"tightBounds": False}
    some, every = bounds(1, 2, nulls=9, **wide), bounds(1, 2, nulls=10, **wide)
    none = bounds(1, 2, nulls=0, **wide)
    files = FileTable.of([file(s, vector=True) for s in (some, every, none)])
    table = config({"c": LONG})
    for predicate, expected in (
        (IsNull(ref(LONG)), [True, True, False]),
        (Not(IsNull(ref(LONG))), [True, False, True]),
        (compare(LONG, ">", 2), [False, False, False]),
    ):
        assert prune_files(files, table, predicate).to_pylist() == expected


def test_constants() -> None:
    assert kept(LONG, INT_RANGE, TRUE)
    assert not kept(LONG, INT_RANGE, FALSE)
    assert kept(LONG, INT_RANGE, Const(True))
    assert not kept(LONG, INT_RANGE, Const(False))
    assert kept(LONG, INT_RANGE, Not(Const(False)))
    assert not kept(LONG, INT_RANGE, Const(None))
    assert not kept(LONG, INT_RANGE, Not(Const(None))), "NOT NULL is NULL"
    assert not kept(LONG, None, compare(LONG, "=", None)), "c = NULL is never TRUE"


def test_and_or_not() -> None:
    low, high = compare(LONG, "<", 5), compare(LONG, ">", 9)
    unknown = Opaque(frozenset({ref(LONG)}))
    assert not kept(LONG, INT_RANGE, Or((low, high)))
    assert kept(LONG, INT_RANGE, Or((low, unknown)))
    assert not kept(LONG, INT_RANGE, And((unknown, low)))
    assert kept(LONG, INT_RANGE, Not(And((unknown, compare(LONG, ">=", 5)))))
    assert not kept(LONG, INT_RANGE, Not(Or((unknown, compare(LONG, ">=", 5)))))
    assert not kept(LONG, INT_RANGE, Not(Not(low)))


def test_what_is_not_about_the_target_is_never_pruned_with() -> None:
    source = Ref(Side.SOURCE, ("c",), LONG)
    other_type = ref(INTEGER)
    for column in (source, other_type, ref(None), ref(LONG, "missing")):
        assert kept(LONG, INT_RANGE, Compare(CompareOp.GREATER, column, Const(9))), column
        assert kept(LONG, INT_RANGE, IsNull(column)), column
    assert kept(LONG, INT_RANGE, Compare(CompareOp.EQUAL, ref(LONG), ref(LONG)))
    assert kept(LONG, INT_RANGE, Compare(CompareOp.EQUAL, Const(1), Const(2)))


def test_one_of() -> None:
    column = ref(LONG)
    assert kept(LONG, INT_RANGE, OneOf(column, (1, 7, 100)))
    assert not kept(LONG, INT_RANGE, OneOf(column, (1, 4, 10, 100)))
    assert not kept(LONG, INT_RANGE, OneOf(column, (Decimal("6.5"), None)))
    assert not kept(LONG, INT_RANGE, OneOf(column, ()))
    assert kept(LONG, ALL_NULL, Not(OneOf(column, ()))), "nothing is in an empty list"
    assert kept(LONG, INT_RANGE, OneOf(column, ("x",))), "not comparable: unknown"
    assert kept(LONG, INT_RANGE, Not(OneOf(column, (5, 9))))
    assert not kept(LONG, bounds(5, 5), Not(OneOf(column, (1, 5))))
    assert not kept(LONG, INT_RANGE, Not(OneOf(column, (1, None)))), "NULL or FALSE, never TRUE"
    assert kept(LONG, None, OneOf(column, (1,)))
    assert not kept(LONG, ALL_NULL, OneOf(column, (1,)))


def test_one_of_many_values() -> None:
    files = FileTable.of([file(bounds(n * 10, n * 10 + 3)) for n in range(100)])
    values = tuple(range(5, 1000, 20))  # 5, 25, ..., none within x0..x3
    assert prune_files(files, config({"c": LONG}), OneOf(ref(LONG), values)).true_count == 0
    values = (*values, 503)
    found = prune_files(files, config({"c": LONG}), OneOf(ref(LONG), values)).to_pylist()
    assert [n for n, keep in enumerate(found) if keep] == [50]


def test_nan_lies_above_every_bound_x67_c51b() -> None:
    for data_type in (FLOAT, DOUBLE):
        stats = bounds(1.5, 2.5)
        assert kept(data_type, stats, compare(data_type, ">", 100.0))
        assert kept(data_type, stats, compare(data_type, ">=", 100.0))
        assert kept(data_type, stats, compare(data_type, "=", NAN))
        assert not kept(data_type, stats, compare(data_type, "=", 100.0))
        assert not kept(data_type, stats, compare(data_type, "<", 1.0))
        assert kept(data_type, stats, Not(compare(data_type, "<", 100.0)))
        assert kept(data_type, bounds(2.5, 2.5), Not(compare(data_type, "=", 2.5)))
        assert kept(data_type, bounds(2.5, 2.5), Not(OneOf(ref(data_type), (2.5,))))
        # NaN and infinities are text; a NaN minimum says that nobody knows the numbers
        assert kept(data_type, bounds(1.5, "NaN"), compare(data_type, "=", 100.0))
        assert not kept(data_type, bounds(1.5, "NaN"), compare(data_type, "<", 1.0))
        assert kept(data_type, bounds("NaN", "NaN"), compare(data_type, "<", 1.0))
        assert kept(data_type, bounds("-Infinity", "Infinity"), compare(data_type, "<", 1.0))
        assert kept(data_type, '{"minValues":{"c":NaN}}', compare(data_type, "<", 1.0))


@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE])
def test_x_67_nan_is_not_between_two_numbers(data_type: DataType) -> None:
    stats, above = bounds(1.5, 2.5), compare(data_type, ">=", 3.0)
    assert kept(data_type, stats, above)
    for below in (compare(data_type, "<=", 9.0), compare(data_type, "<", 9)):
        assert not kept(data_type, stats, And((above, below)))
        assert not kept(data_type, stats, And((below, above)))
        assert kept(data_type, stats, Not(And((above, below))))
        assert kept(data_type, bounds(1.5, 3.0), And((above, below)))
    assert kept(data_type, stats, And((above, compare(data_type, "<=", NAN))))
    assert kept(data_type, stats, And((above, compare(data_type, ">", 2.0))))
    assert kept(data_type, stats, And((above, Not(compare(data_type, "<=", 9.0)))))


def test_signed_zeros_are_equal() -> None:
    assert kept(DOUBLE, bounds(0.0, 0.0), compare(DOUBLE, "=", -0.0))
    assert kept(DOUBLE, bounds(-0.0, -0.0), compare(DOUBLE, ">=", 0.0))


def test_text_of_a_float_is_its_shortest() -> None:
    """0.1 in the log stands for the float 0.100000001..., also once the column is a double."""
    stats = bounds(0.1, 0.1)
    single = 0.10000000149011612
    for data_type in (FLOAT, DOUBLE):
        assert kept(data_type, stats, compare(data_type, "=", single))
        assert kept(data_type, stats, compare(data_type, "=", 0.1))
        assert not kept(data_type, stats, compare(data_type, "=", 0.2))
    assert not kept(DOUBLE, bounds(1e300, 1e301), compare(DOUBLE, "=", 1e302))


def test_decimals_are_exact() -> None:
    stats = (
        '{"numRecords":2,"minValues":{"c":1.10},"maxValues":{"c":99999999.99},"nullCount":{"c":0}}'
    )
    assert kept(MONEY, stats, compare(MONEY, "=", Decimal("1.1")))
    assert not kept(MONEY, stats, compare(MONEY, "<", Decimal("1.1")))
    assert kept(MONEY, stats, compare(MONEY, "<", Decimal("1.101")))
    assert not kept(MONEY, stats, compare(MONEY, ">", Decimal("99999999.99")))
    assert not kept(MONEY, stats, compare(MONEY, ">=", Decimal("99999999.991")))
    assert not kept(MONEY, stats, compare(MONEY, ">", 100_000_000))
    assert kept(MONEY, stats, compare(MONEY, "<", Decimal("1e50")))
    wide = DecimalType(38, 10)
    stats = '{"minValues":{"c":12345678901234567890.5},"maxValues":{"c":12345678901234567890.5}}'
    exactly = Decimal("12345678901234567890.5")
    assert kept(wide, stats, compare(wide, "=", exactly))
    assert not kept(wide, stats, compare(wide, "<", exactly))
    assert kept(wide, stats, compare(wide, "<=", exactly))
    assert kept(MONEY, stats, compare(MONEY, "=", 1.5)), "compared as doubles: unknown"


def test_bound_with_more_digits_than_the_column_is_moved_outward() -> None:
    stats = '{"minValues":{"c":1.505},"maxValues":{"c":1.505}}'
    assert kept(MONEY, stats, compare(MONEY, "=", Decimal("1.50")))
    assert kept(MONEY, stats, compare(MONEY, "=", Decimal("1.51")))
    assert not kept(MONEY, stats, compare(MONEY, "=", Decimal("1.52")))


def test_strings_compare_by_bytes_x63() -> None:
    stats = bounds("ab", "b\x7f")
    assert not kept(STRING, stats, compare(STRING, "<", "ab"))
    assert kept(STRING, stats, compare(STRING, ">", "b"))
    assert not kept(STRING, stats, compare(STRING, ">", "b\x7f"))
    # U+FF5E sorts before U+10000 in UTF-8, after it in UTF-16
    assert kept(STRING, bounds("a", "\U00010000"), compare(STRING, "=", "\uff5e"))
    assert kept(STRING, '{"minValues":{"c":"\\ud800"}}', compare(STRING, "<", "a"))
    assert kept(STRING, stats, compare(STRING, "<", "\ud800")), "no text at all: unknown"


def test_starts_with() -> None:
    def prefix(text: str) -> Predicate:
        return StartsWith(ref(STRING), text)

    stats = bounds("abc", "abx")
    assert [kept(STRING, stats, prefix(p)) for p in ("a", "ab", "abd", "aba", "aby", "b", "")] == [
        True,
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    assert not kept(STRING, stats, Not(prefix("ab")))
    assert not kept(STRING, stats, Not(prefix("")))
    assert kept(STRING, stats, Not(prefix("abc")))
    assert kept(STRING, bounds("ab", "b"), prefix("abzzz"))
    assert not kept(STRING, ALL_NULL, prefix(""))
    # a maximum that was cut is still a bound
    assert kept(STRING, bounds("a" * 32, "a" * 32 + "\x7f"), prefix("a" * 40))


def test_dates() -> None:
    stats = bounds("2020-01-01", "2020-12-31")
    assert kept(DATE, stats, compare(DATE, "=", dt.date(2020, 6, 1)))
    assert not kept(DATE, stats, compare(DATE, ">", dt.date(2020, 12, 31)))
    assert kept(DATE, stats, compare(DATE, ">", dt.datetime(2021, 1, 1))), "another type"  # noqa: DTZ001
    assert kept(DATE, bounds("+12020-01-01", "x"), compare(DATE, "<", dt.date(2020, 6, 1)))


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.timezone.utc)  # type: ignore[misc, arg-type]


def test_timestamps_are_written_in_milliseconds_x65() -> None:
    stats = bounds("2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00.456Z")
    assert not kept(TIMESTAMP, stats, compare(TIMESTAMP, "<", utc(2020, 1, 1, 0, 0, 0, 123_000)))
    assert kept(TIMESTAMP, stats, compare(TIMESTAMP, "=", utc(2020, 1, 1, 0, 0, 0, 456_999)))
    assert not kept(TIMESTAMP, stats, compare(TIMESTAMP, "=", utc(2020, 1, 1, 0, 0, 0, 457_001)))
    naive = dt.datetime(2021, 1, 1)  # noqa: DTZ001
    assert kept(TIMESTAMP, stats, compare(TIMESTAMP, ">", naive)), "another type"


def test_timestamps_with_an_offset_and_without() -> None:
    with_offset = bounds("2020-01-01T00:00:00.000-05:00", "2020-01-01T00:00:00.000-05:00")
    assert kept(TIMESTAMP, with_offset, compare(TIMESTAMP, "=", utc(2020, 1, 1, 5)))
    assert not kept(TIMESTAMP, with_offset, compare(TIMESTAMP, "=", utc(2020, 1, 1)))
    local = bounds("2020-01-01T00:00:00.000", "2020-01-01T00:00:00.000")
    assert kept(TIMESTAMP, local, compare(TIMESTAMP, "=", utc(1999, 1, 1))), "nobody knows the zone"
    naive = dt.datetime(2020, 1, 2)  # noqa: DTZ001
    assert not kept(TIMESTAMP_NTZ, local, compare(TIMESTAMP_NTZ, "=", naive))
    assert kept(TIMESTAMP_NTZ, with_offset, compare(TIMESTAMP_NTZ, "=", naive))


def test_old_zone_offsets_hide_seconds() -> None:
    """New York was at -4:56:02 until 1883; what is written is -04:56."""
    stats = bounds("1800-01-01T00:00:00.000-04:56", "1800-01-01T00:00:00.000-04:56")
    assert kept(TIMESTAMP, stats, compare(TIMESTAMP, "=", utc(1800, 1, 1, 4, 56, 2)))
    assert not kept(TIMESTAMP, stats, compare(TIMESTAMP, "=", utc(1800, 1, 1, 5)))


def test_statistics_of_a_column_that_was_widened() -> None:
    midnight = dt.datetime(2020, 1, 2)  # noqa: DTZ001
    stats = bounds("2020-01-02", "2020-01-02")
    assert kept(TIMESTAMP_NTZ, stats, compare(TIMESTAMP_NTZ, "=", midnight))
    assert not kept(TIMESTAMP_NTZ, stats, compare(TIMESTAMP_NTZ, ">", dt.datetime(2020, 1, 3)))  # noqa: DTZ001
    assert not kept(LONG, bounds(1, 2), compare(LONG, ">", 2**40))
    assert not kept(DOUBLE, bounds(1, 2), compare(DOUBLE, "=", 2.5))
    wide = DecimalType(22, 2)
    assert not kept(wide, bounds(1, 2), compare(wide, ">", Decimal("2.01")))


def test_booleans_and_binaries_have_null_counts_only_x62() -> None:
    stats = json.dumps({"numRecords": 10, "nullCount": {"c": 10}})
    assert not kept(BOOLEAN, stats, ref(BOOLEAN))
    assert not kept(BOOLEAN, stats, Not(ref(BOOLEAN)))
    none = json.dumps({"numRecords": 10, "nullCount": {"c": 0}})
    assert kept(BOOLEAN, none, ref(BOOLEAN))
    assert kept(BINARY, none, compare(BINARY, "=", b"x"))
    assert not kept(BINARY, none, IsNull(ref(BINARY)))
    array = ArrayType(LONG)
    assert not kept(array, none, IsNull(ref(array)))


def test_nested_fields() -> None:
    struct = StructType(
        (StructField("a", LONG), StructField("b", StructType((StructField("d", DATE),))))
    )
    table = config({"s": struct, "c": LONG})
    stats = {
        "numRecords": 5,
        "minValues": {"s": {"a": 1, "b": {"d": "2020-01-01"}}, "c": 1},
        "maxValues": {"s": {"a": 2, "b": {"d": "2020-01-02"}}, "c": 1},
        "nullCount": {"s": {"a": 0, "b": {"d": 5}}, "c": 0},
    }
    files = FileTable.of([file(stats)])

    def answer(predicate: Predicate) -> bool:
        return bool(prune_files(files, table, predicate)[0].as_py())

    assert not answer(Compare(CompareOp.GREATER, ref(LONG, "s", "a"), Const(2)))
    assert answer(Compare(CompareOp.GREATER, ref(LONG, "s", "a"), Const(1)))
    assert not answer(Not(IsNull(ref(DATE, "s", "b", "d"))))
    assert answer(IsNull(ref(struct, "s"))), "a struct has no count of its own"
    both = And(
        (
            Compare(CompareOp.LESS_OR_EQUAL, ref(LONG, "s", "a"), Const(2)),
            Compare(CompareOp.EQUAL, ref(LONG, "c"), Const(1)),
        )
    )
    assert answer(both)


def test_statistics_and_partition_values_speak_in_physical_names_m109() -> None:
    mapped = {
        name: {
            "delta.columnMapping.id": n,
            "delta.columnMapping.physicalName": f"col-{n}",
        }
        for n, name in enumerate(["p", "c"], 1)
    }
    table = config(
        {"p": INTEGER, "c": LONG},
        partition_columns=["p"],
        metadata=mapped,
        configuration={"delta.columnMapping.mode": "name"},
        protocol=Protocol(min_reader_version=2, min_writer_version=5),
    )
    stats = {"minValues": {"col-2": 1, "c": 50}, "maxValues": {"col-2": 2, "c": 60}}
    files = FileTable.of([file(stats, **{"col-1": "7"})])
    for predicate, expected in (
        (Compare(CompareOp.EQUAL, ref(LONG, "c"), Const(1)), True),
        (Compare(CompareOp.EQUAL, ref(LONG, "c"), Const(55)), False),
        (Compare(CompareOp.EQUAL, ref(INTEGER, "p"), Const(7)), True),
        (Compare(CompareOp.EQUAL, ref(INTEGER, "p"), Const(8)), False),
    ):
        assert prune_files(files, table, predicate).to_pylist() == [expected]


def partition_kept(data_type: DataType, text: str | None, predicate: Predicate) -> bool:
    table = config({"c": data_type, "d": LONG}, partition_columns=["c"])
    (answer,) = prune_files(FileTable.of([file(c=text)]), table, predicate).to_pylist()
    return bool(answer)


@pytest.mark.parametrize(
    ("data_type", "text", "value", "other"),
    [
        (LONG, "7", 7, 8),
        (STRING, "a b", "a b", "a"),
        (STRING, "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__", "x"),
        (BOOLEAN, "true", True, False),
        (BINARY, "é", "é".encode(), b"x"),
        (DATE, "2020-02-29", dt.date(2020, 2, 29), dt.date(2020, 3, 1)),
        (MONEY, "1.5", Decimal("1.50"), Decimal("1.51")),
        (DOUBLE, "1.5", 1.5, 1.25),
        (FLOAT, "0.1", 0.1, 0.2),
        (TIMESTAMP, "2020-01-01T05:00:00.000000Z", utc(2020, 1, 1, 5), utc(2020, 1, 1, 6)),
        (
            TIMESTAMP_NTZ,
            "2020-01-01 05:00:00.5",
            dt.datetime(2020, 1, 1, 5, 0, 0, 500_000),  # noqa: DTZ001
            dt.datetime(2020, 1, 1, 5),  # noqa: DTZ001
        ),
    ],
)
def test_partition_values_are_exact_x82_x83(
    data_type: DataType, text: str, value: Any, other: Any
) -> None:
    equal, unequal = compare(data_type, "=", value), compare(data_type, "=", other)
    assert partition_kept(data_type, text, equal)
    assert not partition_kept(data_type, text, unequal)
    assert partition_kept(data_type, text, Not(unequal))
    assert not partition_kept(data_type, text, IsNull(ref(data_type)))
    if data_type != FLOAT:
        assert not partition_kept(data_type, text, Not(equal))
    for null in (None, ""):
        assert partition_kept(data_type, null, IsNull(ref(data_type)))
        assert not partition_kept(data_type, null, Not(IsNull(ref(data_type))))
        assert not partition_kept(data_type, null, equal)
        assert not partition_kept(data_type, null, Not(equal))


def test_boolean_partition_column_as_a_condition() -> None:
    assert partition_kept(BOOLEAN, "true", ref(BOOLEAN))
    assert not partition_kept(BOOLEAN, "false", ref(BOOLEAN))
    assert partition_kept(BOOLEAN, "false", Not(ref(BOOLEAN)))
    assert not partition_kept(BOOLEAN, None, Not(ref(BOOLEAN)))


def test_nan_as_a_partition_value() -> None:
    assert partition_kept(DOUBLE, "NaN", compare(DOUBLE, ">", 5.0))
    assert partition_kept(DOUBLE, "NaN", compare(DOUBLE, "=", NAN))
    assert not partition_kept(DOUBLE, "5.0", compare(DOUBLE, ">", 5.0))
    assert partition_kept(DOUBLE, "Infinity", compare(DOUBLE, ">", 5.0))


def test_partition_text_that_is_no_value_keeps_the_file() -> None:
    assert partition_kept(LONG, "seven", compare(LONG, "=", 8))
    assert partition_kept(TIMESTAMP, "?", compare(TIMESTAMP, "=", utc(2020, 1, 1)))


def test_timestamp_partition_without_a_zone_might_be_in_any() -> None:
    text = "2020-06-01 12:00:00"
    assert partition_kept(TIMESTAMP, text, compare(TIMESTAMP, "=", utc(2020, 6, 1, 17)))
    assert partition_kept(TIMESTAMP, text, compare(TIMESTAMP, "=", utc(2020, 6, 1, 1)))
    assert not partition_kept(TIMESTAMP, text, compare(TIMESTAMP, "=", utc(2020, 6, 3)))


def test_partition_values_and_statistics_rule_out_together() -> None:
    table = config({"p": LONG, "c": LONG}, partition_columns=["p"])
    files = FileTable.of(
        [file(bounds(n, n), p=str(p)) for p in range(3) for n in range(4)] + [file(p="1")]
    )
    about_p = Compare(CompareOp.EQUAL, ref(LONG, "p"), Const(1))
    about_c, useless = compare(LONG, "<", 2), compare(LONG, "<", 100)
    kept = prune_files(files, table, And((useless, about_c, about_p)))
    assert kept.to_pylist() == [False] * 4 + [True] * 2 + [False] * 6 + [True]


def test_no_files() -> None:
    assert prune_files(FileTable.of([]), config({"c": LONG}), FALSE).to_pylist() == []
    assert prune_files(FileTable.of([]), config({"c": LONG}), IsNull(ref(LONG))).to_pylist() == []


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=6),
    st.lists(st.tuples(*[st.none() | st.integers(-25, 25)] * 2), min_size=1, max_size=8),
)
def test_lists_of_whole_numbers_are_searched_as_others_are(
    values: list[int], spans: list[tuple[int | None, int | None]]
) -> None:
    """They have a way of their own; as decimals they take that of all types."""
    files = FileTable.of([file(bounds(low, high)) for low, high in spans])
    table = config({"c": LONG})
    numbers, packed, decimals = (
        OneOf(ref(LONG), some)
        for some in (tuple(values), array("q", values), tuple(map(Decimal, values)))
    )
    for one, other in ((numbers, decimals), (Not(numbers), Not(decimals)), (packed, decimals)):
        assert prune_files(files, table, one) == prune_files(files, table, other)


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE])
def test_x_67_bounds_tell_of_nan_where_the_caller_says_so(kind: DataType) -> None:
    files = FileTable.of([file(bounds(1.0, 2.0)), file(bounds(1.0, "NaN")), file(bounds(1.0, 9.0))])
    columns = config({"c": kind})

    def read(op: str, value: float, **how: bool) -> list[bool]:
        kept: list[bool] = prune(files, columns, compare(kind, op, value), **how).mask.to_pylist()
        return kept

    assert read(">", 5.0) == [True, True, True]
    assert read(">", 5.0, bounds_tell_nan=True) == [False, True, True]
    assert read(">=", 9.5, bounds_tell_nan=True) == [False, True, False]
    assert read("<", 1.0, bounds_tell_nan=True) == [False, False, False]
    unknown = FileTable.of([file(None), file({"numRecords": 3, "nullCount": {"c": 0}})])
    found = prune(unknown, columns, compare(kind, ">", 5.0), bounds_tell_nan=True)
    assert found.mask.to_pylist() == [True, True]
