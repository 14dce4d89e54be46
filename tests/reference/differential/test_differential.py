"""The same random statements through delta-spark and through puredelta: nothing may differ.

``PUREDELTA_SEEDS=1000:1200 make differential`` runs other seeds. A divergence is printed as one
line of JSON, to be kept in ``regressions.jsonl``; ``PUREDELTA_MINIMISE=1`` makes it as small as
it gets first. ``PUREDELTA_OUTCOMES=<directory>`` keeps what delta-spark answered, so that the
next run of the same seeds asks puredelta alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import puredelta
import puredelta.tables
from tests.reference.differential.compare import differences, minimise
from tests.reference.differential.execute import Outcome, create_table, execute
from tests.reference.differential.generate import Case, make_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

FIRST, LAST = map(int, os.environ.get("PUREDELTA_SEEDS", "0:60").split(":"))
OUTCOMES = os.environ.get("PUREDELTA_OUTCOMES")
MINIMISES = os.environ.get("PUREDELTA_MINIMISE") == "1"
KEPT = Path(__file__).with_name("regressions.jsonl")


def kept_cases() -> list[Case]:
    if not KEPT.exists():
        return []
    return [Case.from_json(json.loads(line)) for line in KEPT.read_text().splitlines()]


@dataclass(frozen=True)
class Bench:
    """Both implementations over twin tables; a table is created once and copied."""

    spark: SparkSession
    directory: Path

    def differences(self, case: Case) -> list[str]:
        return differences(case, self.theirs(case), self.ours(case))

    def theirs(self, case: Case) -> Outcome:
        if OUTCOMES is None:
            return self._ask_reference(case)
        kept = Path(OUTCOMES, f"{_digest(json.dumps(case.to_json()))}.json")
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(self._ask_reference(case).to_json()))
        return Outcome.from_json(json.loads(kept.read_text()))

    def ours(self, case: Case) -> Outcome:
        def run_sql(text: str) -> DataFrame:
            return puredelta.sql(self.spark, text)

        return execute(self.spark, case, self._twin(case, "ours"), puredelta.tables, run_sql)

    def _ask_reference(self, case: Case) -> Outcome:
        import delta.tables  # noqa: PLC0415 - only where the reference is installed

        path = self._twin(case, "theirs")
        return execute(self.spark, case, path, delta.tables, self.spark.sql)

    def _twin(self, case: Case, name: str) -> str:
        base = self.directory / "tables" / _digest(case.table_text())
        if not base.exists():
            create_table(self.spark, case, str(base))
        twin = self.directory / name / str(case.seed)
        shutil.rmtree(twin, ignore_errors=True)
        shutil.copytree(base, twin)
        return str(twin)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    spark.conf.set("spark.sql.codegen.wholeStage", "false")  # few rows: to compile costs more
    yield Bench(spark, tmp_path_factory.mktemp("differential"))
    spark.conf.unset("spark.sql.codegen.wholeStage")


def check(bench: Bench, case: Case) -> None:
    found = bench.differences(case)
    if not found:
        return
    if MINIMISES:
        case = minimise(case, lambda smaller: bool(bench.differences(smaller)))
        found = bench.differences(case)
    pytest.fail("\n".join([*found, json.dumps(case.to_json())]), pytrace=False)


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_no_divergence(bench: Bench, seed: int) -> None:
    check(bench, make_case(seed))


@pytest.mark.parametrize("case", kept_cases(), ids=lambda case: f"seed-{case.seed}")
def test_kept_case(bench: Bench, case: Case) -> None:
    check(bench, case)
