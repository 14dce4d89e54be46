"""Expressions as Spark's analyzer judges them, and frames that take their place (M-20 to M-24)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.protocol.schema.predicates import (
    Compare,
    CompareOp,
    Const,
    OneOf,
    Opaque,
    Ref,
    Side,
    StartsWith,
    conjuncts,
    references,
)
from puredelta.protocol.schema.types import DATE, INTEGER, LONG, STRING, DecimalType
from puredelta.spark.resolve.analysis import Analysis, open_analysis
from puredelta.spark.resolve.expressions import (
    Request,
    Resolution,
    ResolutionProblem,
    ResolvedExpression,
    Scope,
)
from puredelta.spark.resolve.table_attributes import table_identity, with_identity
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import from_spark

TARGET = (
    "id long, v string, st struct<a:int,b:struct<c:decimal(10,2),d:date>>, n int, s struct<a:int>"
)
SOURCE = "id long, v string, w int, arr array<int>"
REQUESTED = tuple[str | Column, Scope]
PAIR, FROM_SOURCE, FROM_TARGET = Scope.PAIR, Scope.SOURCE, Scope.TARGET


def empty(spark: SparkSession, schema: str) -> DataFrame:
    return spark.createDataFrame([], schema)


def opened(spark: SparkSession, target: DataFrame, source: DataFrame) -> Analysis:
    return open_analysis(spark, target, source, session=SessionInfo.of(spark))


@pytest.fixture
def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return empty(spark, TARGET), empty(spark, SOURCE)


@pytest.fixture
def analysis(spark: SparkSession, sides: tuple[DataFrame, DataFrame]) -> Analysis:
    target, source = sides
    return opened(spark, target.alias("t"), source.alias("s"))


def resolve(analysis: Analysis, *requests: REQUESTED) -> Resolution:
    some = [Request(expression=e, scope=scope) for e, scope in requests]
    return analysis.resolver.resolve(some)


def one(analysis: Analysis, expression: str | Column, scope: Scope = PAIR) -> ResolvedExpression:
    (resolved,) = resolve(analysis, (expression, scope)).expressions
    return resolved


def target(*path: str, kind: Any = LONG) -> Ref:
    return Ref(Side.TARGET, path, kind)


def source(n: int, kind: Any = LONG) -> Ref:
    return Ref(Side.SOURCE, (f"__puredelta_s{n}",), kind)


def test_a_condition_is_read_as_a_predicate(analysis: Analysis) -> None:
    text = """t.id = s.id and t.v in ('a', 'b') and st.b.c > 1.5 and v_ like 'a%' and n > 1.5
              and not (t.n >= 10 + 5) and st.B.d >= '2020-01-01' and t.id + w > 3"""
    found = conjuncts(one(analysis, text.replace("v_", "t.v")).predicate)
    v, n = target("v", kind=STRING), target("n", kind=INTEGER)
    assert found[0] == Compare(CompareOp.EQUAL, target("id"), source(0))
    for wanted in (
        OneOf(v, ("a", "b")),
        StartsWith(v, "a"),
        Compare(CompareOp.GREATER, n, Const(1)),
        Compare(CompareOp.LESS, n, Const(15)),
        Compare(
            CompareOp.GREATER_OR_EQUAL,
            target("st", "b", "d", kind=DATE),
            Const(dt.date(2020, 1, 1)),
        ),
    ):
        assert wanted in found, wanted
    decimal = next(c for c in found if DecimalType(10, 2) in {r.type for r in references(c)})
    assert isinstance(decimal, Compare)
    assert str(decimal.right.value) == "1.50"
    assert found[-1] == Opaque(frozenset({target("id"), source(2, INTEGER)}))


def test_columns_a_value_uses(analysis: Analysis) -> None:
    value = one(analysis, "named_struct('a', t.st.a, 'b', transform(arr, x -> x + w))")
    assert value.target_columns == {"st"}
    assert value.source_columns == {"__puredelta_s2", "__puredelta_s3"}
    assert value.type.simpleString() == "struct<a:int,b:array<int>>"


def test_what_is_known_of_an_expression(analysis: Analysis) -> None:
    chance, subquery = (
        one(analysis, "rand() > 0.5"),
        one(analysis, "w in (select id from range(3))"),
    )
    assert not chance.is_deterministic
    assert chance.predicate == Opaque(frozenset())
    assert chance.sql == "(rand() > CAST(0.5BD AS DOUBLE))"
    assert subquery.has_subquery
    assert subquery.source_columns == {"__puredelta_s2"}
    plain = one(analysis, "w > 1")
    assert (plain.is_deterministic, plain.has_subquery) == (True, False)
    assert plain.type == T.BooleanType()


def test_columns_of_the_users_frames(
    analysis: Analysis, sides: tuple[DataFrame, DataFrame]
) -> None:
    target_rows, source_rows = sides
    bound = one(analysis, (source_rows["w"] > 3) & (target_rows["n"] < source_rows.w))
    assert bound.target_columns == {"n"}
    assert bound.source_columns == {"__puredelta_s2"}
    assert one(analysis, F.col("t.id") == F.col("s.id")).sql == "(t.id = s.id)"


@pytest.mark.parametrize(
    ("expression", "scope", "flaw", "names"),
    [
        ("nope > 1", PAIR, ResolutionProblem.UNRESOLVED, ("nope",)),
        ("t.`no pe` = s.id", PAIR, ResolutionProblem.UNRESOLVED, ("t.`no pe`",)),
        ("t.id = 1", FROM_SOURCE, ResolutionProblem.UNRESOLVED, ("t.id",)),
        ("w = 1", FROM_TARGET, ResolutionProblem.UNRESOLVED, ("w",)),
        ("default", PAIR, ResolutionProblem.UNRESOLVED, ("default",)),
        ("max(w) > 1", PAIR, ResolutionProblem.AGGREGATE, ()),
        ("sum(w) over () > 1", PAIR, ResolutionProblem.AGGREGATE, ()),
    ],
)
def test_flaws(
    analysis: Analysis,
    *,
    expression: str,
    scope: Scope,
    flaw: ResolutionProblem,
    names: tuple[str, ...],
) -> None:
    resolution = resolve(analysis, ("1", scope), (expression, scope))
    (found,) = resolution.errors
    assert (found.position, found.problem, found.names) == (1, flaw, names)
    assert resolution.expressions == ()


def test_columns_of_other_frames_are_foreign(
    analysis: Analysis, sides: tuple[DataFrame, DataFrame], spark: SparkSession
) -> None:
    other = spark.range(1)
    assert (
        resolve(analysis, (other["id"] == 1, PAIR)).errors[0].problem is ResolutionProblem.FOREIGN
    )
    found = resolve(analysis, (sides[1]["w"] > 1, FROM_TARGET)).errors[0]
    assert (found.problem, found.names) == (ResolutionProblem.FOREIGN, ("w",))


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        ("v = 'x'", "AMBIGUOUS_REFERENCE"),
        ("nofn(w)", "UNRESOLVED_ROUTINE"),
        ("t.st + 1 = 2", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        ("w in (select x from no_such_table)", "TABLE_OR_VIEW_NOT_FOUND"),
        ("t.st.zz = 1", "FIELD_NOT_FOUND"),
        ("explode(arr)", "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT"),
    ],
)
def test_sparks_own_errors_pass(analysis: Analysis, expression: str, condition: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        resolve(analysis, (expression, PAIR))
    assert caught.value.getCondition() == condition


def test_text_that_does_not_parse(analysis: Analysis) -> None:
    with pytest.raises(ParseException):
        resolve(analysis, ("t.id = ", PAIR))


def test_an_alias_wins_only_where_it_has_the_column(analysis: Analysis) -> None:
    """``s.a``: the source (alias s) has no column a, but the target's column s has a field a."""
    assert one(analysis, "s.a = 1").target_columns == {"s"}
    assert one(analysis, "s.a = 1", FROM_TARGET).target_columns == {"s"}


@pytest.fixture
def merged(spark: SparkSession) -> tuple[Analysis, DataFrame, DataFrame]:
    """Frames over other rows: what the user knows is replaced before anything is evaluated."""
    known = empty(spark, "id long, v string, n int")
    given = spark.sql("select 1L as id, 'new' as v, 5 as v, 7 as id_2").alias("s")
    analysis = opened(spark, known.alias("t"), given)
    scanned = spark.sql("select 1L as id, 'old' as v, 3 as n, 42 as __puredelta_row")
    staged = given.toDF(*[c.staged for c in analysis.resolver.frames.source_columns])
    return analysis, scanned, staged


def test_expressions_are_evaluated_over_other_rows(
    merged: tuple[Analysis, DataFrame, DataFrame],
) -> None:
    analysis, scanned, staged = merged
    frames = analysis.resolver.frames
    pairs = frames.target(scanned).join(
        frames.source(staged.select("__puredelta_s0", "__puredelta_s3")),
        one(analysis, "t.id = s.id").column,
        "inner",
    )
    value = one(analysis, "n + id_2")
    row = pairs.select(
        value.column,
        frames.target_column("v"),
        frames.source_column("__puredelta_s3"),
        "__puredelta_row",
    ).collect()
    assert [tuple(r) for r in row] == [(10, "old", 7, 42)]


def test_repeated_names_of_a_source_stay_apart(
    merged: tuple[Analysis, DataFrame, DataFrame],
) -> None:
    analysis, _, staged = merged
    frame = analysis.resolver.frames.source(staged)
    columns = analysis.resolver.frames.source_columns
    assert [c.name for c in columns] == ["id", "v", "v", "id_2"]
    values = frame.select(*[analysis.resolver.frames.source_column(c.staged) for c in columns])
    assert tuple(values.collect()[0]) == (1, "new", 5, 7)


def test_self_merge_tells_the_sides_apart(spark: SparkSession) -> None:
    """M-30: the source is derived from the target and has its attributes."""
    rows = spark.sql("select 1L as id, 10 as v")
    analysis = opened(spark, rows.alias("t"), rows.where("v > 0").alias("s"))
    frames = analysis.resolver.frames
    staged = rows.toDF(*[c.staged for c in frames.source_columns])
    pairs = frames.target(spark.sql("select 1L as id, 20 as v")).join(
        frames.source(staged), one(analysis, "t.id = s.id").column
    )
    values = pairs.select(one(analysis, "t.v").column, one(analysis, "s.v").column)
    assert tuple(values.collect()[0]) == (20, 10)
    bound = one(analysis, rows["v"])
    assert (bound.target_columns, bound.source_columns) == ({"v"}, set())


def test_messages_list_the_columns_of_a_scope(analysis: Analysis) -> None:
    shown = tuple(analysis.resolver.frames.displayed(PAIR))
    assert shown[:2] == ("t.id", "t.v")
    assert shown[-2:] == ("s.w", "s.arr")
    assert analysis.resolver.frames.target_qualifier == ("t",)


def test_a_random_value_is_the_same_in_every_job(analysis: Analysis, spark: SparkSession) -> None:
    value = one(analysis, "rand()", FROM_TARGET).column
    rows = [spark.range(3).select(value.alias("x")).collect() for _ in range(2)]
    assert rows[0] == rows[1]


def test_one_timestamp_for_every_plan(spark: SparkSession) -> None:
    """M-24: also where the clock is read inside of another function, or in a subquery."""
    target_rows = empty(spark, "ts timestamp, d date")
    analysis = opened(spark, target_rows.alias("t"), spark.range(1).alias("s"))
    text = "current_timestamp() - interval 1 day a, now() b, current_date() c, localtimestamp() d"

    def read() -> Any:
        rows = spark.range(1).selectExpr(*text.split(", "), "(select now()) as e")
        return analysis.timestamp.bind(rows).collect()

    first = read()
    assert read() == first
    (now,) = spark.sql("select now()").first() or ()
    assert now > first[0]["b"]  # the clock of the session went on meanwhile
    assert first[0]["b"] - first[0]["a"] == dt.timedelta(days=1)
    pruned = one(analysis, "t.d >= current_date()", FROM_TARGET).predicate
    assert isinstance(pruned, Compare)
    assert pruned.right == Const(first[0]["c"])
    plain = spark.range(1).selectExpr("id", "(select max(id) from range(3)) as e")
    assert analysis.timestamp.bind(plain) is plain


def test_frames_of_one_table_share_their_attributes(spark: SparkSession) -> None:
    schema = from_spark(spark.range(1).schema)
    identity = table_identity(spark, schema)
    first, second = (with_identity(spark.range(n, n + 2), identity) for n in (0, 5))
    assert [r.id for r in second.where(first["id"] > 5).collect()] == [6]
