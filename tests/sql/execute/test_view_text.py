"""Which definitions of views are looked at, and what kind of view they make."""

from __future__ import annotations

import pytest

from puredelta.sql.execute.view_text import Lifetime, find_lifetime, may_define_view

QUERY = "AS SELECT * FROM delta.`/t`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"CREATE TEMP VIEW v {QUERY}", Lifetime.SESSION),
        (f"create or replace\n temporary view v (a COMMENT 'c') {QUERY}", Lifetime.SESSION),
        (f"/* why */ CREATE GLOBAL TEMPORARY VIEW IF NOT EXISTS v {QUERY}", Lifetime.GLOBAL),
        (f"CREATE VIEW v {QUERY}", Lifetime.PERMANENT),
        (f"CACHE LAZY TABLE v OPTIONS ('a' = 1) {QUERY}", Lifetime.SESSION),
        (f"CREATE TABLE v USING delta {QUERY} -- VIEW", None),
        (f"CACHE METADATA v {QUERY}", None),
    ],
)
def test_how_long_a_view_lasts(text: str, expected: Lifetime | None) -> None:
    assert find_lifetime(text) is expected


def test_what_names_no_state_of_a_table_is_for_spark() -> None:
    assert may_define_view(f"CREATE TEMP VIEW v {QUERY}")
    assert may_define_view("CACHE TABLE c AS SELECT * FROM t VERSION AS OF 1")
    assert not may_define_view("CREATE TEMP VIEW v AS SELECT * FROM t")
    assert not may_define_view(f"INSERT INTO t SELECT * FROM delta.`/t` -- {QUERY}")
