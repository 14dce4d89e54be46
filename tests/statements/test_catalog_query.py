"""Texts with names of the catalog, as they are sent with rows in the place of the names."""

from __future__ import annotations

from typing import Any

import pytest

from puredelta.protocol.schema.sql_lexer import replaced, tokenize
from puredelta.spark.jvm.stored_text import may_call_function
from puredelta.statements.names import catalog_query
from puredelta.statements.names.views import References
from puredelta.statements.parse.relation_text import table_expression_names

TABLES = {("t",), ("db", "t"), ("odd name",)}


ASKED: list[str] = []


def asked(name: tuple[str, ...]) -> None:
    ASKED.append(".".join(name))


def sent(text: str, monkeypatch: pytest.MonkeyPatch, namespace: tuple[str, ...] = ()) -> str:
    """The text that is sent, with R for each new name."""

    def rows(self: Any, name: tuple[str, ...]) -> Any:
        known = name in TABLES or name[len(namespace) :] in TABLES
        return self.known.setdefault(name, object() if known else None)

    monkeypatch.setattr(catalog_query._Names, "rows", rows)
    monkeypatch.setattr(catalog_query, "known_relation", lambda *_: None)
    monkeypatch.setattr(catalog_query, "look_up", lambda *_: None)
    monkeypatch.setattr(catalog_query, "is_built_in", lambda *_: True)
    monkeypatch.setattr(catalog_query, "find_sql_function", lambda _, name, *__: asked(name))
    names = References()
    spark: Any = None
    parts = list(catalog_query._Names(spark, names, namespace).parts(text))
    named = replaced(text, parts)
    for name in names.rows:
        named = named.replace(name, "R")
    return named


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT * FROM t", "SELECT * FROM R AS `t`"),
        ("SELECT * FROM db.t x WHERE x.id = 1", "SELECT * FROM R x WHERE x.id = 1"),
        ("SELECT db.t.id FROM db.t", "SELECT `t`.`id` FROM R AS `t`"),
        ("SELECT * FROM `odd name`", "SELECT * FROM R AS `odd name`"),
        ("SELECT t FROM u WHERE t = 't'", "SELECT t FROM u WHERE t = 't'"),
        ("SELECT * FROM u, t JOIN db.t y USING (t, z)",
         "SELECT * FROM u, R AS `t` JOIN R y USING (t, z)"),
        ("SELECT * FROM t WHERE x IN (SELECT t FROM t)",
         "SELECT * FROM R AS `t` WHERE x IN (SELECT t FROM R AS `t`)"),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t, db.t",
         "WITH t AS (SELECT * FROM R AS `t`) SELECT * FROM t, R AS `db_t`"),
        ("TABLE t", "TABLE R"),
        ("FROM t |> WHERE id > 1", "FROM R AS `t` |> WHERE id > 1"),
        ("SELECT * FROM t(1)", "SELECT * FROM t(1)"),
        ("SELECT * FROM t VERSION AS OF 1", "SELECT * FROM t VERSION AS OF 1"),
        ("SELECT * FROM delta.`/t`", "SELECT * FROM delta.`/t`"),
        ("SELECT * FROM a.b.c.t", "SELECT * FROM a.b.c.t"),
    ],
)  # fmt: skip
def test_names(text: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent(text, monkeypatch) == wanted


def test_names_of_a_view_are_those_of_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sent("SELECT * FROM t JOIN u", monkeypatch, ("spark_catalog", "db"))
    assert found == "SELECT * FROM R AS `t` JOIN `spark_catalog`.`db`.`u` AS `u`"


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("WITH a AS (SELECT 1) SELECT * FROM a", [10]),
        ("WITH a AS (SELECT * FROM a), b AS (SELECT * FROM a) SELECT * FROM b", [16, 21]),
        ("WITH RECURSIVE a AS (SELECT * FROM a) SELECT 1", [8]),
        ("WITH a (x) AS (SELECT 1) SELECT * FROM A", [13]),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) JOIN a", [14]),
        ("SELECT a AS (b) FROM a", []),
    ],
)
def test_common_table_expressions(text: str, positions: list[int]) -> None:
    assert sorted(table_expression_names(tokenize(text))) == positions


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("SELECT f(1) + db.g(x) FROM t JOIN h(2) USING (id)", ["f", "db.g", "h"]),
        ("SELECT * FROM VALUES (1) AS v(id)", []),
        ("SELECT * FROM (SELECT id FROM t) v(n) WHERE n IN (1)", ["IN"]),
        ("WITH v(n) AS (SELECT 1) SELECT n FROM v", []),
    ],
)
def test_names_that_may_be_functions(
    text: str, functions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ASKED.clear()
    sent(text, monkeypatch)
    assert [name for name in ASKED if may_call_function(f"{name}(") or name == "IN"] == functions
