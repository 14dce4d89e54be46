"""Random directories, converted by delta-spark and by puredelta: same table, or same refusal.

``PUREDELTA_SEEDS=1000:1200 make reference`` converts others.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.errors import DeltaError
from puredelta.spark.session.types import quoted
from puredelta.spark.write.parquet_job import temporary_settings
from tests.reference.random_conversions import random_conversion
from tests.reference.test_convert import (
    convert_with_reference,
    description,
    error_class,
    require_same_statistics,
)

_SAME = {"DELTA_FAILED_MERGE_SCHEMA_FILE", "DELTA_FAILED_TO_MERGE_FIELDS"}
"""Which of them delta-spark raises depends on which of its tasks reads which file."""

_FIRST, _, _LAST = os.environ.get("PUREDELTA_SEEDS", "0:60").partition(":")


@pytest.mark.parametrize("seed", range(int(_FIRST), int(_LAST)))
def test_same_outcome(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = random_conversion(seed)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    case.build(theirs)
    shutil.copytree(theirs, ours, copy_function=shutil.copy2)
    refusal = their_refusal = ""
    with temporary_settings(spark, case.settings):
        try:
            convert_to_delta(spark, f"parquet.`{ours}`", case.partition_schema)
        except DeltaError as error:
            refusal = error.getErrorClass()
        try:
            convert_with_reference(spark, theirs, case.partition_schema)
        except Exception as error:  # noqa: BLE001 - whatever PySpark makes of it
            their_refusal = error_class(error) or str(error)[:300]
    assert {refusal, their_refusal} <= _SAME or refusal == their_refusal, case
    if refusal:
        assert not (ours / "_delta_log").exists()
        return
    assert in_order(description(ours)) == in_order(description(theirs))
    require_same_statistics(ours, theirs)
    with temporary_settings(spark, case.settings):
        assert rows_of(spark, ours) == rows_of(spark, theirs)


def in_order(description: dict[str, Any]) -> dict[str, Any]:
    """Order the columns, and fold their names: delta-spark takes both from whatever file it
    reads first, this library from the first by path.
    """
    fields = ({**field, "name": field["name"].lower()} for field in description["schema"]["fields"])
    return {**description, "schema": sorted(map(json.dumps, fields))}


def rows_of(spark: SparkSession, root: Path) -> list[str]:
    frame = spark.read.format("delta").load(str(root))
    names = sorted(frame.columns, key=str.lower)
    return sorted(str(tuple(row)) for row in frame.select(*map(quoted, names)).collect())
