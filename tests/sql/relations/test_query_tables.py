"""Which texts may name a Delta table that Spark cannot find."""

from __future__ import annotations

import pytest

from puredelta.sql.relations.query_tables import may_need_names, may_query_tables


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM delta.`/t`",
        "/* new */ (select * from `delta` . `/t`)",
        "EXPLAIN EXTENDED SELECT * FROM t VERSION AS OF 1",
        "INSERT INTO t SELECT * FROM table_changes('t', 0)",
        "CREATE TABLE t USING parquet AS SELECT * FROM delta.`/t`",
    ],
)
def test_queries(text: str) -> None:
    assert may_query_tables(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "CREATE TEMP VIEW v AS SELECT * FROM delta.`/t`",
        "CREATE VIEW v AS SELECT * FROM table_changes('t', 0)",
        "DELETE FROM delta.`/t`",
        "-- delta.`/t`",
    ],
)
def test_other_texts(text: str) -> None:
    assert not may_query_tables(text)


def test_versions_in_the_definition_of_a_view() -> None:
    assert may_need_names("CREATE TEMP VIEW v AS SELECT * FROM delta.`/t`")
    assert may_need_names("CACHE TABLE c AS SELECT * FROM t VERSION AS OF 1")
    assert not may_need_names("CREATE TEMP VIEW v AS SELECT * FROM t")
