"""What plans, reports and Spark's UI say where Python workers lack a library."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta import DeltaTable, Report
from puredelta.spark.offload import workers
from puredelta.tables import DeltaMergeBuilder

LACKS = "workers: ModuleNotFoundError: No module named 'pyarrow'"


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError(
        "Job aborted due to stage failure\n"
        "    import pyarrow as pa\n"
        "ModuleNotFoundError: No module named 'pyarrow'\n"
        "\tat org.apache.spark.api.python.BasePythonRunner"
    )


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(workers, "_collected", _refuse)
        yield
    workers._REFUSALS.clear()
    workers._LACKING.clear()


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    location = str(tmp_path / "t")
    rows = spark.range(20).selectExpr("id", "id as v").coalesce(1)
    puredelta.write(rows, location, properties={"delta.enableDeletionVectors": "false"})
    return location


def merge_of(spark: SparkSession, path: str) -> DeltaMergeBuilder:
    source = spark.range(18, 22).selectExpr("id", "-id as v").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()


def chosen(report: Report, subject: str) -> str:
    (found,) = (c for c in report.choices if c.subject == subject)
    return f"{found.chosen}: {found.reason}"


@pytest.mark.usefixtures("refused")
def test_a_report_says_why_spark_took_over(spark: SparkSession, path: str) -> None:
    report: Any = merge_of(spark, path).execute().report
    assert chosen(report, "search").endswith(f"the source is broadcast: {LACKS}")
    assert chosen(report, "touched files").endswith(f"; by Spark: {LACKS}")
    assert chosen(report, "new rows").endswith(f"Spark computed the new rows: {LACKS}")
    rows = puredelta.read(spark, path).collect()
    assert {(r.id, r.v) for r in rows} == {(n, n if n < 18 else -n) for n in range(22)}


@pytest.mark.thorough
@pytest.mark.usefixtures("refused")
def test_later_plans_expect_it(spark: SparkSession, path: str) -> None:
    merge = merge_of(spark, path)
    assert "refuse" not in chosen(merge.explain(), "search")
    assert chosen(merge.dry_run(), "search").endswith(LACKS)
    assert f"Spark searches if they refuse as they did before ({LACKS})" in str(merge.explain())


def test_workers_that_can_are_not_suspected(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(workers, "_collected", _refuse)
        merge_of(spark, path).dry_run()
    monkeypatch.setattr(workers, "LACKING_SECONDS", -1.0)
    report: Any = merge_of(spark, path).execute().report
    assert "looked up" in chosen(report, "search")
    assert "refuse" not in chosen(merge_of(spark, path).explain(), "search")


@pytest.mark.thorough
@pytest.mark.usefixtures("refused")
def test_the_entry_in_the_ui_says_so(spark: SparkSession, path: str) -> None:
    merge_of(spark, path).execute()
    DeltaTable.forPath(spark, path).delete("v < 5")
    for text, done in (("MERGE INTO", "Spark joined"), ("DELETE FROM", "Spark copied rows")):
        assert f"{done}: {LACKS}" in _plan_of(spark, text, path)


def _plan_of(spark: SparkSession, text: str, path: str) -> str:
    """Return what Spark's status store knows of the plan of a command, once it is closed."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    until = time.monotonic() + 10
    while True:
        listed = spark._jsparkSession.sharedState().statusStore().executionsList()
        for one in (listed.apply(n) for n in range(listed.size())):
            name = str(one.description())
            if name.startswith(text) and path in name and one.completionTime().isDefined():
                return str(one.physicalPlanDescription())
        assert time.monotonic() < until
        time.sleep(0.05)
