"""M-106: descriptions of ``char(n)`` and ``varchar(n)`` as Spark writes them into schemas."""

from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError
from puredelta.protocol.schema.char_varchar import (
    Limited,
    LimitedArray,
    LimitedMap,
    LimitedStruct,
    Limits,
    has_padded,
    limits_of,
    parse_limits,
)

CHAR2 = Limited(2, is_padded=True)
VARCHAR3 = Limited(3, is_padded=False)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("char(2)", CHAR2),
        ("VARCHAR(3)", VARCHAR3),
        ("string", None),
        ("decimal(10,2)", None),
        ("array<varchar(3)>", LimitedArray(VARCHAR3)),
        ("array<decimal(10,2)>", None),
        ("map<char(2),int>", LimitedMap(CHAR2, None)),
        ("map<string,array<char(2)>>", LimitedMap(None, LimitedArray(CHAR2))),
        (
            "struct<a:char(2),`b,``c`:decimal(3,1),s:struct<x y:varchar(3)>>",
            LimitedStruct((("a", CHAR2), ("s", LimitedStruct((("x y", VARCHAR3),))))),
        ),
        ("struct<`a``<b`:char(2)>", LimitedStruct((("a`<b", CHAR2),))),
        ("struct<a:int,b:timestamp_ntz>", None),
        ("struct<>", None),
    ],
)
def test_descriptions(text: str, limits: Limits) -> None:
    assert parse_limits(text) == limits
    assert has_padded(limits) == ("char(2)" in text.replace("varchar", ""))


@pytest.mark.parametrize("text", ["array<char(2)", "map<char(2)>", "struct<char(2)>", "char(2)>"])
def test_what_is_no_description(text: str) -> None:
    with pytest.raises(CorruptTableError, match="cannot be read from character"):
        parse_limits(text)


DEEP = "array<" * 100_000


def test_a_description_of_any_depth_and_length_is_an_answer() -> None:
    """Metadata may be of any writer: CONVERT and entries of the catalog read it, too."""
    with pytest.raises(CorruptTableError):
        parse_limits(DEEP)
    wide = ",".join(f"c{n}:char(2)" for n in range(20_000))
    found = parse_limits(f"struct<{wide}>")
    assert isinstance(found, LimitedStruct)
    assert len(found.fields) == 20_000
    assert [limits_of(value) for value in (DEEP, f"char({'9' * 5_000})", 3, None)] == [None] * 4
