"""Options ``replaceUsing`` and ``replaceOn``: an overwrite replaces the rows that it matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.log.replay.table_log import TableLog

OLD = [(1, "a", 1), (2, "b", 1), (3, "c", 2), (None, "n", 2)]
NEW = [(1, "x", 9), (1, "y", 9), (4, "z", 9), (None, "m", 9)]
ON = "DELTA_INSERT_REPLACE_ON_"
COLUMNS = "id INT, v STRING, p INT"


@pytest.fixture
def path(active: SparkSession, tmp_path: Path) -> str:
    path = f"{tmp_path}/t"
    rows = active.createDataFrame(OLD, COLUMNS).coalesce(1)
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)
    return path


@pytest.fixture
def new(active: SparkSession) -> DataFrame:
    return active.createDataFrame(NEW, COLUMNS)


def overwrite(rows: DataFrame, path: str, **options: str) -> list[tuple[Any, ...]]:
    rows.write.format("delta").mode("overwrite").options(**options).save(path)
    return shown(rows.sparkSession, path)


def shown(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.read.format("delta").load(path).collect()), key=str)


def test_rows_of_equal_values_are_replaced_in_one_commit(
    active: SparkSession, path: str, new: DataFrame
) -> None:
    """NULL is equal to nothing: the old row with it stays."""
    expected = sorted([*OLD[1:], *NEW], key=str)
    assert overwrite(new, path, replaceUsing="id") == expected
    (commit,) = active.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()
    assert (commit.version, commit.operation) == (1, "WRITE")
    assert commit.operationParameters == {
        "mode": "Overwrite",
        "partitionBy": "[]",
        "replaceUsingCols": "(id)",
    }
    counts = {name: int(count) for name, count in commit.operationMetrics.items()}
    assert counts["numOutputRows"] - counts["numCopiedRows"] == 4
    assert counts["numDeletedRows"] == 1
    changes = active.read.format("delta").option("readChangeFeed", "true")
    feed = changes.option("startingVersion", 1).load(path)
    assert sorted((row.id, row._change_type) for row in feed.where("id = 1").collect()) == [
        (1, "delete"),
        (1, "insert"),
        (1, "insert"),
    ]


@pytest.mark.thorough
def test_all_columns_have_to_be_equal(path: str, new: DataFrame) -> None:
    assert overwrite(new, path, replaceUsing="ID, `p`") == sorted([*OLD, *NEW], key=str)
    same = new.withColumn("p", F.lit(1))
    left = overwrite(same, path, replaceUsing="id,p")
    assert (1, "a", 1) not in left
    assert (1, "x", 9) in left
    assert len(left) == len(OLD) - 1 + 2 * len(NEW)


def test_a_condition_on_both_sides(path: str, new: DataFrame) -> None:
    options = {"replaceOn": "t.id <=> s.id AND t.p < s.p", "targetAlias": "t"}
    expected = sorted([*OLD[1:3], *NEW], key=str)
    assert overwrite(new.alias("s"), path, **options) == expected
    left = overwrite(new.alias("s"), path, replaceOn="t.id > 3 AND s.v = 'x'", targetAlias="t")
    assert (4, "z", 9) in left
    assert len(left) == len(expected) - 1 + len(NEW)


@pytest.mark.thorough
def test_a_condition_with_a_comment_and_odd_aliases(path: str, new: DataFrame) -> None:
    options = {"replaceOn": "`a t`.id = `new s`.id -- the key", "targetAlias": "a t"}
    expected = sorted([*OLD[1:], *NEW], key=str)
    assert overwrite(new.alias("new s"), path, **options) == expected


@pytest.mark.thorough
def test_new_columns_are_added_by_merge_schema(path: str, new: DataFrame) -> None:
    rows = new.withColumn("more", F.lit(7))
    rows.write.format("delta").mode("overwrite").options(
        replaceUsing="id", mergeSchema="true"
    ).save(path)
    found = shown(rows.sparkSession, path)
    assert {row[3] for row in found} == {None, 7}
    assert len(found) == len(OLD) - 1 + len(NEW)


@pytest.mark.thorough
def test_columns_of_one_relation_keep_its_name(active: SparkSession, path: str) -> None:
    """delta-spark 4.4.0 does the same."""
    rows = active.sql("SELECT s.*, 9 AS p FROM VALUES (1, 'x'), (2, 'y') AS s(id, v)")
    left = overwrite(rows, path, replaceOn="t.id = s.id", targetAlias="t")
    assert left == sorted([(1, "x", 9), (2, "y", 9), *OLD[2:]], key=str)


@pytest.mark.thorough
def test_sides_of_a_join_keep_their_names(active: SparkSession, path: str) -> None:
    """delta-spark 4.4.0 does the same."""
    rows = active.sql(
        "SELECT a.id, v, b.p FROM VALUES (1, 'x'), (2, 'y') AS a(id, v)"
        " JOIN VALUES (1, 1), (2, 5) AS b(id, p) ON a.id = b.id"
    )
    options = {"replaceOn": "t.id = a.id AND t.p = b.p", "targetAlias": "t"}
    left = overwrite(rows, path, **options)
    assert left == sorted([(1, "x", 1), (2, "y", 5), *OLD[1:]], key=str)
    with pytest.raises(AnalysisException, match=r"UNRESOLVED_COLUMNS_IN_CONDITION.*`b`\.`id`"):
        overwrite(rows, path, replaceOn="t.id = b.id", targetAlias="t")
    more = rows.withColumn("more", F.lit(7))
    left = overwrite(more, path, **options, mergeSchema="true")
    assert left == sorted(
        [(1, "x", 1, 7), (2, "y", 5, 7), *[(*row, None) for row in OLD[1:]]], key=str
    )


@pytest.mark.thorough
@pytest.mark.parametrize("alias", ["t", "a t", "v"])
def test_the_alias_of_the_table_names_it_in_replace_where(
    active: SparkSession, path: str, new: DataFrame, alias: str
) -> None:
    where = f"`{alias}`.id <= 1 AND p < 20"
    ones = new.where("id = 1")
    options = {"replaceWhere": where, "targetAlias": alias}
    report = puredelta.dry_run_write(ones, path, mode="overwrite", options=options)
    assert (report.rows.inserted, report.rows.deleted) == (2, 1)
    left = overwrite(ones, path, **options)
    assert left == sorted([*OLD[1:], *NEW[:2]], key=str)
    with pytest.raises(Exception, match="DELTA_REPLACE_WHERE_MISMATCH"):
        overwrite(new.where("id = 4"), path, **options)
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        overwrite(ones, path, replaceWhere="other.id = 1", targetAlias=alias)


@pytest.mark.thorough
def test_the_alias_of_the_table_names_its_partitions(
    active: SparkSession, tmp_path: Path, new: DataFrame
) -> None:
    path = f"{tmp_path}/parts"
    rows = active.createDataFrame(OLD, COLUMNS)
    rows.write.format("delta").partitionBy("p").save(path)
    options = {"replaceWhere": "t.p = 1", "targetAlias": "t"}
    ones = new.where("id = 4").withColumn("p", F.lit(1))
    left = overwrite(ones, path, **options)
    assert left == sorted([(4, "z", 1), *OLD[2:]], key=str)
    active.conf.set("spark.databricks.delta.replaceWhere.dataColumns.enabled", "false")
    try:
        assert overwrite(ones, path, **options) == left
    finally:
        active.conf.unset("spark.databricks.delta.replaceWhere.dataColumns.enabled")


def test_a_new_column_is_no_column_of_the_table(path: str, new: DataFrame) -> None:
    rows = new.withColumn("more", F.lit(7)).alias("s")
    with pytest.raises(AnalysisException, match=r"UNRESOLVED_INSERT_REPLACE_USING_COLUMN.* table"):
        overwrite(rows, path, replaceUsing="more", mergeSchema="true")
    with pytest.raises(AnalysisException, match=r"UNRESOLVED_COLUMNS_IN_CONDITION.*`t`\.`more`"):
        overwrite(rows, path, replaceOn="t.more = 7", targetAlias="t", mergeSchema="true")


def test_a_row_that_breaks_a_rule_names_the_option(
    active: SparkSession, path: str, new: DataFrame
) -> None:
    active.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (p < 5)")
    for options in (
        {"replaceUsing": "id"},
        {"replaceOn": "t.id = s.id", "targetAlias": "t"},
    ):
        with pytest.raises(AnalysisException) as caught:
            overwrite(new.alias("s"), path, **options)
        assert caught.value.getCondition() == (
            "DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION"
        )
        assert caught.value.getSqlState() == "44000"
        text = str(caught.value)
        assert next(iter(options.values())) in text
        assert "CHECK constraint small (p < 5) violated" in text
    assert shown(active, path) == sorted(OLD, key=str)


@pytest.mark.thorough
def test_the_history_has_the_text_of_the_option(
    active: SparkSession, path: str, new: DataFrame
) -> None:
    overwrite(new, path, replaceUsing=" id,p")
    (commit,) = active.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()
    assert commit.operationParameters["replaceUsingCols"] == "( id,p)"


@pytest.mark.thorough
def test_append_ignores_it_and_a_new_table_takes_all_rows(
    active: SparkSession, path: str, new: DataFrame, tmp_path: Path
) -> None:
    new.write.format("delta").mode("append").option("replaceUsing", "nope").save(path)
    assert shown(active, path) == sorted([*OLD, *NEW], key=str)
    assert overwrite(new, f"{tmp_path}/other", replaceUsing="id") == sorted(NEW, key=str)


@pytest.mark.thorough
def test_other_ways_to_write(active: SparkSession, path: str, new: DataFrame) -> None:
    report = puredelta.dry_run_write(new, path, mode="overwrite", options={"replaceUsing": "id"})
    assert (report.rows.inserted, report.rows.deleted) == (4, 1)
    puredelta.write(new, path, mode="overwrite", options={"replaceUsing": "id"})
    assert shown(active, path) == sorted([*OLD[1:], *NEW], key=str)
    active.sql(f"CREATE TABLE replaced_rows USING delta LOCATION '{path}'")
    try:
        writer = new.where("v = 'z'").write.format("delta").mode("overwrite")
        writer.option("replaceUsing", "id").saveAsTable("replaced_rows")
        assert shown(active, path) == sorted([*OLD[1:], *NEW], key=str)
    finally:
        active.sql("DROP TABLE replaced_rows")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("options", "condition", "kind"),
    [
        ({"replaceUsing": "nope"}, "UNRESOLVED_INSERT_REPLACE_USING_COLUMN", AnalysisException),
        (
            {"replaceUsing": "id", "replaceWhere": "p = 1"},
            "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
            IllegalArgumentException,
        ),
        (
            {"replaceUsing": "id", "partitionOverwriteMode": "dynamic"},
            "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
            IllegalArgumentException,
        ),
        (
            {"replaceUsing": "id", "partitionOverwriteMode": "static"},
            "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
            IllegalArgumentException,
        ),
        (
            {"replaceUsing": "id", "replaceOn": "id = 1"},
            "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
            IllegalArgumentException,
        ),
        (
            {"replaceUsing": "id", "overwriteSchema": "true"},
            "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
            IllegalArgumentException,
        ),
        (
            {"replaceOn": "t.id = s.id", "targetAlias": "t", "dataChange": "false"},
            "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
            IllegalArgumentException,
        ),
        ({"replaceUsing": "id p"}, "DELTA_", PySparkException),
        ({"replaceUsing": "id.p"}, "DELTA_", PySparkException),
        ({"replaceUsing": "id,"}, "DELTA_", PySparkException),
        ({"replaceOn": "true) OR (true"}, "PARSE_SYNTAX_ERROR", PySparkException),
        ({"replaceUsing": ""}, "DELTA_", PySparkException),
        *(
            ({"replaceOn": text, "targetAlias": alias}, f"{condition}] ", AnalysisException)
            for alias, text, condition in (
                ("t", "t.nope = 1", f"{ON}UNRESOLVED_COLUMNS_IN_CONDITION"),
                ("t", "z.id = 1", f"{ON}UNRESOLVED_COLUMNS_IN_CONDITION"),
                ("t", "id = 1", f"{ON}AMBIGUOUS_COLUMNS_IN_CONDITION"),
                ("s", "s.id = 1", f"{ON}AMBIGUOUS_COLUMNS_IN_CONDITION"),
                ("t", "1", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
                ("t", "max(t.id) = 1", "INVALID_WHERE_CONDITION"),
            )
        ),
    ],
)
def test_what_is_refused_changes_nothing(
    path: str, new: DataFrame, options: dict[str, str], condition: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        overwrite(new.alias("s"), path, **options)
    assert condition in str(caught.value)
    assert TableLog.open(path).latest_version() == 0


def test_a_session_may_forbid_it(active: SparkSession, path: str, new: DataFrame) -> None:
    for option, text in (("replaceUsing", "id"), ("replaceOn", "id = 1")):
        key = f"spark.databricks.delta.{option}.dataframe.writer.enabled"
        active.conf.set(key, "false")
        try:
            with pytest.raises(PySparkException, match=f"{key} is false"):
                overwrite(new, path, **{option: text})
        finally:
            active.conf.unset(key)


def test_a_definition_takes_no_such_option(active: SparkSession, path: str, new: DataFrame) -> None:
    writer = new.writeTo(f"delta.`{path}`").using("delta").option("replaceUsing", "id")
    with pytest.raises(PySparkException, match="DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE"):
        writer.createOrReplace()


def test_actions_of_the_commit(path: str, new: DataFrame) -> None:
    """Other readers see removes and adds of the same commit."""
    overwrite(new, path, replaceUsing="id")
    commit = (Path(path) / "_delta_log" / f"{1:020}.json").read_text()
    kinds = {next(iter(json.loads(line))) for line in commit.splitlines()}
    assert {"add", "commitInfo"} <= kinds
    assert "remove" in kinds
