"""A table's expressions run in the session of whoever writes to it: code that is not theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.session.delta_conf import ALLOW_REFLECTION
from puredelta.tables import DeltaTable

pytestmark = pytest.mark.spark

SPELLINGS = (
    "java_method('java.lang.System', 'setProperty', 'puredelta.owned', 'yes') IS NULL",
    "system.builtin.`Java_Method`/**/('java.lang.System', 'setProperty', 'puredelta.owned', '')",
)


def _owned(spark: SparkSession) -> bool:
    return spark._jvm.java.lang.System.getProperty("puredelta.owned") is not None


def _table(root: Path, *, column: Mapping[str, str] | None = None, **configuration: str) -> str:
    """Write the log of a table as a stranger would: nothing checks it."""
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "x", "type": "boolean", "nullable": True, "metadata": column or {}},
    ]
    features = ["checkConstraints", "generatedColumns", "allowColumnDefaults", "appendOnly"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    metadata = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {k.replace("__", "."): v for k, v in configuration.items()},
        "createdTime": 1,
    }
    log = root / "t" / "_delta_log"
    log.mkdir(parents=True)
    lines = ({"protocol": protocol}, {"metaData": metadata})
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, lines)))
    return str(root / "t")


def _kinds(sql: str) -> dict[str, dict[str, Any]]:
    return {
        "constraint": {"delta__constraints__c": sql},
        "generated": {"column": {"delta.generationExpression": sql}},
        "default": {"column": {"CURRENT_DEFAULT": sql}},
        "invariant": {
            "column": {"delta.invariants": json.dumps({"expression": {"expression": sql}})}
        },
    }


@pytest.mark.parametrize("kind", ["constraint", "generated", "default"])
@pytest.mark.parametrize("sql", SPELLINGS)
def test_reflection_is_refused_before_it_runs(
    spark: SparkSession, tmp_path: Path, kind: str, sql: str
) -> None:
    path = _table(tmp_path, **_kinds(sql)[kind])
    rows = spark.range(3)
    table = DeltaTable.forPath(spark, path)
    merge = (
        table.alias("t")
        .merge(rows.alias("s"), "t.id = s.id")
        .whenNotMatchedInsert(values={"id": "s.id"})
    )
    for run in (
        lambda: puredelta.write(rows, path, mode="append"),
        lambda: table.update(set={"id": "id + 1"}),
        merge.execute,
    ):
        with pytest.raises(InvalidRequestError, match=ALLOW_REFLECTION.key) as caught:
            run()
        assert caught.value.code is ErrorCode.UNSUPPORTED_EXPRESSION
    assert not _owned(spark)
    assert DeltaTable.forPath(spark, path).history().count() == 1
    assert puredelta.read(spark, path).count() == 0


def test_a_session_may_allow_reflection(spark: SparkSession, tmp_path: Path) -> None:
    path = _table(tmp_path, delta__constraints__c="java_method('java.lang.Math', 'abs', -1) = '1'")
    spark.conf.set(ALLOW_REFLECTION.key, "true")
    try:
        puredelta.write(spark.range(3), path, mode="append")
    finally:
        spark.conf.unset(ALLOW_REFLECTION.key)
    assert puredelta.read(spark, path).count() == 3


def test_a_subquery_of_a_table_is_not_run(spark: SparkSession, tmp_path: Path) -> None:
    puredelta.write(spark.range(3), str(tmp_path / "secret"))
    stolen = f"(SELECT max(id) > 0 FROM parquet.`{tmp_path}/secret`)"
    path = _table(tmp_path, column={"CURRENT_DEFAULT": stolen})
    spark.conf.set(ALLOW_REFLECTION.key, "true")  # is about something else
    try:
        with pytest.raises(InvalidRequestError, match="no expression over one row"):
            puredelta.write(spark.range(3), path, mode="append")
    finally:
        spark.conf.unset(ALLOW_REFLECTION.key)


@pytest.mark.parametrize("kind", ["constraint", "generated", "default", "invariant"])
def test_an_expression_may_end_in_a_comment(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = _table(tmp_path, **_kinds("true -- always")[kind])
    puredelta.write(spark.range(3), path, mode="append")
    DeltaTable.forPath(spark, path).update(set={"id": "id + 1"})
    assert sorted(r.id for r in puredelta.read(spark, path).collect()) == [1, 2, 3]
