"""MERGE, UPDATE and DELETE as text: targets, sources, clauses, errors (M-01 to M-06)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.commands.dml.spec import (
    Assignment,
    Delete,
    DeleteSpec,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
    UpdateSpec,
)
from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    DeleteStatement,
    MergeStatement,
    SourceQuery,
    SourceTable,
    Target,
    UpdateStatement,
)
from puredelta.statements.parse.table_name import ComputedName, TableName
from tests.statements.parse.reading import rejected
from tests.statements.statements import SPECS, merge_text, merge_words

PATH = TableName(("delta", "/table"))
SPACE = st.sampled_from(
    [" ", "\n", "\t\r\n ", " /* c */ ", " -- c\n", " /* a /* b */ */\n", "\u2003"]
)
KEYWORDS = keywords(
    "MERGE WITH SCHEMA EVOLUTION INTO USING ON WHEN NOT MATCHED BY SOURCE AND THEN DELETE UPDATE "
    "SET INSERT VALUES"
)


def merge(text: str) -> MergeStatement:
    statement = parse(text)
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


def test_all_kinds_of_clauses() -> None:
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
    statement = parse(f"DELETE FROM {name}")
    assert isinstance(statement, DeleteStatement)
    assert isinstance(statement.target.name, TableName)
    assert statement.target.name.path == path


# update, delete


def test_update() -> None:
    text = "WITH x AS (SELECT 1) UPDATE delta.`/table` AS t SET a = 1, t.b.c = s WHERE a IN (1, 2);"
    assert parse(text) == UpdateStatement(
        target=Target(name=PATH, alias="t"),
        spec=UpdateSpec(
            assignments=(Assignment("a", "1"), Assignment("t.b.c", "s")), condition="a IN (1, 2)"
        ),
        ctes="WITH x AS (SELECT 1)",
    )


def test_delete() -> None:
    with_alias = parse("delete from delta.`/table` t where t.k = 1 -- all\n")
    assert with_alias == DeleteStatement(
        target=Target(name=PATH, alias="t"), spec=DeleteSpec(condition="t.k = 1")
    )
    bare = parse("DELETE FROM delta.`/table`")
    assert bare == DeleteStatement(target=Target(name=PATH), spec=DeleteSpec())


@pytest.mark.parametrize(
    ("text", "near", "position"),
    [
        ("MERGE INTO delta.`/a` USING s ON", "end of input", 32),
        ("MERGE INTO delta.`/a` USING s ON a WHEN MATCHED AND THEN DELETE", "end of input", 63),
        ("MERGE INTO a USING s ON a WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", "')'", 71),
        ("UPDATE a SET", "end of input", 12),
        ("DELETE FROM a WHERE", "end of input", 19),
    ],
)
def test_syntax_errors(text: str, near: str, position: int) -> None:
    error = rejected(text).error
    assert error.details["error"] == near
    assert f"(line 1, pos {position})" in str(error)
