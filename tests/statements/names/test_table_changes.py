"""``table_changes`` in statement text, and the same feed from `puredelta.read_changes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import puredelta
from puredelta.errors import DeltaError, ErrorCode
from puredelta.statements.names.query_tables import may_query_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """Version 0 has the ids 0 and 1, version 1 adds 2; its name has every awkward sign."""
    path = str(tmp_path / "t{x} '`")
    feed = {"delta.enableChangeDataFeed": "true"}
    puredelta.write(spark.range(2), path, properties=feed)
    puredelta.write(spark.range(2, 3), path, mode="append")
    return path


def call(table: str, *arguments: str, function: str = "table_changes") -> str:
    name = ("delta.`" + table.replace("`", "``") + "`") if function == "table_changes" else table
    return f"{function}(" + ", ".join([f'"{name}"', *arguments]) + ")"


def test_the_feed_in_a_query(spark: SparkSession, table: str) -> None:
    every = [(0, "insert", 0), (1, "insert", 0), (2, "insert", 1)]
    for feed in (call(table, "0"), call(table, "0", function="TABLE_CHANGES_BY_PATH")):
        text = f"SELECT id, _change_type, _commit_version FROM {feed} AS c ORDER BY c.id"
        assert list(map(tuple, puredelta.sql(spark, text).collect())) == every
    changes = puredelta.read_changes(spark, table, starting_version=0)
    assert changes.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert sorted(tuple(row)[:3] for row in changes.collect()) == every


def test_arguments_are_computed(spark: SparkSession, table: str) -> None:
    def ids(feed: str, **values: object) -> list[int]:
        text = f"WITH c(i, a, b, d) AS (SELECT * FROM {feed}) SELECT i FROM c WHERE '{{}}' = '{{}}'"
        args = values or None
        return sorted(row.i for row in puredelta.sql(spark, text, args).collect())

    assert ids(call(table, "2 - 1")) == [2]
    assert ids(call(table, "0L", "0")) == [0, 1]
    assert ids(call(table, "'2000-01-01'")) == [0, 1, 2]
    assert ids(call(table, "timestamp'2000-01-01'", "1")) == [0, 1, 2]
    assert ids(call(table, "current_timestamp() - interval 1 day")) == [0, 1, 2]
    assert ids(call(table, ":first", ":last"), first=1, last=1) == [2]


def test_beside_fields_and_as_the_source_of_a_merge(spark: SparkSession, table: str) -> None:
    feed = call(table, "1")
    text = (
        f"SELECT c.id FROM {feed.replace('{', '{{').replace('}', '}}')} c JOIN {{some}} USING (id)"
    )
    assert puredelta.sql(spark, text, some=spark.range(9)).count() == 1
    target = table + "2"
    puredelta.write(spark.range(1), target)
    name = target.replace("`", "``")
    puredelta.sql(
        spark,
        f"MERGE INTO delta.`{name}` t USING (SELECT * FROM {feed}) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    )
    assert sorted(row.id for row in puredelta.read(spark, target).collect()) == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["'soon'"], ErrorCode.TIMESTAMP_INVALID),
        (["NULL"], ErrorCode.CDC_READ_NULL_RANGE_BOUNDARY),
        (["0", "CAST(NULL AS INT)"], ErrorCode.CDC_READ_NULL_RANGE_BOUNDARY),
        (["date'2000-01-01'"], ErrorCode.UNSUPPORTED_EXPRESSION),
        (["1S"], ErrorCode.UNSUPPORTED_EXPRESSION),
        (["9"], ErrorCode.CDC_START_VERSION_AFTER_LATEST),
        (["1", "0"], ErrorCode.INVALID_CDC_RANGE),
        ([], ErrorCode.WRONG_NUM_ARGS),
        (["0", "1", "2"], ErrorCode.WRONG_NUM_ARGS),
    ],
)
def test_errors(spark: SparkSession, table: str, arguments: list[str], code: ErrorCode) -> None:
    with pytest.raises(DeltaError) as caught:
        puredelta.sql(spark, f"SELECT * FROM {call(table, *arguments)}")
    assert caught.value.code is code


def test_what_is_no_table_of_ours_is_left_to_spark(spark: SparkSession, table: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        puredelta.sql(spark, "SELECT * FROM some.table_changes('events', 0)")
    assert caught.value.getCondition() == "UNRESOLVABLE_TABLE_VALUED_FUNCTION"
    with pytest.raises(DeltaError) as unknown:
        puredelta.sql(spark, "SELECT * FROM table_changes('no_such_table', 0)")
    assert unknown.value.code is ErrorCode.TABLE_OR_VIEW_NOT_FOUND
    text = f"CREATE TEMPORARY VIEW changes AS SELECT * FROM {call(table, '0')}"
    assert not may_query_tables(text)
    assert may_query_tables("/* new */ select * from table_changes ('t', 0)")
    with pytest.raises(DeltaError) as no_table:
        puredelta.sql(spark, f"SELECT * FROM {call(table + 'x', '0')}")
    assert no_table.value.code is ErrorCode.MISSING_DELTA_TABLE
