"""A session that has delta-spark, as those of platforms: it stays as it is, and functions work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import puredelta
from tests.test_guides import DOCS, blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_functions_work_beside_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="has delta-spark's JAR"):
        assert not puredelta.activate(spark)
    _, block = blocks(DOCS / "guides" / "fabric.md", tmp_path)[0]
    exec(compile(block, "fabric.md", "exec"), {"spark": spark, "puredelta": puredelta})
    rows = spark.read.format("delta").load(str(tmp_path / "orders")).collect()
    assert sorted(tuple(row) for row in rows) == [(0, "new"), (1, "paid")]
