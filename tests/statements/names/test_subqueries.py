"""Subqueries made to stand alone: the tables and common table expressions they name."""

from __future__ import annotations

import pytest

from puredelta.statements.names.query_tables import joined


@pytest.mark.parametrize(
    ("ctes", "query", "whole"),
    [
        ("", "SELECT 1", "SELECT 1"),
        ("", "WITH a AS (SELECT 1) TABLE a", "WITH a AS (SELECT 1) TABLE a"),
        ("WITH c AS (SELECT 2)", "SELECT * FROM c", "WITH c AS (SELECT 2) SELECT * FROM c"),
        (
            "WITH c AS (SELECT 2)",
            "/* b */ with b AS (TABLE c) TABLE b",
            "WITH c AS (SELECT 2), b AS (TABLE c) TABLE b",
        ),
    ],
)
def test_common_table_expressions_go_into_the_query(ctes: str, query: str, whole: str) -> None:
    assert joined(ctes, query) == whole
