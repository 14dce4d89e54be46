"""What the log answers here it answers as delta-spark does, but for floating-point maximums."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.scan.log_answers import answered
from tests.spark.scan.skipping_cases import files_read, many_types

pytestmark = [pytest.mark.reference, pytest.mark.spark]

_CALLS = (
    "count(*)",
    "count(1)",
    *(f"{call}({name})" for call in ("min", "max") for name in ("id", "tiny", "i", "dt", "mostly")),
    *(f"{call}({name})" for call in ("min", "max") for name in ("p_int", "p_text", "p_day")),
    *(f"{call}({name})" for call in ("min", "max") for name in ("d", "f", "s", "ts", "dec")),
)
_MAY_BE_NAN = {"max(d)", "max(f)"}
_SIGN_OF_ZERO = {"min(f)"}
_NOTHING_BUT_NAN = {"min(d)"}
"""A file has no other value there; that a bound is NaN is not told from one that is not known."""


@pytest.mark.parametrize("writer", ["delta", "puredelta"])
@pytest.mark.parametrize("with_vectors", [False, True])
def test_x_73_answers_are_those_of_delta_spark(
    spark: SparkSession, tmp_path: Path, writer: str, *, with_vectors: bool
) -> None:
    path = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": str(with_vectors).lower()}
    by = ["p_int", "p_text", "p_day"]
    if writer == "delta":
        many_types(spark).write.format("delta").partitionBy(*by).options(**properties).save(path)
    else:
        puredelta.write(many_types(spark), path, partition_by=by, properties=properties)
    if with_vectors:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 60 < 3")
    theirs, ours = spark.read.format("delta").load(path), puredelta.read(spark, path)
    missing = set()
    for call in _CALLS:
        wanted = theirs.agg(F.expr(call))
        plan = wanted._jdf.queryExecution().optimizedPlan().toString()
        found = answered(ours.agg(F.expr(call)))
        if found is None:
            missing |= {call} if plan.startswith("LocalRelation") else set()
        else:
            assert found.collect() == wanted.collect(), call
    assert missing <= _MAY_BE_NAN | _SIGN_OF_ZERO | _NOTHING_BUT_NAN
    limited = answered(ours.limit(3))
    assert limited is not None
    assert files_read(limited) <= len(theirs.limit(3).inputFiles())
