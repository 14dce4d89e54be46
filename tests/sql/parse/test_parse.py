"""Statement text into statements: heads, sources, clauses, errors (M-01 to M-06, C-01)."""

from __future__ import annotations

import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import ParseException

from puredelta.commands.merge.clauses import (
    Assignment,
    Delete,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
)
from puredelta.commands.update_delete.spec import DeleteSpec, UpdateSpec
from puredelta.errors import InvalidRequestError
from puredelta.sql.parse.parse import find_kind, parse_head, parse_statement
from puredelta.sql.parse.statement import (
    ConvertStatement,
    DeleteStatement,
    MergeStatement,
    SourceQuery,
    SourceTable,
    StatementKind,
    Target,
    UpdateStatement,
)
from puredelta.sql.text.lexer import keywords
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import ComputedName, TableName
from tests.sql.statements import SPECS, merge_text, merge_words

PATH = TableName(("delta", "/table"))
SPACE = st.sampled_from(
    [" ", "\n", "\t\r\n ", " /* c */ ", " -- c\n", " /* a /* b */ */\n", "\u2003"]
)
KEYWORDS = keywords(
    "MERGE WITH SCHEMA EVOLUTION INTO USING ON WHEN NOT MATCHED BY SOURCE AND THEN DELETE UPDATE "
    "SET INSERT VALUES"
)


def merge(text: str) -> MergeStatement:
    statement = parse_statement(text)
    assert isinstance(statement, MergeStatement)
    return statement


# the spec behind the text


@given(SPECS)
def test_a_spec_survives_its_text(spec: MergeSpec) -> None:
    assert merge(merge_text(spec)).spec == spec


@given(SPECS, st.data())
def test_space_comments_and_case_between_words_change_nothing(
    spec: MergeSpec, data: st.DataObject
) -> None:
    text = data.draw(SPACE)
    for word in merge_words(spec, target="`Delta`.`/table`", source="`updates` `s`"):
        cased = data.draw(st.sampled_from([word, word.lower(), word.title()]))
        text += (cased if word in KEYWORDS else word) + data.draw(SPACE)
    statement = merge(text + data.draw(st.sampled_from(["", ";", " ; ;"])))
    assert statement.spec == spec
    assert statement.target == Target(name=TableName(("Delta", "/table")))
    assert statement.source == SourceTable(name=TableName(("updates",)), alias="s")


def test_all_kinds_of_clauses() -> None:  # M-02, M-03, M-04, M-05, M-06
    statement = merge(
        """MERGE WITH SCHEMA EVOLUTION INTO delta.`/table` t USING src ON t.k = src.k
        WHEN MATCHED AND src.gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET t . v == src.v, `w x` = DEFAULT
        WHEN NOT MATCHED BY TARGET AND src.k > 0 THEN INSERT (k, v) VALUES (src.k, DEFAULT)
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.k < 0 THEN UPDATE SET v = NULL
        WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    )
    assert statement.spec == MergeSpec(
        on="t.k = src.k",
        clauses=(
            Matched(Delete(), "src.gone"),
            Matched(Update((Assignment("t.v", "src.v"), Assignment("`w x`", "DEFAULT")))),
            NotMatched(Insert((Assignment("k", "src.k"), Assignment("v", "DEFAULT"))), "src.k > 0"),
            NotMatched(Insert(Star.STAR)),
            NotMatchedBySource(Update((Assignment("v", "NULL"),)), "t.k < 0"),
            NotMatchedBySource(Delete()),
        ),
        evolve_schema=True,
    )


# target and source


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("db.src", SourceTable(name=TableName(("db", "src")))),
        ("src AS s", SourceTable(name=TableName(("src",)), alias="s")),
        ("delta.`/other` `s`", SourceTable(name=TableName(("delta", "/other")), alias="s")),
        ("matched source", SourceTable(name=TableName(("matched",)), alias="source")),
        ("IDENTIFIER(:n) s", SourceTable(name=ComputedName(":n"), alias="s")),
        ("( VALUES (1, ')') )", SourceQuery(query="VALUES (1, ')')")),
        ("(SELECT (1) AS k) s", SourceQuery(query="SELECT (1) AS k", alias="s")),
        (
            "(WITH a AS (TABLE b) TABLE a)AS s",
            SourceQuery(query="WITH a AS (TABLE b) TABLE a", alias="s"),
        ),
    ],
)
def test_sources(text: str, source: SourceTable | SourceQuery) -> None:
    statement = merge(f"MERGE INTO delta.`/table` USING {text} ON true WHEN MATCHED THEN DELETE")
    assert statement.source == source
    assert statement.target == Target(name=PATH)
    assert statement.spec.on == "true"


def test_common_table_expressions_stay_with_the_statement() -> None:
    ctes = "WITH a AS (SELECT 1 k), update (x) AS (VALUES (')'))"
    statement = merge(f"{ctes} MERGE INTO delta.`/table` USING a ON true WHEN MATCHED THEN DELETE")
    assert statement.ctes == ctes


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("delta.`/a/b`", "/a/b"),
        ("DELTA.`file:/a`", "file:/a"),
        ("`delta`.`s3a://b/k`", "s3a://b/k"),
        ("spark_catalog.delta.`/a`", "/a"),
        ("delta.events", None),
        ("delta.`a/b`", None),
        ("events", None),
        ("parquet.`/a`", None),
        ("`/a`", None),
        ("other.delta.`/a`", None),
    ],
)
def test_paths(name: str, path: str | None) -> None:
    head = parse_head(f"DELETE FROM {name}")
    assert head is not None
    assert isinstance(head.table, TableName)
    assert head.table.path == path


# update, delete, convert


def test_update() -> None:
    text = "WITH x AS (SELECT 1) UPDATE delta.`/table` AS t SET a = 1, t.b.c = s WHERE a IN (1, 2);"
    assert parse_statement(text) == UpdateStatement(
        target=Target(name=PATH, alias="t"),
        spec=UpdateSpec(
            assignments=(Assignment("a", "1"), Assignment("t.b.c", "s")), condition="a IN (1, 2)"
        ),
        ctes="WITH x AS (SELECT 1)",
    )


def test_delete() -> None:
    with_alias = parse_statement("delete from delta.`/table` t where t.k = 1 -- all\n")
    assert with_alias == DeleteStatement(
        target=Target(name=PATH, alias="t"), spec=DeleteSpec(condition="t.k = 1")
    )
    bare = parse_statement("DELETE FROM delta.`/table`")
    assert bare == DeleteStatement(target=Target(name=PATH), spec=DeleteSpec())


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CONVERT TO DELTA parquet.`/a`", ConvertStatement(identifier="`parquet`.`/a`")),
        (
            "convert to delta parquet.`/a` partitioned by (day DATE, `x y` struct<a:int>);",
            ConvertStatement(
                identifier="`parquet`.`/a`", partition_schema="day DATE, `x y` struct<a:int>"
            ),
        ),
        (
            "CONVERT TO DELTA db.t NO STATISTICS PARTITIONED BY (a int)",
            ConvertStatement(identifier="`db`.`t`", partition_schema="a int", collect_stats=False),
        ),
    ],
)
def test_convert(text: str, statement: ConvertStatement) -> None:
    assert parse_statement(text) == statement


# what is not ours, and what is wrong


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1",
        "SELECT 'MERGE INTO x'",
        "-- MERGE INTO x\nSELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "WITH a AS (SELECT 1",
        "EXPLAIN MERGE INTO delta.`/table` USING s ON true WHEN MATCHED THEN DELETE",
        "INSERT INTO delta.`/table` VALUES (1)",
        "`MERGE` INTO x",
        "BEGIN DELETE FROM x; END",
    ],
)
def test_other_statements_have_no_kind(text: str) -> None:
    assert find_kind(text) is None


@given(st.text(max_size=30), st.sampled_from(["", "MERGE ", "WITH a AS (", "CONVERT TO DELTA a "]))
def test_any_text_is_parsed_or_refused(text: str, before: str) -> None:
    find_kind(before + text)
    with contextlib.suppress(SqlSyntaxError):
        parse_statement(before + text)


def test_kinds_by_their_first_word() -> None:
    assert find_kind("/*+ x */ DELETE FROM x") is None
    assert find_kind("/* x */ DELETE FROM x") is StatementKind.DELETE
    assert find_kind("with a as (select 1) merge into x") is StatementKind.MERGE


def test_a_syntax_error_points_at_its_place() -> None:
    text = "CONVERT TO DELTA parquet.`/a`\n  STATISTICS"
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statement(text)
    error = caught.value
    assert isinstance(error, ParseException)
    assert isinstance(error, InvalidRequestError)
    assert error.getSqlState() == "42601"
    assert str(error) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'STATISTICS': expected the end of the "
        "statement. SQLSTATE: 42601 (line 2, pos 2)\n\n"
        "== SQL ==\nCONVERT TO DELTA parquet.`/a`\n  STATISTICS\n--^^^\n"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("text", "near", "position"),
    [
        ("CONVERT TO DELTA", "end of input", 16),
        ("CONVERT TO DELTA parquet.", "end of input", 25),
        ("CONVERT TO DELTA 'x'", "''x''", 17),
        ("CONVERT parquet.`/a`", "'parquet'", 8),
        ("CONVERT TO DELTA a PARTITIONED BY", "end of input", 33),
        ("CONVERT TO DELTA a PARTITIONED BY (b int", "end of input", 40),
        ("CONVERT TO DELTA a PARTITIONED BY ()", "end of input", 36),
        ("CONVERT TO DELTA a PARTITIONED BY (b int) NO STATISTICS", "'NO'", 42),
        ("MERGE INTO delta.`/a` USING s ON", "end of input", 32),
        ("MERGE INTO delta.`/a` USING s ON a WHEN MATCHED AND THEN DELETE", "end of input", 63),
        ("MERGE INTO a USING s ON a WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", "')'", 71),
        ("UPDATE a SET", "end of input", 12),
        ("DELETE FROM a WHERE", "end of input", 19),
    ],
)
def test_syntax_errors(text: str, near: str, position: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statement(text)
    assert caught.value.details["error"] == near
    assert caught.value.details["place"].position == position
