"""Recorded statements on managed tables by name: the outcomes are those of tables at a path.

Such a table has column mapping by name, row tracking and deletion vectors. ``make test`` takes a
sample, ``make catalogs`` all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.write.parquet_job import temporary_settings
from tests.corpus.case import Case, all_cases, require_void_columns
from tests.corpus.conftest import engine, quick_session
from tests.corpus.run import Run
from tests.merge_cases.outcome import require_outcome
from tests.merge_cases.recorded import RecordedCase, graded_cases
from tests.servers.unity import UnityServer, unity_server
from tests.spark.catalogs.conftest import activated
from tests.spark.catalogs.recorded import ManagedPlace, ManagedTarget, by_name

SAMPLE = 2
"""Statements of each of both collections in ``make test``."""
SEED = 20


@dataclass(frozen=True)
class Catalog:
    """A session with the stand-in that it is connected to."""

    spark: SparkSession
    server: UnityServer


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with (
        unity_server(f"file:{tmp_path_factory.mktemp('managed')}") as server,
        quick_session(spark),
        activated(spark, server),
    ):
        yield Catalog(spark, server)


@pytest.fixture(scope="module")
def run(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(
        spark=catalog.spark,
        directory=tmp_path_factory.mktemp("corpus"),
        engine=by_name(catalog.spark, engine(catalog.spark)),
        place=ManagedPlace(catalog.server),
    )


def sampled(cases: list[tuple[str, object]]) -> list[object]:
    """Return one parameter for each case; those outside of the sample are thorough."""
    taken = {name for name, _ in random.Random(SEED).sample(cases, min(SAMPLE, len(cases)))}
    return [
        pytest.param(case, id=name, marks=() if name in taken else pytest.mark.thorough)
        for name, case in cases
    ]


@pytest.mark.parametrize("case", sampled([(case.id, case) for case in all_cases()]))
def test_recorded_statement(case: Case, run: Run) -> None:
    require_void_columns(case.id, run.spark.version)
    assert run.outcome(case) == case.expected_here


@pytest.mark.parametrize("case", sampled([(str(p.id), p.values[0]) for p in graded_cases()]))
def test_recorded_merge(case: RecordedCase, catalog: Catalog) -> None:
    require_void_columns(case.record["id"], catalog.spark.version)
    target = ManagedTarget(catalog.spark, catalog.server)
    with temporary_settings(catalog.spark, case.settings):
        try:
            require_outcome(case, target)
        finally:
            catalog.spark.sql(f"DROP TABLE IF EXISTS {target.name}")
