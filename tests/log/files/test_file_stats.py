# ruff: noqa: DTZ001 - timestamps without a zone are a type of their own
"""What a Parquet footer proves about the columns of a table (C-51b, X-60..X-72)."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.log.files.file_stats import StatisticsReader, TableStatistics, combined
from puredelta.log.files.parquet_footer import schema_message
from puredelta.protocol.actions.actions import Metadata, Protocol
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
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.stats import LeafStatistics, encode_statistics
from puredelta.protocol.table.table_config import TableConfig
from tests.log.footer_files import read_footer

SPARK = "parquet-mr version 1.16.0 (b)"
UTC = dt.timezone.utc


def parquet(columns, *, created_by=None, metadata=None, **options) -> bytes:
    """A Parquet file of pyarrow's that claims to be another writer's."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    if metadata:
        table = table.replace_schema_metadata(metadata)
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    content = sink.getvalue()
    own = pq.read_metadata(pa.BufferReader(content)).created_by.encode()
    if created_by is not None:
        content = content.replace(own, created_by.encode().ljust(len(own)))
    return content


def struct(**fields: DataType) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


def leaves(content: bytes, schema: StructType, **options):
    return StatisticsReader(schema, **options).leaves(read_footer(content))


def only(values, arrow_type, table_type, **options) -> LeafStatistics | None:
    content = parquet({"c": pa.array(values, arrow_type)}, **options)
    return leaves(content, struct(c=table_type)).get(("c",))


@pytest.mark.parametrize(
    ("arrow_type", "values", "table_type", "low", "high"),
    [
        (pa.int64(), [3, None, 1], LONG, 1, 3),
        (pa.int32(), [3, None, 1], LONG, 1, 3),
        (pa.int8(), [3, None, -1], INTEGER, -1, 3),
        (pa.uint32(), [3, None, 2**32 - 1], LONG, 3, 2**32 - 1),
        (pa.int32(), [3, None, 1], DOUBLE, 1.0, 3.0),
        (pa.int32(), [3, None, 1], DecimalType(12, 2), Decimal("1.00"), Decimal("3.00")),
        (pa.string(), ["b", None, "é"], STRING, "b", "é"),
        (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)], DATE, dt.date.min, dt.date.max),
        (
            pa.date32(),
            [dt.date(2020, 1, 1)],
            TIMESTAMP_NTZ,
            dt.datetime(2020, 1, 1),
            dt.datetime(2020, 1, 1),
        ),
    ],
)
def test_bounds_have_the_tables_type(arrow_type, values, table_type, low, high):
    found = only(values, arrow_type, table_type)
    assert found == (low, high, values.count(None))
    assert type(found.minimum) is type(low)


@pytest.mark.parametrize("precision", [7, 16, 30])
@pytest.mark.parametrize("as_integer", [False, True])
def test_decimals_of_every_physical_type(precision, as_integer):
    values = [Decimal("-12345.67"), None, Decimal("0.01")]
    found = only(
        values,
        pa.decimal128(precision, 2),
        DecimalType(precision, 2),
        store_decimal_as_integer=as_integer,
    )
    assert found == (Decimal("-12345.67"), Decimal("0.01"), 1)


def test_a_decimal_takes_the_wider_scale_and_never_loses_digits():
    values = [Decimal("1.25")]
    assert str(only(values, pa.decimal128(5, 2), DecimalType(9, 4)).maximum) == "1.2500"
    assert only(values, pa.decimal128(5, 2), DecimalType(5, 1)) == (None, None, 0)


@pytest.mark.parametrize(
    ("unit", "low_micros", "high_micros"), [("ms", 0, 0), ("us", 456, 456), ("ns", 456, 457)]
)
def test_timestamps_of_every_unit_round_outward(unit, low_micros, high_micros):
    nanos = 1_577_836_800_123_456_789
    divisor = {"ms": 1_000_000, "us": 1000, "ns": 1}[unit]
    for zone, table_type in (("UTC", TIMESTAMP), (None, TIMESTAMP_NTZ)):
        found = only([nanos // divisor], pa.timestamp(unit, zone), table_type, version="2.6")
        origin = dt.datetime(2020, 1, 1, tzinfo=UTC if zone else None)
        assert found.minimum == origin + dt.timedelta(microseconds=123_000 + low_micros)
        assert found.maximum == origin + dt.timedelta(microseconds=123_000 + high_micros)


def test_a_zone_that_differs_from_the_tables_proves_nothing():
    value = [dt.datetime(2020, 1, 1)]
    assert only(value, pa.timestamp("us"), TIMESTAMP) == (None, None, 0)


def test_int96_has_no_bounds():
    found = only(
        [dt.datetime(2020, 1, 1)],
        pa.timestamp("us"),
        TIMESTAMP,
        use_deprecated_int96_timestamps=True,
    )
    assert found is None or (found.minimum, found.maximum) == (None, None)


@pytest.mark.parametrize(
    ("created_by", "trusted"),
    [
        (None, False),
        ("parquet-mr version 1.9.0 (x)", False),
        ("parquet-mr version 1.10.1 (x)", True),
        (SPARK, True),
        ("parquet-mr version 1.99.0 (x)", False),
        ("parquet-mr", False),
        ("parquet-rs version 53", False),
        ("", False),
    ],
)
def test_c51b_float_bounds_only_from_writers_that_see_nan(created_by, trusted):
    for arrow_type, table_type in ((pa.float64(), DOUBLE), (pa.float32(), FLOAT)):
        found = only([1.5, None, -2.0], arrow_type, table_type, created_by=created_by)
        assert found == ((-2.0, 1.5, 1) if trusted else (None, None, 1))


def test_c51b_nan_in_a_bound_is_no_bound():
    # pyarrow leaves NaN out unless nothing else is there: then it writes no bounds at all.
    nan = float("nan")
    assert only([nan, nan], pa.float64(), DOUBLE, created_by=SPARK) == (None, None, 0)


def test_c51b_zeros_get_the_sign_that_covers_both():
    found = only([-0.0, 0.0], pa.float64(), DOUBLE, created_by=SPARK)
    assert (str(found.minimum), str(found.maximum)) == ("-0.0", "0.0")


@pytest.mark.parametrize("created_by", ["", "parquet-mr version 1.9.0 (x)"])
def test_c51b_text_and_binary_decimals_of_writers_that_compared_signed_bytes(created_by):
    unknown = (None, (None, None, 0))  # pyarrow itself may refuse the whole statistics
    assert only(["a", "é"], pa.string(), STRING, created_by=created_by) in unknown
    found = only(
        [Decimal(-1), Decimal(200)], pa.decimal128(30, 0), DecimalType(30, 0), created_by=created_by
    )
    assert found in unknown


def test_text_that_is_no_text_has_no_bounds():
    content = parquet({"c": pa.array([b"\xff\xfe", b"a"])})
    assert leaves(content, struct(c=STRING))[("c",)] == ("a", None, 0)


def test_values_too_long_for_a_footer_leave_what_is_known():
    assert only(["x" * 5000, None], pa.string(), STRING) == (None, None, 1)


@pytest.mark.parametrize(
    ("arrow_type", "values", "table_type"),
    [
        (pa.bool_(), [True, None], BOOLEAN),
        (pa.binary(), [b"a", None], BINARY),
        (pa.string(), ["a", None], LONG),
        (pa.int64(), [1, None], STRING),
        (pa.int64(), [1, None], DATE),
        (pa.time64("us"), [1, None], LONG),
        (pa.timestamp("ns"), [1, None], LONG),
    ],
)
def test_x62_other_types_have_only_a_null_count(arrow_type, values, table_type):
    assert only(values, arrow_type, table_type) == (None, None, 1)


@pytest.mark.parametrize(
    "legacy",
    [
        {"org.apache.spark.version": "2.4.8"},
        {"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""},
    ],
)
def test_the_hybrid_calendar_ends_bounds_before_the_switch(legacy):
    old, new = dt.date(1500, 1, 1), dt.date(1582, 10, 15)
    today = dt.date(2020, 1, 1)
    assert only([old, today], pa.date32(), DATE, metadata=legacy) == (None, None, 0)
    assert only([new, today], pa.date32(), DATE, metadata=legacy) == (new, today, 0)
    moments = [dt.datetime(1899, 12, 31, tzinfo=UTC), dt.datetime(1900, 1, 1, tzinfo=UTC)]
    kind = pa.timestamp("us", "UTC")
    assert only(moments, kind, TIMESTAMP, metadata=legacy) == (None, None, 0)
    assert only(moments[1:], kind, TIMESTAMP, metadata=legacy) == (moments[1], moments[1], 0)
    modern = {"org.apache.spark.version": "4.0.1"}
    assert only([old, today], pa.date32(), DATE, metadata=modern) == (old, today, 0)


def test_dates_beyond_pythons_calendar_have_no_bound():
    values = pa.array([0, 10_000_000], pa.int32()).cast(pa.date32())
    content = parquet({"c": values})
    assert leaves(content, struct(c=DATE))[("c",)] == (dt.date(1970, 1, 1), None, 0)


def test_row_groups_add_up():
    content = parquet({"c": pa.array([5, None, 7, None, None, 1])}, row_group_size=2)
    assert leaves(content, struct(c=LONG)) == {("c",): LeafStatistics(1, 7, 3)}


def test_one_row_group_without_bounds_ends_the_bounds_of_the_file():
    content = parquet({"c": pa.array(["a", "x" * 5000])}, row_group_size=1)
    assert leaves(content, struct(c=STRING)) == {("c",): LeafStatistics(None, None, 0)}


def test_a_row_group_of_nulls_leaves_bounds_alone():
    content = parquet({"c": pa.array([1, None])}, row_group_size=1)
    assert leaves(content, struct(c=LONG)) == {("c",): LeafStatistics(1, 1, 1)}


def test_an_empty_file_has_no_nulls():
    content = parquet({"c": pa.array([], pa.int64())})
    assert leaves(content, struct(c=LONG, d=LONG)) == {
        ("c",): LeafStatistics(None, None, 0),
        ("d",): LeafStatistics(None, None, 0),
    }


def test_x68_a_column_the_file_lacks_is_all_null():
    content = parquet({"c": pa.array([1, 2])})
    schema = struct(c=LONG, d=LONG, s=struct(x=LONG, y=ArrayType(LONG)), v=VOID)
    assert leaves(content, schema) == {
        ("c",): LeafStatistics(1, 2, 0),
        ("d",): LeafStatistics(None, None, 2),
        ("s", "x"): LeafStatistics(None, None, 2),
        ("s", "y"): LeafStatistics(None, None, 2),
        ("v",): LeafStatistics(None, None, 2),
    }


def test_fields_of_a_null_struct_count_as_null():
    values = pa.array([{"x": 1, "y": {"z": "q"}}, None, {"x": None, "y": None}])
    schema = struct(n=struct(x=LONG, y=struct(z=STRING), late=LONG))
    assert leaves(parquet({"n": values}), schema) == {
        ("n", "x"): LeafStatistics(1, 1, 2),
        ("n", "y", "z"): LeafStatistics("q", "q", 2),
        ("n", "late"): LeafStatistics(None, None, 3),
    }


def test_names_with_dots_are_not_paths():
    content = parquet({"a.b": pa.array([1]), "a": pa.array([{"b": 5, "c.d": 6}])})
    schema = StructType(
        (
            StructField("a", StructType((StructField("b", LONG), StructField("c.d", LONG)))),
            StructField("a.b", LONG),
        )
    )
    assert leaves(content, schema) == {
        ("a", "b"): LeafStatistics(5, 5, 0),
        ("a", "c.d"): LeafStatistics(6, 6, 0),
        ("a.b",): LeafStatistics(1, 1, 0),
    }
    flat = parquet({"a.b": pa.array([1])})
    assert leaves(flat, struct(a=struct(b=LONG))) == {("a", "b"): LeafStatistics(None, None, 1)}


def test_names_may_differ_in_case_unless_that_is_ambiguous():
    content = parquet({"ID": pa.array([1])})
    assert leaves(content, struct(id=LONG)) == {("id",): LeafStatistics(1, 1, 0)}
    both = parquet({"ID": pa.array([1]), "Id": pa.array([2])})
    assert leaves(both, struct(id=LONG)) == {}
    assert leaves(both, struct(Id=LONG)) == {("Id",): LeafStatistics(2, 2, 0)}
    lists = parquet({"ID": pa.array([[1]]), "Id": pa.array([None], pa.list_(pa.int64()))})
    assert leaves(lists, struct(id=ArrayType(LONG))) == {}


def test_a_name_that_differs_in_case_proves_nothing_where_the_case_matters():
    content = parquet({"ID": pa.array([1]), "s": pa.array([{"A": 1}])})
    schema = struct(id=LONG, s=struct(a=LONG), other=LONG)
    found = leaves(content, schema, case_sensitive=True)
    assert found == {("other",): LeafStatistics(None, None, 1)}


LISTS = {
    "full": pa.array([[1], [2, 3]]),
    "null": pa.array([[1], None]),
    "empty": pa.array([[1], []]),
    "inner": pa.array([[1], [None]]),
    "map": pa.array([[("k", None)], [("l", 1)]], pa.map_(pa.string(), pa.int64())),
    "null_map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
}


def test_x72_nulls_of_arrays_and_maps_are_known_only_when_there_are_none():
    arrays = dict.fromkeys(("full", "null", "empty", "inner"), ArrayType(LONG))
    maps = dict.fromkeys(("map", "null_map"), MapType(STRING, LONG))
    schema = struct(**arrays, **maps)
    none = LeafStatistics(None, None, 0)
    assert leaves(parquet(LISTS), schema) == {("full",): none, ("map",): none}
    assert leaves(parquet(LISTS, created_by="somebody"), schema) == {}


@pytest.mark.parametrize(
    ("created_by", "known"),
    [
        ("parquet-cpp-arrow version 17.0.0", {("plain",)}),
        ("parquet-cpp version 1.5.0", {("plain",)}),
        ("parquet-cpp-arrow version 26.0.1", {("plain",), ("structs",)}),
        (SPARK, {("plain",), ("structs",)}),
    ],
)
def test_x72_older_arrow_leaves_null_arrays_out_where_they_hold_structs(created_by, known):
    inner = struct(x=LONG)
    rows = {
        "plain": pa.array([[1]]),
        "structs": pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.int64())]))),
    }
    schema = struct(plain=ArrayType(LONG), structs=ArrayType(inner))
    assert leaves(parquet(rows, created_by=created_by), schema).keys() == known


def test_shapes_that_differ_prove_nothing():
    content = parquet({"s": pa.array([{"x": 1}]), "l": pa.array([[1]]), "c": pa.array([1])})
    assert leaves(content, struct(s=LONG, l=struct(x=LONG), c=struct(x=LONG))) == {}
    assert leaves(content, struct(c=ArrayType(LONG), l=LONG)) == {}


def test_only_indexed_leaves_are_described():
    content = parquet({"a": pa.array([1]), "n": pa.array([{"x": 1, "y": 2}])})
    schema = struct(a=LONG, n=struct(x=LONG, y=LONG))
    assert set(leaves(content, schema, indexed={("n", "y")})) == {("n", "y")}
    assert set(leaves(content, schema)) == {("a",), ("n", "x"), ("n", "y")}


def test_one_reader_serves_files_of_several_kinds():
    reader = StatisticsReader(struct(c=DOUBLE))
    files = [
        parquet({"c": pa.array([1.0])}, created_by=SPARK),
        parquet({"c": pa.array([1.0])}),
        parquet({"c": pa.array([1], pa.int32())}),
        parquet({"d": pa.array([1.0])}),
    ] * 2
    found = [reader.leaves(read_footer(f))[("c",)] for f in files]
    assert (
        found[:4] == found[4:] == [(1.0, 1.0, 0), (None, None, 0), (1.0, 1.0, 0), (None, None, 1)]
    )


def test_a_caller_that_looked_for_nan_decides_about_float_bounds():
    content = parquet({"a": pa.array([1.0, float("nan")]), "b": pa.array([1.0, 2.0])})
    reader = StatisticsReader(struct(a=DOUBLE, b=DOUBLE))
    footer = read_footer(content)
    assert reader.leaves(footer, nan_leaves={("a",)}) == {
        ("a",): (None, None, 0),
        ("b",): (1.0, 2.0, 0),
    }
    assert reader.leaves(footer)["b",] == (None, None, 0)


MANY_KINDS = pa.table(
    {
        "whole": pa.array([3, None, -1], pa.int32()),
        "Real": pa.array([1.5, None, 0.0]),
        "zero": pa.array([0.0, None, 0.0]),
        "text": ["ü" * 40, None, 'a"b'],
        "money": pa.array([Decimal("1.10"), None, Decimal("-2.50")]),
        "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1999, 1, 1)]),
        "at": pa.array([dt.datetime(2024, 1, 1, microsecond=1), None, None], pa.timestamp("us")),
        "flag": [True, None, False],
        "bytes": pa.array([b"a", None, b"b"]),
        "list": pa.array([[1], [2], [3]]),
        "nothing": pa.array([None, None, None], pa.int64()),
    }
)
KINDS_OF_TABLE = struct(
    whole=LONG,
    real=DOUBLE,
    zero=DOUBLE,
    text=STRING,
    money=DecimalType(5, 3),
    day=DATE,
    at=TIMESTAMP_NTZ,
    flag=BOOLEAN,
    bytes=BINARY,
    list=ArrayType(LONG),
    nothing=LONG,
    absent=STRING,
)


@pytest.mark.parametrize("created_by", [None, SPARK])
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("nan_leaves", [None, (), {("real",)}])
def test_one_row_group_is_described_like_several(created_by, vectors, nan_leaves):
    """Files of one group have a way of their own; the others, and fields, are the check."""
    config = table_config(KINDS_OF_TABLE, vectors=vectors)
    statistics = TableStatistics(config)
    reader = StatisticsReader(KINDS_OF_TABLE)
    one, three = (
        read_footer(parquet(MANY_KINDS, created_by=created_by, row_group_size=size))
        for size in (3, 1)
    )
    assert (one.num_row_groups, three.num_row_groups) == (1, 3)
    text = statistics.encode(one, nan_leaves=nan_leaves)
    assert text == statistics.encode(three, nan_leaves=nan_leaves)
    assert text == encode_statistics(
        reader.leaves(one, nan_leaves=nan_leaves),
        num_records=3,
        tight_bounds=True if vectors else None,
    )
    assert text == statistics.encode(one, nan_leaves=nan_leaves, message=schema_message(one))
    said = json.loads(text)
    assert ("tightBounds" in said) is vectors
    assert said["minValues"]["whole"] == -1
    assert said["maxValues"]["text"] == "ü" * 32 + "\U0010ffff"
    assert said["nullCount"]["absent"] == 3


def table_config(schema: StructType, *, vectors: bool) -> TableConfig:
    features = frozenset({"deletionVectors"} if vectors else ())
    return TableConfig.of(
        Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=features | {"timestampNtz"},
            writer_features=features | {"timestampNtz"},
        ),
        Metadata(
            id="statistics",
            schema_string=encode_schema(schema),
            partition_columns=(),
            configuration={},
        ),
    )


def test_several_files_add_up():
    def stats(low, high, nulls):
        return {("c",): LeafStatistics(low, high, nulls)}

    assert combined([]) == {}
    assert combined([(3, stats(1, 4, 0)), (2, stats(3, 9, 1))]) == stats(1, 9, 1)
    assert combined([(3, stats(1, 4, 0)), (2, stats(None, None, 2))]) == stats(1, 4, 2)
    assert combined([(2, stats(None, None, 2)), (3, stats(1, 4, 0))]) == stats(1, 4, 2)
    assert combined([(3, stats(1, 4, 0)), (2, stats(None, 5, 1))]) == stats(None, 5, 1)
    assert combined([(3, stats(1, 4, None)), (2, stats(2, 5, 1))]) == stats(1, 5, None)
    assert combined([(3, stats(1, 4, 0)), (2, {})]) == {}
    assert combined([(0, {}), (3, stats(1, 4, 0)), (0, {})]) == stats(1, 4, 0)
