"""Recorded statements end to end: rows, schema, counts, and the class of every refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.changes import read_changes
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable
from tests.merge_cases.recorded import RecordedCase, decoder, graded_cases

RESULT_COLUMNS = [
    "num_affected_rows",
    "num_updated_rows",
    "num_deleted_rows",
    "num_inserted_rows",
]


@pytest.fixture
def settings(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    case: RecordedCase = request.getfixturevalue("case")
    for key, value in case.settings.items():
        spark.conf.set(key, value)
    yield
    for key in case.settings:
        spark.conf.unset(key)


@pytest.mark.parametrize("case", list(graded_cases()))
@pytest.mark.usefixtures("settings")
def test_recorded_merge(case: RecordedCase, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "target")
    case.create(spark, path)
    if case.expected.get("error"):
        _is_refused(case, spark, path)
    else:
        _has_outcome(case, spark, path)


def _is_refused(case: RecordedCase, spark: SparkSession, path: str) -> None:
    before = decoder().multiset(_rows(spark, path).collect())
    with pytest.raises((DeltaError, PySparkException)) as caught:
        case.execute(spark, path)
    refusal = case.expected["delta_spark_error"]
    wanted = {refusal["class"], *refusal.get("cause_classes", ())}
    assert caught.value.getCondition() in wanted, str(caught.value)[:500]
    assert TableLog.open(path).latest_version() == 0
    assert decoder().multiset(_rows(spark, path).collect()) == before


def _has_outcome(case: RecordedCase, spark: SparkSession, path: str) -> None:
    expected = case.expected
    result = case.execute(spark, path)
    after = _rows(spark, path)
    if "rows" in expected:
        wanted = decoder().decode_rows(expected["rows"], after.schema)
        assert decoder().multiset(after.collect()) == decoder().multiset(wanted)
    if "cdc_rows" in expected:
        _has_changes(expected["cdc_rows"], spark, path)
    if "columns" in expected:
        assert after.columns == expected["columns"]
    if expected.get("schema"):
        assert _shape(json.loads(after.schema.json())) == _shape(expected["schema"])
    for query in expected.get("queries", ()):
        _answers(query, after, case)
    history = DeltaTable.forPath(spark, path).history(1).collect()[0]
    if expected.get("delta_spark_no_commit"):
        assert history.version == 0
        return
    counts = case.row_metrics()
    if history.version > 0:
        metrics = history.operationMetrics
        assert {k: v for k, v in metrics.items() if k in counts} == counts
    row = result.collect()[0]
    assert result.columns == RESULT_COLUMNS
    if "result_metrics_row" in expected:
        assert [list(row)] == expected["result_metrics_row"]
    if counts:
        changed = [counts[f"numTargetRows{w}"] for w in ("Updated", "Deleted", "Inserted")]
        assert [str(n) for n in row[1:]] == changed


def _has_changes(rows: list, spark: SparkSession, path: str) -> None:
    log = TableLog.open(path)
    if log.latest_version() == 0:
        assert rows == []
        return
    changes = read_changes(spark, log, starting_version=1)
    changes = changes.drop("_commit_version", "_commit_timestamp")
    wanted = decoder().decode_rows(rows, changes.schema)
    assert decoder().multiset(changes.collect()) == decoder().multiset(wanted)


def _answers(query: dict, after: DataFrame, case: RecordedCase) -> None:
    after.createOrReplaceTempView(case.record["target_alias"] or "target")
    answer = after.sparkSession.sql(query["sql"])
    wanted = decoder().decode_rows(query["rows"], answer.schema)
    assert decoder().multiset(answer.collect()) == decoder().multiset(wanted)


def _rows(spark: SparkSession, path: str) -> DataFrame:
    return DeltaTable.forPath(spark, path).toDF()


def _shape(schema: object) -> object:
    """Names and types of a schema's JSON; nullability and metadata are no part of a promise."""
    if isinstance(schema, dict):
        left_out = ("nullable", "containsNull", "valueContainsNull", "metadata")
        return {k: _shape(v) for k, v in schema.items() if k not in left_out}
    return [_shape(v) for v in schema] if isinstance(schema, list) else schema
