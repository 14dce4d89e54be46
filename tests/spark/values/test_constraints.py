# ruff: noqa: E501 - messages as they are
"""Rules of the table, checked in the job that writes the rows (M-104, M-105, M-106)."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.values.constraints import guarded, table_checks
from puredelta.spark.values.row_errors import decode_row_error


def config(*fields, **configuration) -> TableConfig:
    schema = {"type": "struct", "fields": list(fields)}
    properties = {f"delta.constraints.{name}": sql for name, sql in configuration.items()}
    return TableConfig.of(
        Protocol(min_reader_version=1, min_writer_version=4),
        Metadata(
            id="t",
            schema_string=json.dumps(schema),
            partition_columns=(),
            configuration=properties,
        ),
    )


def field(name, kind, *, nullable=True, **metadata):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def array(element, *, nulls=True):
    return {"type": "array", "elementType": element, "containsNull": nulls}


def mapping(value, *, nulls=True):
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": nulls}


def check(rows, table: TableConfig) -> int:
    """Evaluate the guard for every row, as a write would; return the number of rows."""
    first, *others = rows.columns
    guard = guarded(F.col(f"`{first}`"), table_checks(table)).alias(first)
    try:
        return len(rows.select(guard, *(F.col(f"`{c}`") for c in others)).collect())
    except Exception as error:
        decoded = decode_row_error(error)
        if decoded is None:
            raise
        raise decoded from error


REQUIRED = config(
    field("a", "integer", nullable=False),
    field(
        "b",
        struct(
            field("x", "integer", nullable=False),
            field("y", struct(field("z.z", "string", nullable=False))),
        ),
    ),
    field("c", array(struct(field("q", "integer", nullable=False)))),
    field("d", mapping("integer", nulls=False)),
    field("e", array(array("integer", nulls=False))),
)
GOOD = {
    "a": "1",
    "b": "named_struct('x', 1, 'y', named_struct('z.z', 'q'))",
    "c": "array(named_struct('q', 1))",
    "d": "map('k', 1)",
    "e": "array(array(1))",
}


def required_row(spark, **changed):
    types = {
        "a": "int",
        "b": "struct<x:int,y:struct<`z.z`:string>>",
        "c": "array<struct<q:int>>",
        "d": "map<string,int>",
        "e": "array<array<int>>",
    }
    values = GOOD | changed
    return spark.sql(
        "select " + ", ".join(f"cast({values[n]} as {t}) {n}" for n, t in types.items())
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"c": "null", "d": "null", "e": "null"},
        {"c": "array()", "d": "map()", "e": "array()"},
        {"c": "array(null)", "e": "array(null)"},
    ],
)
def test_m105_rows_that_keep_not_null(spark, changed):
    assert check(required_row(spark, **changed), REQUIRED) == 1


@pytest.mark.sampled(2)
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({"a": "null"}, "a"),
        ({"b": "named_struct('x', null, 'y', named_struct('z.z', 'q'))"}, "b.x"),
        ({"b": "named_struct('x', 1, 'y', named_struct('z.z', null))"}, "b.y.z.z"),
        ({"b": "null"}, "b.x"),  # as delta-spark 4.4: a NULL struct lacks its required field
        ({"c": "array(named_struct('q', 1), named_struct('q', null))"}, "c.element"),
        ({"d": "map('k', null)"}, "d.value"),
        ({"e": "array(array(1), array(null))"}, "e.element"),
    ],
)
def test_m105_not_null_is_checked_at_every_level(spark, changed, column):
    with pytest.raises(InvalidRequestError) as caught:
        check(required_row(spark, **changed), REQUIRED)
    assert caught.value.code is ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED
    assert caught.value.message == f"NOT NULL constraint violated for column: {column}."


CHECKED = config(
    field("a", "integer"),
    field("b", "string"),
    field("c", struct(field("x", "integer"))),
    field("odd name", "integer"),
    pos="a > 0 and B <> 'q a'",
    nested="c . x < 10",
    odd="coalesce(`odd name`, 1) > 0",
)


def checked_row(spark, a="1", b="'x'", x="1", odd="null"):
    return spark.sql(
        f"select cast({a} as int) a, cast({b} as string) b,"
        f" named_struct('x', cast({x} as int)) c, cast({odd} as int) `odd name`"
    )


@pytest.mark.smoke
def test_m104_check_constraints(spark):
    assert check(checked_row(spark), CHECKED) == 1
    for changed, message in (
        (
            {"a": "-1"},
            "pos (a > 0 and B <> 'q a') violated by row with values:\n - a : -1\n - b : x",
        ),
        (
            {"b": "null"},
            "pos (a > 0 and B <> 'q a') violated by row with values:\n - a : 1\n - b : null",
        ),
        ({"x": "11"}, "nested (c . x < 10) violated by row with values:\n - c.x : 11"),
        (
            {"odd": "-7"},
            "odd (coalesce(`odd name`, 1) > 0) violated by row with values:\n - odd name : -7",
        ),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            check(checked_row(spark, **changed), CHECKED)
        assert caught.value.code is ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES
        assert caught.value.message == f"CHECK constraint {message}"


def test_values_of_any_content_survive_the_journey(spark):
    rows = spark.sql(r"""select 'q"}\n\\ é' || repeat('x', 5000) s""")
    with pytest.raises(InvalidRequestError) as caught:
        check(rows, config(field("s", "string"), short="length(s) < 9"))
    assert caught.value.message.endswith(' - s : q"}\n\\ é' + "x" * 193)


def test_legacy_invariants(spark):
    invariant = json.dumps({"expression": {"expression": "v > 3"}})
    table = config(field("v", "integer", **{"delta.invariants": invariant}))
    assert check(spark.sql("select 4 v"), table) == 1
    with pytest.raises(InvalidRequestError, match=r"EXPRESSION\(v > 3\) .* violated") as caught:
        check(spark.sql("select 3 v"), table)
    assert caught.value.code is ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES


def test_m106_char_and_varchar(spark):
    kind = "__CHAR_VARCHAR_TYPE_STRING"
    table = config(
        field("v", "string", **{kind: "varchar(3)"}),
        field("s", struct(field("w", "string", **{kind: "varchar(2)"}))),
    )
    good = "select {} v, named_struct('w', {}) s"
    assert check(spark.sql(good.format("'abc'", "null")), table) == 1
    for v, w, message in (
        (
            "'abcd'",
            "'a'",
            'Value "abcd" exceeds char/varchar type length limitation. Failed check: ((v IS NULL) OR (length(v) <= 3)).',
        ),
        (
            "'a'",
            "'abc'",
            'Value "abc" exceeds char/varchar type length limitation. Failed check: ((s.w IS NULL) OR (length(s.w) <= 2)).',
        ),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            check(spark.sql(good.format(v, w)), table)
        assert caught.value.code is ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT
        assert caught.value.message == message


def test_m106_nested_text(spark):
    kind = "__CHAR_VARCHAR_TYPE_STRING"
    table = config(
        field("a", array("string"), **{kind: "array<char(2)>"}),
        field("s", struct(field("x", "string")), **{kind: "struct<x:varchar(1)>"}),
    )
    good = "select {} a, named_struct('x', {}) s"
    assert check(spark.sql(good.format("array('ab', null)", "null")), table) == 1
    for a, x, name in (("array('a', 'abc')", "'a'", "a"), ("array()", "'ab'", "s")):
        with pytest.raises(InvalidRequestError, match=f"Failed check: {name} is ") as caught:
            check(spark.sql(good.format(a, x)), table)
        assert caught.value.code is ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT


def test_m101_generated_columns(spark):
    generated = {"delta.generationExpression": "A * 10"}
    table = config(field("a", "integer"), field("g", "integer", **generated))
    assert check(spark.sql("select 2 a, 20 g union all select null, null"), table) == 2
    for g in ("21", "null"):
        with pytest.raises(InvalidRequestError, match=r"Generated Column \(g <=> \(A \* 10\)\)"):
            check(spark.sql(f"select 2 a, {g} g"), table)


def test_rows_that_are_not_written_are_not_checked(spark):
    table = config(field("id", "long"), small="id < 5")
    rows = spark.range(0, 100, 1, 1)
    assert check(rows.limit(5), table) == 5
    assert check(rows.sort("id").limit(5), table) == 5
    assert check(rows.filter("id < 5").union(rows.filter("id % 200 = 1")), table) == 6


@pytest.mark.parametrize(
    "payload",
    ['{"code":"WRITE_FAILED","message":"m","details":{}}', "{}", "{", "[1]", '{"code":1}'],
)
def test_the_marker_in_a_value_is_no_row_error(spark, payload):
    """The text of a row is in the message of Spark's error."""
    text = f"__puredelta_error__{payload}"
    assert decode_row_error(ValueError(f"[ANY_ERROR] The value '{text}'")) is None
    rows = spark.createDataFrame([(text,)], "v string")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT") as caught:
        rows.selectExpr("cast(v as int)").collect()
    decoded = decode_row_error(caught.value)
    assert decoded is not None
    assert decoded.code is ErrorCode.CAST_INVALID_INPUT


@pytest.mark.parametrize("payload", ["{}", "{", '{"code":"NONE","message":"m","details":{}}'])
def test_what_somebody_else_raises_with_the_marker_is_no_row_error(payload):
    raised = ValueError(f"[USER_RAISED_EXCEPTION] __puredelta_error__{payload} SQLSTATE: P0001")
    assert decode_row_error(raised) is None


def test_other_errors_are_no_row_errors(spark):
    for error in (ValueError("x"), InvalidRequestError("y", code=ErrorCode.WRITE_FAILED)):
        assert decode_row_error(error) is None
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        check(spark.range(1), config(field("id", "long"), bad="1 / id > 0"))
