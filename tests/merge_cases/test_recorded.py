"""Recorded statements end to end on tables at a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.write.parquet_job import temporary_settings
from tests.merge_cases.outcome import require_outcome
from tests.merge_cases.recorded import RecordedCase, graded_cases
from tests.merge_cases.target import PathTarget


@pytest.mark.parametrize("case", list(graded_cases()))
def test_recorded_merge(case: RecordedCase, spark: SparkSession, tmp_path: Path) -> None:
    with temporary_settings(spark, case.settings):
        require_outcome(case, PathTarget(spark, str(tmp_path / "target")))
