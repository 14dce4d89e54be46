"""Words in any order: the parsers answer, or say where they gave up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.sql.parse.alter_text import parse_alter_head, parse_alter_rest
from puredelta.sql.parse.copy_text import may_copy, parse_copy
from puredelta.sql.parse.show_text import parse_show
from puredelta.sql.text.default_keyword import with_defaults
from puredelta.sql.text.lexer import keywords
from puredelta.sql.text.syntax_error import SqlSyntaxError

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


def alter(text: str) -> Any:
    head = parse_alter_head(text)
    return None if head is None else parse_alter_rest(head)


@pytest.mark.parametrize(
    ("begin", "parse"),
    [
        ("ALTER TABLE t", alter),
        ("COMMENT ON TABLE t IS", alter),
        ("CREATE TABLE t", parse_copy),
        ("REPLACE TABLE t SHALLOW CLONE", parse_copy),
        ("SHOW", parse_show),
        ("DESCRIBE", parse_show),
        ("INSERT INTO t", lambda text: with_defaults(text, ["1", "2"])),
        ("CREATE", may_copy),
    ],
)
@given(text=TEXTS)
def test_words_in_any_order(begin: str, parse: Callable[[str], Any], text: str) -> None:
    whole = f"{begin} {text}"
    try:
        parse(whole)
    except SqlSyntaxError as error:
        assert "\n== SQL ==\n" in str(error)  # noqa: PT017 - most texts are none
