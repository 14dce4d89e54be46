"""Values made to fit (M-42 to M-44, M-50, M-60 to M-63), as delta-spark 4.4.0 does on Spark 4.2."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.spark.session.session import SessionInfo, StoreAssignment
from puredelta.spark.values.casters import ClassicCaster, ConnectCaster
from puredelta.spark.values.row_errors import decode_row_error
from puredelta.spark.values.store_assignment import (
    CastMode,
    StoreAssigner,
    Value,
    cast_mode,
    is_same_type,
)


def ddl(text: str) -> T.DataType:
    return T._parse_datatype_string(text)


@pytest.fixture(params=["classic", "public"])
def assign(request: pytest.FixtureRequest, spark: SparkSession) -> Any:
    """Assign the value of an expression to a type; ``public`` is what Connect uses."""
    public = request.param == "public"
    caster = ConnectCaster() if public else ClassicCaster(spark)

    def run(expression: str, to: str, mode: CastMode = CastMode.CHECKED) -> Any:
        rows = spark.range(1).select(F.expr(expression).alias("v"))
        value = Value(column=F.col("v"), type=rows.schema["v"].dataType, sql="s.v")
        assigner = StoreAssigner(caster=caster, mode=mode)
        made = rows.select(assigner.assign(value, ddl(to), column="col").alias("v"))
        assert is_same_type(made.schema["v"].dataType, ddl(to)), made.schema
        try:
            return made.collect()[0]["v"]
        except Exception as error:
            if (known := decode_row_error(error)) is not None:
                raise known from error
            raise

    return run


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("expression", "to", "value"),
    [
        ("5", "int", 5),
        ("'7'", "int", 7),
        ("1.9d", "int", 1),
        ("timestamp'2021-01-01 10:00:00'", "date", dt.date(2021, 1, 1)),
        ("true", "string", "true"),
        ("1", "boolean", True),
        ("null", "struct<a:int>", None),
        ("array(1, null)", "array<string>", ["1", None]),
        ("map('k', 5L)", "map<string,int>", {"k": 5}),
        ("cast(null as array<bigint>)", "array<int>", None),
    ],
)
def test_castable_values_are_cast(
    assign: Any, conf: Any, *, ansi: str, expression: str, to: str, value: object
) -> None:
    """M-62, M-63: at every level, and NULL goes into any type."""
    conf("spark.sql.ansi.enabled", ansi)
    assert assign(expression, to) == value


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("expression", "to", "code", "words"),
    [
        (
            "5000000000L",
            "int",
            ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE,
            '"BIGINT" type into the "INT"',
        ),
        ("cast('nan' as double)", "int", ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE, '"DOUBLE"'),
        ("123.45", "decimal(4,2)", ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE, '"DECIMAL(4,2)"'),
        ("array(1L, 5000000000L)", "array<int>", ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE, "`col`"),
        ("map('k', 300)", "map<string,tinyint>", ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE, "`col`"),
        ("'abc'", "int", ErrorCode.CAST_INVALID_INPUT, "'abc'"),
        ("'300'", "tinyint", ErrorCode.CAST_INVALID_INPUT, '"TINYINT"'),
        ("'2021-02-30'", "date", ErrorCode.CAST_INVALID_INPUT, "'2021-02-30'"),
        ("array('1', 'x')", "array<int>", ErrorCode.CAST_INVALID_INPUT, "'x'"),
    ],
)
def test_what_does_not_fit_is_an_error_in_any_session(
    assign: Any, conf: Any, *, ansi: str, expression: str, to: str, code: ErrorCode, words: str
) -> None:
    conf("spark.sql.ansi.enabled", ansi)
    with pytest.raises(InvalidRequestError) as caught:
        assign(expression, to)
    assert caught.value.code is code
    assert words in str(caught.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("expression", "to", "value"),
    [
        ("named_struct('b', 2, 'A', 1L)", "struct<a:int,b:int>", Row(a=1, b=2)),
        ("cast(null as struct<b:int,a:int>)", "struct<a:int,b:int>", None),
        (
            "named_struct('b', null, 'a', null)",
            "struct<a:int,b:struct<c:int>>",
            Row(a=None, b=None),
        ),
        (
            "array(named_struct('b', 2, 'a', named_struct('y', 4, 'x', 3)), null)",
            "array<struct<a:struct<x:int,y:int>,b:bigint>>",
            [Row(a=Row(x=3, y=4), b=2), None],
        ),
        (
            "map('k', named_struct('b', 2, 'a', 1))",
            "map<string,struct<a:int,b:int>>",
            {"k": Row(a=1, b=2)},
        ),
        (
            "map(named_struct('b', 2, 'a', 1), 7)",
            "map<struct<a:int,b:int>,int>",
            {Row(a=1, b=2): 7},
        ),
        # the reference goes by position here and swaps the two
        (
            "array(map('k', named_struct('b', 2, 'a', 1)))",
            "array<map<string,struct<a:int,b:int>>>",
            [{"k": Row(a=1, b=2)}],
        ),
    ],
)
def test_structs_are_matched_by_name_at_every_depth(
    assign: Any, expression: str, to: str, value: object
) -> None:
    assert assign(expression, to) == value


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("expression", "to", "message"),
    [
        (
            "named_struct('a', 1, 'b', 2)",
            "struct<a:int>",
            "Cannot cast struct<a:int,b:int> to struct<a:int>.",
        ),
        (
            "named_struct('a', 1)",
            "struct<a:int,b:int>",
            "Cannot cast struct<a:int> to struct<a:int,b:int>.",
        ),
        ("named_struct('a', 1, 'c', 2)", "struct<a:int,b:int>", "All nested columns must match."),
        (
            "array(named_struct('a', 1))",
            "array<struct<b:int>>",
            "Cannot cast struct<a:int> to struct<b:int>",
        ),
        ("map(named_struct('a', 1), 1)", "map<struct<b:int>,int>", "Cannot cast struct<a:int> to"),
    ],
)
def test_fields_that_lack_or_are_extra_are_refused(
    assign: Any, expression: str, to: str, message: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        assign(expression, to)
    assert caught.value.code is ErrorCode.UPDATE_SCHEMA_MISMATCH_EXPRESSION
    assert message in str(caught.value)


def test_errors_name_the_innermost_field(assign: Any) -> None:
    with pytest.raises(DeltaError, match=r"column `b`"):
        assign("named_struct('b', 5000000000L, 'a', 1)", "struct<a:int,b:int>")


def test_types_that_never_cast_are_sparks_error(assign: Any) -> None:
    with pytest.raises(AnalysisException) as caught:
        assign("array(1)", "int")
    assert caught.value.getCondition() == "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"


def test_strict_allows_only_what_always_fits(assign: Any) -> None:
    assert assign("5", "bigint", CastMode.UP_CAST) == 5
    with pytest.raises(InvalidRequestError) as caught:
        assign("named_struct('a', 5L)", "struct<a:int>", CastMode.UP_CAST)
    assert caught.value.code is ErrorCode.CANNOT_UP_CAST_DATATYPE
    assert 'Cannot up cast s.v.`a` from "BIGINT" to "INT"' in str(caught.value)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_legacy_wraps_around_or_gives_null(spark: SparkSession, conf: Any, ansi: str) -> None:
    conf("spark.sql.ansi.enabled", ansi)
    assigner = StoreAssigner(caster=ClassicCaster(spark), mode=CastMode.LEGACY)
    rows = spark.sql("select 5000000000L as big, 'abc' as text, 123.45 as price, 5 as n")
    wanted = {"big": "int", "text": "int", "price": "decimal(4,2)", "n": "binary"}
    made = rows.select(
        *(
            assigner.assign(
                Value(column=F.col(f.name), type=f.dataType, sql=f.name),
                ddl(wanted[f.name]),
                column=f.name,
            ).alias(f.name)
            for f in rows.schema.fields
        )
    )
    assert tuple(made.collect()[0]) == (705032704, None, None, b"\0\0\0\5")


@pytest.mark.parametrize(
    ("policy", "follows", "ansi", "mode"),
    [
        (StoreAssignment.ANSI, False, False, CastMode.CHECKED),
        (StoreAssignment.LEGACY, False, True, CastMode.LEGACY),
        (StoreAssignment.STRICT, False, True, CastMode.UP_CAST),
        (StoreAssignment.STRICT, True, True, CastMode.ANSI),  # M-61
        (StoreAssignment.ANSI, True, False, CastMode.LEGACY),
    ],
)
def test_policy_of_a_session(
    policy: StoreAssignment, follows: bool, ansi: bool, mode: CastMode
) -> None:
    session = SessionInfo(
        spark_version="4.3.0",
        is_connect=False,
        time_zone="UTC",
        case_sensitive=False,
        ansi=ansi,
        store_assignment=policy,
    )
    assert cast_mode(session, follows_ansi_flag=follows) is mode
