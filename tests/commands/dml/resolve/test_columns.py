"""M-25 to M-27, M-29: what a name on the left of ``=`` means; texts as delta-spark 4.4.0 writes."""

from __future__ import annotations

import time

import pytest

from puredelta.commands.dml.resolve.target_columns import (
    TargetField,
    TargetNames,
    require_insertable,
    require_no_conflict,
)
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

INNER = StructType((StructField("c", LONG), StructField("D", LONG)))
SCHEMA = StructType(
    (
        StructField("key", LONG),
        StructField("a.b", LONG),
        StructField("st", StructType((StructField("a", INTEGER), StructField("b", INNER)))),
        StructField("t", StructType((StructField("key", LONG), StructField("x", LONG)))),
        StructField("arr", ArrayType(INNER)),
        StructField("m", MapType(STRING, LONG)),
    )
)
SHOWN = ("t.key", "t.`a.b`", "t.st", "t.t", "t.arr", "t.m")


def names(*qualifier: str, case_sensitive: bool = False) -> TargetNames:
    return TargetNames(
        schema=SCHEMA, qualifier=qualifier, displayed=SHOWN, case_sensitive=case_sensitive
    )


def find(text: str, *qualifier: str, case_sensitive: bool = False) -> tuple[str, ...]:
    found = names(*qualifier, case_sensitive=case_sensitive).find(text, clause="UPDATE clause")
    return found.names


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("key", ("key",)),
        ("KEY", ("key",)),
        ("`a.b`", ("a.b",)),
        ("tgt.key", ("key",)),
        ("TGT.`a.b`", ("a.b",)),
        ("st.B.d", ("st", "b", "D")),
        ("`tgt`.`st`.`a`", ("st", "a")),
        ("t.x", ("t", "x")),
    ],
)
def test_found(text: str, path: tuple[str, ...]) -> None:
    assert find(text, "tgt") == path


def test_a_qualifier_wins_over_a_struct_column_of_its_name() -> None:
    assert find("t.key", "t") == ("key",)
    assert find("t.x", "t") == ("t", "x"), "no column x: the struct's field is meant"
    assert find("t.key") == ("t", "key"), "no alias"


def test_a_qualifier_may_be_given_in_part() -> None:
    for text in ("spark_catalog.db.tab.key", "db.tab.key", "tab.key"):
        assert find(text, "spark_catalog", "db", "tab") == ("key",)
    with pytest.raises(InvalidRequestError):
        find("db.key", "spark_catalog", "db", "tab")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nope", "nope"),
        ("s.key", "s.key"),
        ("lower(key)", "`lower(key)`"),
        ("arr[0]", "`arr[0]`"),
        ("`tgt.key`", "`tgt.key`"),
        ("", "``"),
    ],
)
def test_not_found(text: str, shown: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        find(text, "tgt")
    assert caught.value.code is ErrorCode.MERGE_UNRESOLVED_EXPRESSION
    given = ", ".join(SHOWN)
    assert caught.value.message == f"Cannot resolve {shown} in UPDATE clause given columns {given}."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("st.nope", ErrorCode.FIELD_NOT_FOUND),
        ("st.a.x", ErrorCode.INVALID_EXTRACT_BASE_FIELD_TYPE),
        ("key.x", ErrorCode.INVALID_EXTRACT_BASE_FIELD_TYPE),
        ("arr.c", ErrorCode.UNSUPPORTED_NESTED_FIELD_IN_UPDATE),
        ("m.k", ErrorCode.UNSUPPORTED_NESTED_FIELD_IN_UPDATE),
        ("`a", ErrorCode.INVALID_ATTRIBUTE_NAME_SYNTAX),
    ],
)
def test_steps_that_lead_nowhere(text: str, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        find(text, "tgt")
    assert caught.value.code is code


def test_case_counts_where_the_session_says_so() -> None:
    assert find("key", case_sensitive=True) == ("key",)
    for text in ("KEY", "ST.a", "st.A"):
        with pytest.raises(InvalidRequestError):
            find(text, case_sensitive=True)


def paths(*texts: str) -> list[TargetField]:
    return [names("tgt").find(text, clause="") for text in texts]


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (("key", "tgt.key"), "[`key`, `key`]"),
        (("key", "KEY"), "[`key`, `KEY`]"),
        (("st.b.c", "st.b"), "[`st.b.c`, `st.b`]"),
        (("st", "key", "st.a"), "[`st`, `st.a`]"),
    ],
)
def test_conflicting_assignments(texts: tuple[str, ...], shown: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        require_no_conflict(paths(*texts))
    assert caught.value.code is ErrorCode.CONFLICT_SET_COLUMN
    assert caught.value.message == f"There is a conflict from these SET columns: {shown}."


def test_assignments_that_go_together() -> None:
    require_no_conflict(paths("st.a", "st.b.c", "st.b.d", "key", "`a.b`"))


def test_insert_lists() -> None:
    require_insertable(paths("key", "st", "KEY"))  # the legacy tolerance of M-29
    with pytest.raises(InvalidRequestError, match="Duplicate column names"):
        require_insertable(paths("key", "st", "KEY"), two_spellings=False)
    with pytest.raises(InvalidRequestError, match=r"field = `st`\.`a`") as nested:
        require_insertable(paths("key", "st.a"))
    assert nested.value.code is ErrorCode.UNSUPPORTED_NESTED_FIELD_IN_OPERATION
    with pytest.raises(InvalidRequestError, match=r"Duplicate column names.*key") as repeated:
        require_insertable(paths("key", "tgt.key"))
    assert repeated.value.code is ErrorCode.DUPLICATE_COLUMNS_ON_INSERT


def test_many_columns_take_time_in_proportion() -> None:
    number = 20_000
    schema = StructType(tuple(StructField(f"Column{n}", LONG) for n in range(number)))
    start = time.process_time()
    for case_sensitive in (True, False):
        wide = TargetNames(
            schema=schema, qualifier=("t",), displayed=(), case_sensitive=case_sensitive
        )
        found = [wide.find(f"t.Column{n}", clause="UPDATE clause") for n in range(number)]
        assert [one.column for one in found] == list(schema.names)
        require_no_conflict(found)
        require_insertable(found)
    assert time.process_time() - start < 10, "each pair of columns takes minutes"
