"""The recorded MERGE statements again, on tables that are not on the driver's disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.session.storage import open_log
from tests.corpus.case import Case, all_cases
from tests.corpus.conftest import engine, quick_session
from tests.corpus.run import LocalBases, Run
from tests.storage.conftest import Place

CASES = [case for case in all_cases() if "MERGE" in (case.statement or "MERGE").upper()]


@dataclass(frozen=True, slots=True)
class StoredPlace(LocalBases):
    """Tables in the storage of a place."""

    place: Place

    def copy(self, base: str, name: str) -> str:
        location = self.place.new(name)
        store = open_log(self.place.spark, location).store
        for file in Path(base).rglob("*"):
            if file.is_file() and not file.name.endswith(".crc"):
                store.put(file.relative_to(base).as_posix(), file.read_bytes())
        return location

    def last_commit(self, location: str) -> tuple[int, str]:
        log = open_log(self.place.spark, location)
        version = log.latest_version()
        assert version is not None
        return version, log.store.read(f"_delta_log/{version:020}.json").decode()

    def remove(self, location: str) -> None:
        pass  # the server goes with the tests


@pytest.fixture
def run(
    spark: SparkSession, place: Place, corpus_directory: Path, bases: dict[str, str]
) -> Iterator[Run]:
    with quick_session(spark):
        yield Run(
            spark=spark,
            directory=corpus_directory,
            engine=engine(spark),
            place=StoredPlace(place),
            _bases=bases,
        )


@pytest.fixture(scope="module")
def bases() -> dict[str, str]:
    """The tables that cases begin with, made once for all places."""
    return {}


@pytest.fixture(scope="module")
def corpus_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_recorded_statement(case: Case, run: Run) -> None:
    assert run.outcome(case) == case.expected_here
