"""Explain, dry run, preview and the report of an execution, on one small table."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

import puredelta
from puredelta import DeltaTable, Report
from puredelta.errors import DeltaError, InvalidRequestError
from puredelta.tables import DeltaMergeBuilder
from tests.corpus.trial import files_below, require_alike

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    location = str(tmp_path / "t")
    rows = spark.range(40).selectExpr("id", "id % 10 as v", "cast(id div 10 as int) as p")
    puredelta.write(rows.coalesce(1), location, partition_by=["p"], properties=FEED)
    return location


def merge_of(spark: SparkSession, path: str) -> DeltaMergeBuilder:
    rows = [(3, 100), (12, 200), (99, 5), (98, 6)]
    source = spark.createDataFrame(rows, "id long, v long").selectExpr(
        "id", "v", "cast(id div 10 as int) as p"
    )
    return (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.id and t.p < 3")
        .whenMatchedDelete("s.v = 200")
        .whenNotMatchedInsertAll("s.id = 99")
        .whenMatchedUpdate(set={"v": "s.v + t.v"})
        .whenNotMatchedInsert("s.id > 5", {"id": "s.id", "v": "-1", "p": "0"})
        .whenNotMatchedBySourceUpdate("t.id = 7 and t.p = 0", {"v": "0"})
    )


def clause_rows(report: Report) -> list[int | None]:
    return [clause.rows for clause in report.clauses]


def test_a_merge_from_plan_to_report(
    spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, merge = files_below(path), merge_of(spark, path)
    plan = merge.explain()
    assert plan.state.value == "plan"
    assert plan.selected is not None
    assert [(s.files_skipped, s.files_left, s.by) for s in plan.selected.steps] == [
        (1, 3, "partition values")
    ]
    assert any("to be staged" in choice.chosen for choice in plan.choices)
    assert plan.rows is None
    assert any("explain('source')" in note for note in plan.notes)

    with_source = merge.explain("source")
    assert with_source.rows is not None
    assert with_source.rows.source == 4
    assert with_source.selected is not None
    assert with_source.selected.files_left == 2  # keys of the source, and NOT MATCHED BY SOURCE

    tried = merge.dry_run()
    assert clause_rows(tried) == [1, 1, 1, 1, 1]
    assert tried.foreign_commits == ()
    shown = merge.preview()
    assert files_below(path) == before

    with caplog.at_level(logging.INFO, "puredelta.statement"):
        result = merge.execute()
    done = result.report
    assert puredelta.last_report() is done
    require_alike(tried, done)
    assert done.committed_version == 1
    assert result.first().asDict() == {
        "num_affected_rows": 5,
        "num_updated_rows": 2,
        "num_deleted_rows": 1,
        "num_inserted_rows": 2,
    }
    (record,) = [r for r in caplog.records if r.name == "puredelta.statement"]
    assert "rows_inserted 2" in record.getMessage()
    assert record.puredelta_report["rows"]["deleted"] == 1  # type: ignore[attr-defined]

    feed = puredelta.read_changes(spark, path, starting_version=1)
    kept = ["id", "v", "p", "_change_type"]
    assert sorted(shown.select(kept).collect()) == sorted(feed.select(kept).collect())
    found = [(row["_clause"], row["_change_type"]) for row in shown.collect()]
    assert found == [
        (1, "delete"),
        (2, "insert"),
        (3, "update_preimage"),
        (3, "update_postimage"),
        (4, "insert"),
        (5, "update_preimage"),
        (5, "update_postimage"),
    ]
    later = merge.dry_run()
    assert [commit.version for commit in later.foreign_commits] == [1]
    assert [commit.error for commit in later.conflicts] == ["ConcurrentAppendException"]


@pytest.mark.thorough
def test_a_preview_shows_some_of_every_clause(spark: SparkSession, path: str) -> None:
    shown = merge_of(spark, path).preview(3).collect()
    assert [row["_clause"] for row in shown] == [1, 3, 3, 5, 5]
    for limit in (0, -1, True, "3"):
        with pytest.raises(InvalidRequestError, match="limit of a preview"):
            merge_of(spark, path).preview(limit)


def test_what_the_table_refuses_is_refused_in_a_dry_run_and_nothing_stays(
    spark: SparkSession, path: str
) -> None:
    puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (v >= 0)")
    before = files_below(path)
    with pytest.raises(DeltaError) as caught:
        merge_of(spark, path).dry_run()
    assert "CHECK constraint" in str(caught.value)
    assert clause_rows(merge_of(spark, path).dry_run(check_new_rows=False)) == [1, 1, 1, 1, 1]
    failing = spark.range(1).selectExpr(
        "id", "cast(raise_error('broken') as bigint) + id as v", "0 as p"
    )
    merge = DeltaTable.forPath(spark, path).alias("t").merge(failing.alias("s"), "t.id = s.id")
    for call in (merge.whenMatchedUpdateAll().dry_run, merge.whenMatchedUpdateAll().preview):
        with pytest.raises(Exception, match="broken"):
            call()
    assert files_below(path) == before


@pytest.mark.thorough
def test_update_delete_and_whole_partitions(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    update = table.prepareUpdate("id = 5", {"v": "v + 1"})
    assert [row.v for row in update.preview().collect()] == [5, 6]
    tried = update.dry_run()
    assert update.execute().report.rows == tried.rows
    whole = table.prepareDelete("p = 3")
    assert clause_rows(whole.explain()) == [10]
    assert whole.preview(4).count() == 4
    tried = whole.dry_run()
    require_alike(tried, whole.execute().report)
    assert tried.files is not None
    assert (tried.files.removed, tried.files.rewritten) == (1, 0)


@pytest.mark.thorough
def test_explain_in_sql_text(spark: SparkSession, path: str) -> None:
    text = f"DELETE FROM delta.`{path}` WHERE id = 3"
    rows = puredelta.sql(spark, f"EXPLAIN {text}").collect()
    assert [list(row.asDict()) for row in rows] == [["plan"]]
    assert rows[0].plan.startswith("DELETE of file:")
    full = puredelta.sql(spark, f"explain formatted {text}").first().plan
    assert "spark.databricks.delta.stats.skipping" in full
    merge = f"""MERGE INTO delta.`{path}` t USING (SELECT 3L AS id) s ON t.id = s.id
        WHEN MATCHED THEN DELETE"""
    assert (
        "Source, as Spark plans it" in puredelta.sql(spark, f"EXPLAIN EXTENDED {merge}").first()[0]
    )
    assert puredelta.dry_run(spark, merge).rows.deleted == 1
    assert puredelta.preview(spark, f"EXPLAIN {merge}").count() == 1
    assert puredelta.read(spark, path).count() == 40
    assert "Project" in puredelta.sql(spark, "EXPLAIN SELECT 1 + 1").first()[0]
    with pytest.raises(InvalidRequestError, match="can be explained or tried"):
        puredelta.dry_run(spark, "SELECT 1")
    with pytest.raises(ParseException, match="COLUMN_ALIASES_NOT_ALLOWED"):
        puredelta.dry_run(spark, merge.replace("s ON", "AS s(a) ON"))
    with pytest.raises(InvalidRequestError, match="no mode 'all'"):
        puredelta.explain(spark, text, mode="all")


@pytest.mark.thorough
def test_maintenance_is_tried_as_it_is_done(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.delete("id % 2 = 0")
    restore = table.prepareRestore(version=0)
    tried = restore.dry_run()
    done = restore.execute()
    assert done is not None
    assert (done.files, done.rows, done.committed_version) == (tried.files, tried.rows, 2)
    assert table.prepareRestore(version=2).dry_run().notes
    puredelta.write(puredelta.read(spark, path).limit(1), path, mode="append")
    optimize = table.optimize().dry_run()
    result = table.optimize().executeCompaction()
    assert optimize.files is not None
    assert result.report.files.rewritten == optimize.files.rewritten == 2
    assert result.report.files.added == 1
    vacuum = puredelta.dry_run(spark, f"VACUUM delta.`{path}`")
    assert vacuum.metrics["numFilesToDelete"] == 0
    convert = puredelta.explain(spark, f"CONVERT TO DELTA parquet.`{path}`")
    assert ("already delta", "true") in convert.details
