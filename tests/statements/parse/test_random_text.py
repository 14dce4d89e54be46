"""Words in any order: the parsers answer, or say where they gave up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.statements.parse.cursor import SqlSyntaxError
from puredelta.statements.parse.expression_text import with_defaults
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import Rejected

WORDS = st.sampled_from(
    sorted(
        keywords(
            "ADD COLUMN COLUMNS ALTER CHANGE RENAME TO DROP IF EXISTS NOT NULL SET UNSET "
            "TBLPROPERTIES COMMENT DEFAULT FIRST AFTER TYPE CONSTRAINT CHECK CLUSTER BY NONE "
            "FEATURE TRUNCATE HISTORY SHALLOW DEEP CLONE LIKE USING LOCATION VERSION TIMESTAMP AS "
            "OF FOR VALUES SELECT FROM INSERT INTO TABLE IN EXTENDED a t delta . , ( ) < > = ; 1 "
            "1.5 - 'text' \"double\" `quoted` ` ' struct<a:int> IDENTIFIER"
        )
    )
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@pytest.mark.parametrize(
    "begin",
    [
        "ALTER TABLE t",
        "COMMENT ON TABLE t IS",
        "CREATE TABLE t",
        "CREATE",
        "REPLACE TABLE t SHALLOW CLONE",
        "SHOW",
        "DESCRIBE",
        "RESTORE t",
        "VACUUM",
        "FROM t",
    ],
)
@given(text=TEXTS)
def test_words_in_any_order(begin: str, text: str) -> None:
    statement = parse(f"{begin} {text}")
    if isinstance(statement, Rejected) and isinstance(statement.error, SqlSyntaxError):
        assert "\n== SQL ==\n" in str(statement.error)


@given(text=TEXTS)
def test_defaults_between_words_in_any_order(text: str) -> None:
    try:
        with_defaults(f"INSERT INTO t {text}", ["1", "2"])
    except SqlSyntaxError as error:
        assert "\n== SQL ==\n" in str(error)  # noqa: PT017 - most texts are no INSERT
