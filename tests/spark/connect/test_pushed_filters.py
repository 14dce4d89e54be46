"""What an explained plan says of a scan, and what no value in it can say."""

from __future__ import annotations

import datetime as dt
import decimal
import zoneinfo

import pytest

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
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
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
from puredelta.spark.connect.pushed_filters import Needed, Skeleton, needed_of, zone_in

STRUCT = StructType((StructField("a", INTEGER),))
SKELETON = Skeleton(
    {
        "xid": ("id", LONG),
        "xs": ("s", STRING),
        "xd": ("d", DOUBLE),
        "xdec": ("dec", DecimalType(12, 3)),
        "xf": ("f", BOOLEAN),
        "xdt": ("dt", DATE),
        "xts": ("ts", TIMESTAMP),
        "xtn": ("tn", TIMESTAMP_NTZ),
        "xb": ("b", BINARY),
        "xst": ("st", STRUCT),
    }
)


def ref(name: str, kind: DataType, *more: str) -> Ref:
    return Ref(Side.TARGET, (name, *more), kind)


ID, S, TS = ref("id", LONG), ref("s", STRING), ref("ts", TIMESTAMP)
DEC = ref("dec", DecimalType(12, 3))


def section(filters: str, *, number: int = 1, output: str = "xid#1L, xs#2") -> str:
    count = output.count("#")
    return (
        f"({number}) Scan parquet \nOutput [{count}]: [{output}]\nBatched: true\n"
        f"Location: InMemoryFileIndex []\nPushedFilters: [{filters}]\n"
        "ReadSchema: struct<xid:bigint,xs:string>\n\n(2) Filter\n"
        "Input [1]: [xid#1L]\nCondition : isnotnull(xid#1L)\n"
    )


def needed(text: str, zone: str = "America/New_York") -> Needed:
    [found] = needed_of(text, [SKELETON], lambda: zoneinfo.ZoneInfo(zone))
    return found


def equal(column: Ref, value: object) -> Predicate:
    return Compare(CompareOp.EQUAL, column, Const(value))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("IsNotNull(xid), EqualTo(xid,5)", (Not(IsNull(ID)), equal(ID, 5))),
        ("LessThanOrEqual(xid,-5)", (Compare(CompareOp.LESS_OR_EQUAL, ID, Const(-5)),)),
        ("EqualNullSafe(xid,1)", (Compare(CompareOp.NULL_SAFE_EQUAL, ID, Const(1)),)),
        ("In(xid, [3,4,null])", (OneOf(ID, (3, 4)),)),
        ("EqualTo(xs,)", (equal(S, ""),)),
        ("EqualTo(xs,a b = 'c')", (equal(S, "a b = 'c'"),)),
        ("StringStartsWith(xs,k0)", (StartsWith(S, "k0"),)),
        ("StringContains(xs,k0)", (Opaque(frozenset({S})),)),
        (
            "Or(And(EqualTo(xid,1),EqualTo(xs,b)),Not(EqualTo(xid,2)))",
            (Or((And((equal(ID, 1), equal(S, "b"))), Not(equal(ID, 2)))),),
        ),
        ("EqualTo(xst.a,30)", (equal(ref("st", INTEGER, "a"), 30),)),
        (
            "GreaterThan(xdec,5.000)",
            (
                Compare(
                    CompareOp.GREATER, ref("dec", DecimalType(12, 3)), Const(decimal.Decimal(5))
                ),
            ),
        ),
        ("EqualTo(xf,true)", (equal(ref("f", BOOLEAN), True),)),
        ("EqualTo(xdt,2024-02-29)", (equal(ref("dt", DATE), dt.date(2024, 2, 29)),)),
        ("EqualTo(xdt,1499-12-31)", (Opaque(frozenset({ref("dt", DATE)})),)),
        (
            "EqualTo(xts,2024-01-02 03:04:05.6789)",
            (equal(TS, dt.datetime(2024, 1, 2, 8, 4, 5, 678900, dt.timezone.utc)),),
        ),
        # The hour that comes twice, and a year that is before the zones of today.
        ("EqualTo(xts,2024-11-03 01:30:00.0)", (Opaque(frozenset({TS})),)),
        ("EqualTo(xts,1883-01-01 00:00:00.0)", (Opaque(frozenset({TS})),)),
        (
            "EqualTo(xtn,2024-01-02T03:04:05)",
            (equal(ref("tn", TIMESTAMP_NTZ), dt.datetime(2024, 1, 2, 3, 4, 5)),),  # noqa: DTZ001
        ),
        ("EqualTo(xb,[B@607ea36b)", (Opaque(frozenset({ref("b", BINARY)})),)),
        ("EqualTo(xd,1.0E10)", (equal(ref("d", DOUBLE), 1e10),)),
    ],
)
def test_filters(text: str, wanted: tuple[Predicate, ...]) -> None:
    assert needed(section(text)).conditions == wanted


def test_texts_with_commas_are_read_in_every_way() -> None:
    """``IN ('a,b', 'c')`` and ``IN ('a', 'b', 'c')`` are printed alike."""
    [found] = needed(section("In(xs, [a,b,c])")).conditions
    assert isinstance(found, OneOf)
    assert set(found.values) == {"a", "b", "c", "a,b", "b,c", "a,b,c"}
    [negated] = needed(section("Not(In(xs, [a,b]))")).conditions
    assert negated == Not(Opaque(frozenset({S})))
    many = [f"k{n:03}" for n in range(60)]
    [ranged] = needed(section(f"In(xs, [{','.join(many)}])")).conditions
    assert ranged == Compare(CompareOp.GREATER_OR_EQUAL, S, Const("k000"))


@pytest.mark.parametrize(
    "value",
    [
        "a), EqualTo(xother,7",
        "a), EqualTo(id,7",
        "a)]\nfoo",
        "a)]\nReadSchema: struct<>\n(9) Scan",
        "a)]\nReadSchema: struct<id:bigint>",
        "x\nPushedFilters: [",
        "x\nPushedFilters: [Not(",
        "a),Not(",
        "a(b",
        "[",
        "]",
    ],
)
def test_no_value_is_taken_for_a_condition(value: str) -> None:
    text = section(f"IsNotNull(xs), EqualTo(xs,{value}), GreaterThan(xid,5)")
    assert needed(text).conditions == ()
    assert needed(text).columns == {"id", "s"}


def test_columns() -> None:
    assert needed(section("IsNotNull(xid)")).columns == {"id", "s"}
    assert needed(section("IsNotNull(xid)", output="xid#1L, ... 30 more fields")).columns == {"id"}
    cut = section("IsNotNull(xid)").replace("Output [2]", "Output [31]")
    assert needed(cut).columns is None


def test_a_scan_that_is_not_there_or_there_twice_says_nothing() -> None:
    one = section("EqualTo(xid,5)")
    assert needed(one + one.replace("(1) Scan", "(3) Scan")) == Needed()
    assert needed("== Physical Plan ==\nLocalTableScan <empty>\n") == Needed()
    other = Skeleton({"y": ("id", LONG)})
    found = needed_of(one, [other, SKELETON], lambda: None)
    assert [len(some.conditions) for some in found] == [0, 1]


def test_random_names_differ_and_hide_the_real_ones() -> None:
    schema = StructType((StructField("id", LONG), StructField("s", STRING)))
    one, other = Skeleton.of(schema), Skeleton.of(schema)
    assert [name for name, _ in one.columns.values()] == ["id", "s"]
    assert not one.columns.keys() & other.columns.keys()


def test_the_zone_of_the_server() -> None:
    found = zone_in('sun.util.calendar.ZoneInfo[id="Europe/Berlin",offset=3600000]')
    assert str(found) == "Europe/Berlin"
    assert zone_in('ZoneInfo[id="Nowhere/Land"]') is None
    assert zone_in("nothing") is None
