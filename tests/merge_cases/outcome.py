"""The comparison of a recorded statement: rows, schema, counts, and the class of every refusal."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from puredelta.errors import DeltaError
from tests.merge_cases.recorded import RecordedCase, decoder
from tests.merge_cases.target import Target

RESULT_COLUMNS = [
    "num_affected_rows",
    "num_updated_rows",
    "num_deleted_rows",
    "num_inserted_rows",
]


def require_outcome(case: RecordedCase, target: Target) -> None:
    """Run a statement on a new table, and compare what came out with what was recorded."""
    case.create(target)
    if case.expected.get("error"):
        _is_refused(case, target)
    else:
        _has_outcome(case, target)


def _is_refused(case: RecordedCase, target: Target) -> None:
    before = decoder().multiset(target.table().toDF().collect())
    with pytest.raises((DeltaError, PySparkException)) as caught:
        case.execute(target)
    refusal = case.expected["delta_spark_error"]
    wanted = {refusal["class"], *refusal.get("cause_classes", ())}
    assert caught.value.getCondition() in wanted, str(caught.value)[:500]
    assert target.num_commits() == 0
    assert decoder().multiset(target.table().toDF().collect()) == before


def _has_outcome(case: RecordedCase, target: Target) -> None:
    expected = case.expected
    result = case.execute(target)
    after = target.table().toDF()
    if "rows" in expected:
        wanted = decoder().decode_rows(expected["rows"], after.schema)
        assert decoder().multiset(after.collect()) == decoder().multiset(wanted)
    if "cdc_rows" in expected:
        _has_changes(expected["cdc_rows"], target)
    if "columns" in expected:
        assert after.columns == expected["columns"]
    if expected.get("schema"):
        assert _shape(json.loads(after.schema.json())) == _shape(expected["schema"])
    for query in expected.get("queries", ()):
        _answers(query, after, case)
    history = target.table().history(1).collect()[0]
    if expected.get("delta_spark_no_commit"):
        assert target.num_commits() == 0
        return
    counts = case.row_metrics()
    if target.num_commits() > 0:
        metrics = history.operationMetrics
        assert {k: v for k, v in metrics.items() if k in counts} == counts
    row = result.collect()[0]
    assert result.columns == RESULT_COLUMNS
    if "result_metrics_row" in expected:
        assert [list(row)] == expected["result_metrics_row"]
    if counts:
        changed = [counts[f"numTargetRows{w}"] for w in ("Updated", "Deleted", "Inserted")]
        assert [str(n) for n in row[1:]] == changed


def _has_changes(rows: list, target: Target) -> None:
    if target.num_commits() == 0:
        assert rows == []
        return
    changes = target.changes().drop("_commit_version", "_commit_timestamp")
    wanted = decoder().decode_rows(rows, changes.schema)
    assert decoder().multiset(changes.collect()) == decoder().multiset(wanted)


def _answers(query: dict, after: DataFrame, case: RecordedCase) -> None:
    after.createOrReplaceTempView(case.record["target_alias"] or "target")
    answer = after.sparkSession.sql(query["sql"])
    wanted = decoder().decode_rows(query["rows"], answer.schema)
    assert decoder().multiset(answer.collect()) == decoder().multiset(wanted)


def _shape(schema: object) -> object:
    """Names and types of a schema's JSON; nullability and metadata are no part of a promise."""
    if isinstance(schema, dict):
        left_out = ("nullable", "containsNull", "valueContainsNull", "metadata")
        return {k: _shape(v) for k, v in schema.items() if k not in left_out}
    return [_shape(v) for v in schema] if isinstance(schema, list) else schema
