"""SHOW and DESCRIBE as text, without a session."""

from __future__ import annotations

import pytest

from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    ShowColumns,
    ShowCreate,
    ShowProperties,
    Statement,
)
from puredelta.statements.parse.table_name import QuotedPath, TableName
from tests.statements.parse.reading import rejected

T = TableName(("t",))

STATEMENTS: dict[str, Statement] = {
    "SHOW TBLPROPERTIES t (delta.appendOnly)": ShowProperties(table=T, key="delta.appendOnly"),
    "show tblproperties t ('a.b');": ShowProperties(table=T, key="a.b"),
    "SHOW COLUMNS FROM t IN a.b": ShowColumns(table=T, database=("a", "b")),
    "SHOW CREATE TABLE t AS SERDE": ShowCreate(table=T),
    "DESC t": DescribeTable(table=T),
    "DESCRIBE TABLE EXTENDED t a.b": DescribeTable(table=T, extended=True, column=("a", "b")),
    "DESC FORMATTED t": DescribeTable(table=T, extended=True),
    "DESCRIBE extended": DescribeTable(table=TableName(("extended",))),
    "DESCRIBE TABLE table": DescribeTable(table=TableName(("table",))),
    "DESCRIBE database": DescribeTable(table=TableName(("database",))),
    "DESCRIBE history": DescribeTable(table=TableName(("history",))),
    "DESC detail.t;": DescribeTable(table=TableName(("detail", "t"))),
    "DESC HISTORY '/a' LIMIT 3": DescribeHistory(table=QuotedPath("/a"), limit=3),
    "DESCRIBE DETAIL delta.`/a`": DescribeDetail(table=TableName(("delta", "/a"))),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(text: str) -> None:
    assert parse(text) == STATEMENTS[text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DESCRIBE HISTORY t LIMIT 1.5", "a whole number"),
        ("DESCRIBE HISTORY t LIMIT -1", "a whole number"),
        ("DESCRIBE DETAIL t LIMIT 1", "the end of the statement"),
    ],
)
def test_what_was_expected(text: str, expected: str) -> None:
    assert rejected(text).error.details["expected"] == expected
