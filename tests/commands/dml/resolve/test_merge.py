"""Resolution of a whole statement (M-20 to M-50 without evolution); nothing runs.

Classes and texts are those of delta-spark 4.4.0 on Spark 4.2 through its builder.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.commands.dml.resolve.merge import resolve_merge
from puredelta.commands.dml.resolve.resolved_statement import ResolvedStatement, ResolvedUpdate
from puredelta.commands.dml.spec import (
    Assignment,
    Clause,
    Delete,
    Expression,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
    require_clauses,
)
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.names import NO_SOURCE_COLUMN
from puredelta.spark.session.session import SessionInfo

TARGET = "key int, value int, st struct<a:int,b:struct<c:int,d:int>>, name string"
SOURCE = "key int, value int, st struct<b:struct<d:int,c:int>,a:int>, name string, other int"
STAR = Star.STAR


def config_of(rows: DataFrame) -> TableConfig:
    return TableConfig.of(
        Protocol(min_reader_version=1, min_writer_version=2),
        Metadata(id="0", schema_string=rows.schema.json(), partition_columns=()),
    )


@pytest.fixture
def merge(spark: SparkSession) -> Any:
    """Resolve clauses over the two relations above, under the aliases t and s."""

    def run(*clauses: Clause, on: Expression = "t.key = s.key", **given: Any) -> ResolvedStatement:
        known = spark.createDataFrame([], given.get("target", TARGET))
        source = given.get("source", SOURCE)
        if isinstance(source, str):
            source = spark.createDataFrame([], source)
        t, s = given.get("aliases", ("t", "s"))
        spec = MergeSpec(on=on, clauses=clauses, evolve_schema=given.get("evolve", False))
        require_clauses(spec)  # as stage 1 does
        return resolve_merge(
            spec,
            target_rows=known.alias(t) if t else known,
            source_rows=source.alias(s) if s else source,
            config=config_of(known),
            session=SessionInfo.of(spark),
        )

    return run


def sets(**values: str | Column) -> tuple[Assignment, ...]:
    return tuple(Assignment(column, value) for column, value in values.items())


def update(condition: Expression | None = None, **values: str | Column) -> Matched:
    return Matched(Update(sets(**values)), condition)


def update_path(column: str, value: str) -> Matched:
    return Matched(Update((Assignment(column, value),)))


def insert(condition: Expression | None = None, **values: str | Column) -> NotMatched:
    return NotMatched(Insert(sets(**values)), condition)


def by_source(condition: Expression | None = None, **values: str | Column) -> NotMatchedBySource:
    return NotMatchedBySource(Update(sets(**values)), condition)


T_COLUMNS = "t.key, t.value, t.st, t.name"
S_COLUMNS = "s.key, s.value, s.st, s.name, s.other"


@pytest.mark.parametrize(
    ("clause", "place", "name", "columns"),
    [
        (update("nope > 1", value="1"), "UPDATE condition", "nope", f"{T_COLUMNS}, {S_COLUMNS}"),
        (update(value="s.nope"), "UPDATE clause", "s.nope", f"{T_COLUMNS}, {S_COLUMNS}"),
        (update(nope="1"), "UPDATE clause", "nope", T_COLUMNS),
        (update_path("s.value", "1"), "UPDATE clause", "s.value", T_COLUMNS),
        (Matched(Delete(), "nope"), "DELETE condition", "nope", f"{T_COLUMNS}, {S_COLUMNS}"),
        (insert("t.key > 1", key="1"), "INSERT condition", "t.key", S_COLUMNS),
        (insert(key="t.key"), "INSERT clause", "t.key", S_COLUMNS),
        (insert(nope="1"), "INSERT clause", "nope", T_COLUMNS),
        (by_source("s.key > 1", value="1"), "UPDATE condition", "s.key", T_COLUMNS),
        (by_source(value="other"), "UPDATE clause", "other", T_COLUMNS),
        (NotMatchedBySource(Delete(), "other = 1"), "DELETE condition", "other", T_COLUMNS),
    ],
)
def test_names_that_do_not_resolve(
    merge: Any, *, clause: Clause, place: str, name: str, columns: str
) -> None:
    """M-20, M-21: each clause names its place and the columns it could have used."""
    with pytest.raises(InvalidRequestError) as caught:
        merge(clause)
    assert caught.value.code is ErrorCode.MERGE_UNRESOLVED_EXPRESSION
    assert caught.value.message == f"Cannot resolve {name} in {place} given columns {columns}."


def test_names_of_the_search_condition(merge: Any) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        merge(Matched(Delete()), on="t.key = nope")
    assert caught.value.message == (
        f"Cannot resolve nope in search condition given columns {T_COLUMNS}, {S_COLUMNS}."
    )


NOT_CONDITIONS = [
    ("rand() > 0.5", ErrorCode.NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED),
    ("max(1) > 0", ErrorCode.AGGREGATION_NOT_SUPPORTED),
    ("sum(1) over () > 0", ErrorCode.AGGREGATION_NOT_SUPPORTED),
    ("1 in (select id from range(3))", ErrorCode.UNSUPPORTED_SUBQUERY),
    ("exists(select 1)", ErrorCode.UNSUPPORTED_SUBQUERY),
]


@pytest.mark.parametrize(("text", "code"), NOT_CONDITIONS)
@pytest.mark.parametrize(
    ("place", "clause"),
    [
        ("UPDATE condition", lambda c: update(c, value="1")),
        ("DELETE condition", lambda c: Matched(Delete(), c)),
        ("INSERT condition", lambda c: insert(c, key="1")),
        ("UPDATE condition", lambda c: by_source(c, value="1")),
        ("DELETE condition", lambda c: NotMatchedBySource(Delete(), c)),
        ("search condition", None),
    ],
)
def test_conditions_have_one_answer_per_row(
    merge: Any, *, place: str, clause: Any, text: str, code: ErrorCode
) -> None:
    """M-22."""
    statement = {"on": text} if clause is None else {}
    with pytest.raises(InvalidRequestError) as caught:
        merge(Matched(Delete()) if clause is None else clause(text), **statement)
    assert caught.value.code is code
    assert f"in the {place} of MERGE operation (condition = " in caught.value.message


@pytest.mark.parametrize("text", ["1", "'true'", "null", "t.st"])
def test_conditions_are_boolean(merge: Any, text: str) -> None:
    with pytest.raises(InvalidRequestError) as search:
        merge(Matched(Delete()), on=text)
    assert search.value.code is ErrorCode.JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE
    with pytest.raises(InvalidRequestError) as clause:
        merge(Matched(Delete(), text))
    assert clause.value.code is ErrorCode.FILTER_NOT_BOOLEAN


def test_values_may_be_random_but_not_aggregates(merge: Any) -> None:
    """M-23."""
    merge(update(value="cast(rand() * 10 as int)"), insert(key="cast(rand() as int)"))
    for text in ("max(s.value)", "sum(s.value) over ()"):
        with pytest.raises(InvalidRequestError) as caught:
            merge(update(value=text))
        assert caught.value.code is ErrorCode.UNSUPPORTED_EXPR_FOR_OPERATOR


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        (
            (Matched(Delete()), update(value="nope")),
            ErrorCode.NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
        ),
        ((update("rand() > 0.5", value="nope"),), ErrorCode.MERGE_UNRESOLVED_EXPRESSION),
        (
            (update("rand() > 0.5", st="5"),),
            ErrorCode.NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
        ),
        (
            (Matched(Update((Assignment("st", "5"), Assignment("st.a", "1")))),),
            ErrorCode.CONFLICT_SET_COLUMN,
        ),
        (
            (Matched(Delete(), "max(1) > 0"), insert(nope="1")),
            ErrorCode.MERGE_UNRESOLVED_EXPRESSION,
        ),
    ],
)
def test_order_of_the_checks(merge: Any, clauses: tuple[Clause, ...], code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        merge(*clauses)
    assert caught.value.code is code


def test_types_that_do_not_cast(merge: Any) -> None:
    for clause in (update(value="array(1)"), insert(key="array(1)"), by_source(value="array(1)")):
        with pytest.raises(AnalysisException) as caught:
            merge(clause)
        assert caught.value.getCondition() == "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"


def test_structs_must_have_the_same_fields(merge: Any) -> None:
    """M-42, M-43, also for a star and inside a nested assignment."""
    for clause in (update(st="named_struct('a', 1)"), update_path("st.b", "named_struct('c', 1)")):
        with pytest.raises(InvalidRequestError) as caught:
            merge(clause)
        assert caught.value.code is ErrorCode.UPDATE_SCHEMA_MISMATCH_EXPRESSION
    with pytest.raises(InvalidRequestError) as star:
        merge(
            Matched(Update(STAR)),
            target="st struct<a:int>",
            source="st struct<a:int,x:int>",
            on="true",
        )
    assert star.value.message == (
        "Cannot cast struct<a:int,x:int> to struct<a:int>. All nested columns must match."
    )


@pytest.mark.smoke
def test_what_stages_need_to_know(merge: Any) -> None:
    resolved = merge(
        update("s.value > 3 and t.name = 'x'", value="t.value + s.other", name="s.name"),
        Matched(Delete()),
        insert("s.key > 1", key="s.key"),
        by_source("value = 7", name="upper(name)"),
    )
    assert resolved.target_columns == {"key", "name", "value"}
    assert [c.name for c in resolved.source_columns] == ["key", "value", "name", "other"]
    assert resolved.on.target_columns == {"key"}
    (pair,) = resolved.on.parts.pairs
    assert (pair.target.path, pair.source.path) == (("key",), ("__puredelta_s0",))
    first = resolved.matched[0]
    assert isinstance(first.action, ResolvedUpdate)
    assert list(first.action.values) == ["key", "value", "st", "name"]
    assert first.action.unchanged == {"key", "st"}
    assert first.action.target_columns == {"value"}
    assert first.action.source_columns == {"__puredelta_s3", "__puredelta_s4"}
    assert first.action.reads_target
    assert first.condition is not None
    assert len(first.condition.parts.source_only) == len(first.condition.parts.target_only) == 1
    assert first.condition.sql == "s.value > 3 and t.name = 'x'"
    assert resolved.not_matched[0].action.source_columns == {"__puredelta_s0"}
    kept = resolved.not_matched_by_source[0].action
    assert isinstance(kept, ResolvedUpdate)
    assert kept.target_columns == {"name"}
    assert (resolved.is_insert_only, resolved.is_single_unconditional_delete) == (False, False)
    assert not resolved.schema_evolves


def test_a_full_row_from_the_source_reads_nothing_of_the_target(merge: Any) -> None:
    action = merge(Matched(Update(STAR))).matched[0].action
    assert isinstance(action, ResolvedUpdate)
    assert not action.reads_target
    assert action.unchanged == frozenset()


def test_kinds_of_statements(merge: Any) -> None:
    assert merge(insert(key="1")).is_insert_only
    assert merge(Matched(Delete()), insert(key="1")).is_single_unconditional_delete
    assert not merge(Matched(Delete(), "s.key = 1")).is_single_unconditional_delete


def test_text_of_conditions_is_plain_sql(merge: Any) -> None:
    """W-16: the user's own text; of a Column what Spark writes, without expression ids."""
    resolved = merge(
        Matched(Delete(), (F.col("s.value") > 3) & F.col("t.name").isNull()), on="  t.key = s.key\n"
    )
    assert resolved.on.sql == "t.key = s.key"
    condition = resolved.matched[0].condition
    assert condition is not None
    assert condition.sql == "((s.value > 3) AND (t.name IS NULL))"


def test_conditions_that_are_not_understood_still_name_their_columns(merge: Any) -> None:
    resolved = merge(Matched(Delete()), on="hash(t.key) = hash(s.key) or t.name like s.name")
    assert len(resolved.on.parts.other) == 1
    assert resolved.target_columns == {"key", "name"}
    assert [c.name for c in resolved.source_columns] == ["key", "name"]


@pytest.mark.parametrize("clause", [Matched(Update(STAR)), NotMatched(Insert(STAR))])
def test_stars_go_by_name(merge: Any, spark: SparkSession, clause: Clause) -> None:
    """M-03, M-40, M-41: case ignored, extra columns ignored, order free."""
    source = "NAME string, extra int, St struct<a:int,b:struct<c:int,d:int>>, vALUE int, key int"
    merge(clause, source=source)
    with pytest.raises(InvalidRequestError) as missing:
        merge(clause, source="key int, value int, name string")
    place = "UPDATE clause" if isinstance(clause, Matched) else "INSERT clause"
    assert missing.value.message == (
        f"Cannot resolve st in {place} given columns s.key, s.value, s.name."
    )
    twice = spark.createDataFrame([], SOURCE).select("*", F.lit(1).alias("VALUE"))
    with pytest.raises(InvalidRequestError) as ambiguous:
        merge(clause, source=twice)
    assert ambiguous.value.code is ErrorCode.AMBIGUOUS_REFERENCE


def test_case_sensitive_sessions(merge: Any, conf: Any) -> None:
    """M-29."""
    conf("spark.sql.caseSensitive", "true")
    for clause in (update(VALUE="1"), insert(KEY="1"), Matched(Update(STAR))):
        with pytest.raises(InvalidRequestError) as caught:
            merge(clause, source=SOURCE.replace("key", "KEY"), on="t.key = s.KEY")
        assert caught.value.code is ErrorCode.MERGE_UNRESOLVED_EXPRESSION


def test_without_aliases(merge: Any) -> None:
    with pytest.raises(AnalysisException) as caught:
        merge(Matched(Delete()), on="key = other", aliases=(None, None))
    assert caught.value.getCondition() == "AMBIGUOUS_REFERENCE"
    resolved = merge(insert(key="other"), on="other = 5", aliases=(None, None))
    assert resolved.on.target_columns == frozenset()


def evaluated(frame: DataFrame, values: Any) -> list[tuple]:
    return [tuple(r) for r in frame.select(*[v.alias(n) for n, v in values.items()]).collect()]


@pytest.fixture
def one_row(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "select 1 as key, 10 as value, 'x' as name, "
        "named_struct('a', 1, 'b', named_struct('c', 2, 'd', 3)) as st"
    )


@pytest.mark.smoke
def test_values_of_an_update(merge: Any, one_row: DataFrame, spark: SparkSession) -> None:
    """M-26: other fields are preserved, several fields of one column are set at once."""
    resolved = merge(
        Matched(
            Update(
                (
                    Assignment("t.st.B.c", "s.other + 1L"),
                    Assignment("st.a", "t.st.b.d"),
                    Assignment("`name`", "null"),
                )
            )
        )
    )
    source = spark.sql("select 1 as key, 5 as other").toDF("__puredelta_s0", "__puredelta_s4")
    frames = resolved.frames
    pairs = frames.target(one_row).join(frames.source(source), resolved.on.column)
    assert evaluated(pairs, resolved.matched[0].action.values) == [(1, 10, (3, (6, 3)), None)]


def test_a_null_struct_comes_to_life(merge: Any, one_row: DataFrame) -> None:
    resolved = merge(NotMatchedBySource(Update((Assignment("st.b.c", "7"),))))
    rows = one_row.withColumn("st", F.lit(None).cast(one_row.schema["st"].dataType))
    values = resolved.not_matched_by_source[0].action.values
    assert evaluated(resolved.frames.target(rows), values) == [(1, 10, (None, (7, None)), "x")]


def test_values_of_an_insert(merge: Any, spark: SparkSession) -> None:
    """M-28: what is left out is NULL; M-29: of two spellings the first one counts."""
    resolved = merge(insert("s.key = 1", key="s.key", value="1", VALUE="s.other * 2"), insert())
    source = spark.sql("select 1 as key, 5 as other").toDF("__puredelta_s0", "__puredelta_s4")
    frame = resolved.frames.source(source)
    assert evaluated(frame, resolved.not_matched[0].action.values) == [(1, 1, None, None)]
    assert evaluated(frame, resolved.not_matched[1].action.values) == [(None,) * 4]


def test_staging_takes_what_is_referenced(merge: Any, spark: SparkSession) -> None:
    source = spark.createDataFrame([], SOURCE)
    resolved = merge(update("s.other > 1", value="s.value"))
    staged = resolved.frames.staging(source)
    assert staged.columns == ["__puredelta_s0", "__puredelta_s1", "__puredelta_s4"]
    nothing = merge(Matched(Delete()), on="t.key = 1").frames.staging(source)
    assert nothing.columns == [NO_SOURCE_COLUMN]


def test_self_merge(merge: Any, spark: SparkSession) -> None:
    """M-30."""
    rows = spark.createDataFrame([], TARGET)
    resolved = resolve_merge(
        MergeSpec(on="t.key = s.key", clauses=(Matched(Update(STAR), "s.value > t.value"),)),
        target_rows=rows.alias("t"),
        source_rows=rows.where("value > 1").alias("s"),
        config=config_of(rows),
        session=SessionInfo.of(spark),
    )
    (pair,) = resolved.on.parts.pairs
    assert pair.source.path == ("__puredelta_s0",)
    action = resolved.matched[0].action
    assert isinstance(action, ResolvedUpdate)
    assert not action.reads_target


def test_foreign_columns(merge: Any, spark: SparkSession) -> None:
    other = spark.range(1)
    for clause in (update(value=other["id"]), Matched(Delete(), other["id"] > 1)):
        with pytest.raises(InvalidRequestError) as caught:
            merge(clause)
        assert caught.value.code is ErrorCode.MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT
        assert "Resolved attribute(s) id missing from t.key" in caught.value.message


def test_targets_without_columns(merge: Any) -> None:
    """M-33."""
    with pytest.raises(InvalidRequestError) as caught:
        merge(insert(key="1"), target="struct<>", on="true")
    assert caught.value.code is ErrorCode.MERGE_INTO_EMPTY_SCHEMA_TARGET


def test_reserved_names_in_the_source(merge: Any) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        merge(Matched(Delete()), source="key int, __PureDelta_row int")
    assert caught.value.code is ErrorCode.RESERVED_COLUMN_NAME


def test_new_columns_are_looked_up_in_the_source(merge: Any) -> None:
    """M-46: also qualified, and by fields of structs."""
    source = "key int, st struct<a:int,z:int>, other int"
    found = merge(
        Matched(Update((Assignment("s.other", "s.key"), Assignment("ST.Z", "1")))),
        source=source,
        evolve=True,
    )
    assert found.schema_evolves
    assert found.schema.names == ("key", "value", "st", "name", "other")
    assert list(found.matched[0].action.values) == list(found.schema.names)
    assert found.matched[0].action.target_columns == {"st"}
    assert found.matched[0].action.unchanged == {"key", "value", "name"}


@pytest.mark.parametrize(
    ("clause", "columns"),
    [
        (update(nope="1"), S_COLUMNS),
        (insert(nope="1"), S_COLUMNS),
        (by_source(other="1"), T_COLUMNS),
    ],
)
def test_names_that_neither_side_has(merge: Any, *, clause: Clause, columns: str) -> None:
    """M-46, M-47: NOT MATCHED BY SOURCE never introduces a column."""
    with pytest.raises(InvalidRequestError) as caught:
        merge(clause, evolve=True)
    assert caught.value.code is ErrorCode.MERGE_UNRESOLVED_EXPRESSION
    assert caught.value.details["cols"] == columns


def test_a_star_that_evolves_takes_the_columns_of_the_source(merge: Any, conf: Any) -> None:
    """M-40, M-41; the session setting does the same for every MERGE."""
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    found = merge(
        Matched(Update(STAR)),
        NotMatched(Insert(STAR)),
        source="KEY int, st struct<a:int>, other int",
    )
    assert found.schema.names == ("key", "value", "st", "name", "other")
    assert found.matched[0].action.unchanged == {"value", "name"}
    assert found.matched[0].action.target_columns == {"st"}  # st.b keeps its value
    assert len(found.source_columns) == 3


def test_deletes_never_evolve(merge: Any) -> None:
    """M-48."""
    assert not merge(Matched(Delete()), evolve=True).schema_evolves
