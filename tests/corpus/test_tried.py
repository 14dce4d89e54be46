"""Dry runs of statements have the counts of their execution, previews its change feed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.spark.write.parquet_job import temporary_settings
from tests.corpus.case import Case, all_cases, require_void_columns
from tests.corpus.run import Run
from tests.corpus.trial import PREVIEW_MAX, Tried, require_same, require_same_of
from tests.merge_cases.recorded import RecordedCase, graded_cases
from tests.merge_cases.target import PathTarget
from tests.reference.random_cases import random_case

SAMPLE = 4
RANDOM = range(1_000, 1_310)
"""Seeds of statements that nobody recorded: a dry run has to agree with the execution alone. A few
have a source that Spark refuses to make."""
_CASES = all_cases()
_FED = [case for case in _CASES if case.has_feed and "error" not in case.expected_here]
_SAMPLE = _FED[:: max(1, len(_FED) // SAMPLE)][:SAMPLE]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", _SAMPLE, ids=lambda case: case.id)
def test_a_sample_is_tried(case: Case, run: Run) -> None:
    require_same(run, case)


@pytest.mark.trials
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.id)
def test_every_case_is_tried(case: Case, run: Run) -> None:
    require_void_columns(case.id, run.spark.version)
    require_same(run, case)


@pytest.mark.trials
@pytest.mark.parametrize("seed", RANDOM)
def test_every_random_statement_is_tried(seed: int, run: Run) -> None:
    try:
        case = random_case(run.spark, seed)
    except PySparkException as refusal:
        pytest.skip(f"no source: {refusal.getCondition()}")
    require_same(run, _with_feed(case))


def _with_feed(case: Case) -> Case:
    """Let the table of a random case record its changes, so that previews are compared, too."""
    create, *files = case.setup
    feed = "'delta.enableChangeDataFeed' = 'true'"
    properties = " TBLPROPERTIES ("
    if "enableChangeDataFeed" in create:
        return case
    if properties in create:
        create = create.replace(properties, f"{properties}{feed}, ")
    else:
        create += f"{properties}{feed})"
    return replace(case, setup=[create, *files])


@pytest.fixture
def settings(case: RecordedCase, spark: SparkSession) -> Iterator[None]:
    with temporary_settings(spark, case.settings):
        yield


@pytest.mark.trials
@pytest.mark.parametrize(
    "case", [p.values[0] for p in graded_cases()], ids=lambda c: c.record["id"]
)
@pytest.mark.usefixtures("settings")
def test_every_recorded_merge_is_tried(
    case: RecordedCase, spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "target")
    target = PathTarget(spark, path)
    case.create(target)
    tried = Tried(
        dry_run=lambda: case.builder(target).dry_run(),
        preview=lambda: case.builder(target).preview(PREVIEW_MAX),
        execute=lambda: case.builder(target).execute(),
        has_feed="cdc_rows" in case.expected,
    )
    require_same_of(spark, path, tried)
