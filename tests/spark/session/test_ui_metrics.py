"""A command in the SQL tab, read back from Spark's status store: its counts and what ran below."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import puredelta
from puredelta.spark.jvm.jobs import UiEntry
from puredelta.spark.session.ui_metrics import shown_in_ui

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_MAX = 10.0


def entry(spark: SparkSession, text: str) -> Any:
    """Wait for the store, which closes an execution in a thread of its own."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    until = time.monotonic() + SECONDS_MAX
    while True:
        found = [e for e in executions(spark) if e.description() == text]
        if found and found[0].completionTime().isDefined():
            return found[0]
        assert time.monotonic() < until, f"no finished entry {text}"
        time.sleep(0.05)


def executions(spark: SparkSession) -> list[Any]:
    listed = spark._jsparkSession.sharedState().statusStore().executionsList()
    return [listed.apply(n) for n in range(listed.size())]


def test_counts_and_queries_of_a_command(spark: SparkSession) -> None:
    with shown_in_ui(spark, "MERGE INTO events, counted") as shown:
        spark.range(3).selectExpr("sum(id)").collect()
        shown.report({"numTargetRowsUpdated": 1234567, "scanTimeMs": 1500, "numUnknown": 5})
    root = spark.sparkContext.getLocalProperty("spark.sql.execution.root.id")
    assert root is None
    found = entry(spark, "MERGE INTO events, counted")
    values = spark._jsparkSession.sharedState().statusStore().executionMetrics(found.executionId())
    shown_ids = [found.metrics().apply(n).accumulatorId() for n in range(found.metrics().size())]
    texts = {values.apply(known) for known in shown_ids if values.contains(known)}
    assert texts == {"1,234,567", "1.5 s"}
    below = [e for e in executions(spark) if e.rootExecutionId() == found.executionId()]
    assert len(below) > 1 or below[0].executionId() != found.executionId()


def test_a_command_that_fails_is_shown_as_failed(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="told"), shown_in_ui(spark, "DELETE FROM broken"):
        raise ValueError("told by the command")
    assert (
        entry(spark, "DELETE FROM broken").errorMessage().get() == "ValueError: told by the command"
    )


def test_a_broken_ui_breaks_no_command(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UiEntry, "_post", lambda *_, **__: 1 / 0)
    with shown_in_ui(spark, "MERGE INTO events, unseen") as shown:
        shown.report({"numTargetRowsUpdated": 1})
    assert spark.sparkContext.getLocalProperty("spark.sql.execution.root.id") is None


def test_a_merge_shows_what_it_skipped(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.sql("SELECT id, id % 3 AS p FROM range(6)").coalesce(1)
    puredelta.write(rows, path, partition_by="p")
    table = puredelta.DeltaTable.forPath(spark, path).alias("t")
    one = spark.sql("SELECT 1L AS id, 1L AS p").alias("s")
    merge = table.merge(one, "t.id = s.id AND t.p = s.p AND t.p = 1").whenMatchedDelete()
    merge.execute()
    found = entry(spark, f"MERGE INTO delta.`file:{path}`")
    values = spark._jsparkSession.sharedState().statusStore().executionMetrics(found.executionId())
    metrics = [found.metrics().apply(n) for n in range(found.metrics().size())]
    shown = {
        metric.name(): values.apply(metric.accumulatorId())
        for metric in metrics
        if values.contains(metric.accumulatorId())
    }
    assert shown["number of target files before skipping"] == "3"
    assert shown["number of target files after skipping"] == "1"
    assert shown["number of target partitions after skipping"] == "1"
    assert shown["number of target partitions from which files were removed"] == "1"
    assert "1 source rows were staged (" in found.physicalPlanDescription()
    history = puredelta.DeltaTable.forPath(spark, path).history(1).first()
    assert "numTargetFilesBeforeSkipping" not in history["operationMetrics"]
