"""The clause ``CHANGES`` in statement text, and ``spark.read.changes``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import puredelta
from puredelta.errors import DeltaError, ErrorCode
from puredelta.statements.parse.changes_clause import (
    BoundText,
    ChangesClause,
    accept_changes_clause,
    may_have_changes_clause,
)
from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def parsed(text: str) -> tuple[ChangesClause | None, str]:
    cursor = Cursor(text)
    clause = accept_changes_clause(cursor)
    return clause, text[cursor.start :]


@pytest.mark.parametrize(
    ("text", "start", "end", "rest"),
    [
        ("CHANGES FROM VERSION 1", BoundText(version="1"), None, ""),
        (
            "changes from system_version '1' EXCLUSIVE to version 9 inclusive AS c",
            BoundText(version="1", is_exclusive=True),
            BoundText(version="9"),
            "AS c",
        ),
        (
            "CHANGES FROM TIMESTAMP '2026-01-01' TO SYSTEM_TIME now() c WHERE 1",
            BoundText(time="'2026-01-01'"),
            BoundText(time="now()"),
            "c WHERE 1",
        ),
        (
            "CHANGES FROM TIMESTAMP current_timestamp() - INTERVAL 1 DAY exclusive, u",
            BoundText(time="current_timestamp() - INTERVAL 1 DAY", is_exclusive=True),
            None,
            ", u",
        ),
        (
            "CHANGES FROM TIMESTAMP date'2026-01-01'::timestamp to timestamp (1 + 2)) x",
            BoundText(time="date'2026-01-01'::timestamp"),
            BoundText(time="(1 + 2)"),
            ") x",
        ),
    ],
)
def test_parsed(text: str, start: BoundText, end: BoundText | None, rest: str) -> None:
    assert parsed(text) == (ChangesClause(start=start, end=end, options={}), rest)
    assert may_have_changes_clause(f"SELECT * FROM t {text}")


def test_options() -> None:
    clause, rest = parsed("CHANGES FROM VERSION 1 WITH (computeUpdates = true, 'a' = 'b') c")
    assert clause is not None
    assert clause.options == {"computeUpdates": "true", "a": "b"}
    assert rest == "c"


@pytest.mark.parametrize("text", ["CHANGES", "changes FROM u", "x CHANGES FROM VERSION 1"])
def test_no_clause(text: str) -> None:
    assert parsed(text) == (None, text)


@pytest.mark.parametrize(
    "text",
    [
        "CHANGES FROM VERSION",
        "CHANGES FROM VERSION x",
        "CHANGES FROM TIMESTAMP",
        "CHANGES FROM VERSION 1 TO TIMESTAMP '2026-01-01'",
        "CHANGES FROM VERSION 1 TO 2",
        "CHANGES FROM TIMESTAMP now() +",
    ],
)
def test_incomplete(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parsed(text)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """Version 0 has the ids 0 to 2, version 1 updates 1 and deletes 2: there is no feed."""
    path = str(tmp_path / "t{x} '`")
    puredelta.write(spark.range(3), path)
    name = path.replace("`", "``")
    puredelta.sql(
        spark,
        f"MERGE INTO delta.`{name}` t USING (SELECT explode(array(1, 2)) AS i) s ON t.id = s.i "
        "WHEN MATCHED AND i = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 10",
    )
    return f"delta.`{name}`"


CHANGED = [(1, "delete"), (2, "delete"), (10, "insert")]


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, frame.select("id", "_change_type").collect()))


def test_in_queries(spark: SparkSession, table: str) -> None:
    def sql(text: str) -> list[tuple[object, ...]]:
        return rows(puredelta.sql(spark, text))

    clause = f"{table} CHANGES FROM VERSION 0 EXCLUSIVE TO VERSION 1"
    assert sql(f"SELECT c.* FROM {clause} AS c") == CHANGED
    assert sql(f"SELECT {table}.id, _change_type FROM {clause} WHERE id > 5") == CHANGED[2:]
    assert sql(f"WITH c AS (SELECT * FROM {clause}) SELECT c.* FROM c JOIN c d USING (id)")
    text = f"FROM {table} CHANGES FROM TIMESTAMP now() - INTERVAL 1 DAY WITH (a = 1) SELECT *"
    assert len(sql(text)) == 6
    bound = f"SELECT * FROM {table} CHANGES FROM TIMESTAMP :since TO TIMESTAMP now()"
    assert len(rows(puredelta.sql(spark, bound, {"since": "2020-01-01"}))) == 6
    source = f"SELECT id FROM {table} CHANGES FROM TIMESTAMP now() - INTERVAL 1 DAY"
    puredelta.sql(
        spark,
        f"MERGE INTO {table} t USING ({source} WHERE id = 2 LIMIT 1) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    )
    assert sql(f"SELECT * FROM {table} CHANGES FROM VERSION 2") == [(2, "insert")]
    keyed = "WITH (keyColumns = 'id', computeUpdates = true)"
    assert sql(f"SELECT * FROM {table} CHANGES FROM VERSION 1 TO VERSION 1 {keyed}") == CHANGED
    with pytest.raises(DeltaError) as raised:
        sql(f"SELECT * FROM {table} CHANGES FROM TIMESTAMP NULL")
    assert raised.value.code is ErrorCode.CDC_READ_NULL_RANGE_BOUNDARY
    with pytest.raises(DeltaError) as raised:
        sql(f"SELECT * FROM STREAM {table} CHANGES FROM VERSION 1")
    assert raised.value.code is ErrorCode.UNSUPPORTED_CHANGES


@pytest.fixture
def active(spark: SparkSession) -> Iterator[SparkSession]:
    puredelta.activate(spark)
    yield spark
    puredelta.deactivate()


@pytest.mark.thorough
def test_reader_and_names_of_the_catalog(active: SparkSession, table: str) -> None:
    active.sql(f"CREATE TABLE changed_rows USING delta AS SELECT * FROM {table}")
    try:
        active.sql("DELETE FROM changed_rows WHERE id = 10")
        text = "SELECT changed_rows.* FROM changed_rows CHANGES FROM VERSION 1"
        assert rows(active.sql(text)) == [(10, "delete")]
        reader = active.read.option("startingVersion", 1)
        if not hasattr(reader, "changes"):  # PySpark 4.0 and 4.1
            return
        assert rows(reader.changes("changed_rows")) == [(10, "delete")]
        assert rows(reader.option("endingVersion", 1).changes(table)) == CHANGED
        with pytest.raises(DeltaError) as raised:
            active.readStream.option("startingVersion", 1).changes(table)
        assert raised.value.code is ErrorCode.UNSUPPORTED_CHANGES
        with pytest.raises(DeltaError) as raised:
            reader.schema("id LONG").changes(table)
        assert raised.value.code is ErrorCode.UNSUPPORTED_SCHEMA_DURING_READ
    finally:
        active.sql("DROP TABLE changed_rows")
