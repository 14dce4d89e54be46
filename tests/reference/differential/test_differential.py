"""The same random statements through delta-spark and through puredelta: nothing may differ.

``PUREDELTA_SEEDS=1000:1200 make differential`` runs other seeds; a divergence is minimised and
printed as one line of JSON, to be kept in ``regressions.jsonl``.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import puredelta.tables
from tests.reference.differential.compare import differences, minimise
from tests.reference.differential.execute import Outcome, create_table, execute
from tests.reference.differential.generate import Case, make_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST, LAST = map(int, os.environ.get("PUREDELTA_SEEDS", "0:60").split(":"))
KEPT = Path(__file__).with_name("regressions.jsonl")


def kept_cases() -> list[Case]:
    if not KEPT.exists():
        return []
    return [Case.from_json(json.loads(line)) for line in KEPT.read_text().splitlines()]


def both(spark: SparkSession, case: Case, directory: Path) -> tuple[Outcome, Outcome]:
    """Run the case on twin tables, by the reference and by us."""
    import delta.tables  # noqa: PLC0415 - only where the reference is installed

    theirs, ours = directory / "theirs", directory / "ours"
    for path in (theirs, ours):
        shutil.rmtree(path, ignore_errors=True)
    create_table(spark, case, str(theirs))
    shutil.copytree(theirs, ours)
    return (
        execute(spark, case, str(theirs), delta.tables, spark.sql),
        execute(spark, case, str(ours), puredelta.tables, None),
    )


def check(spark: SparkSession, case: Case, directory: Path) -> None:
    found = differences(*both(spark, case, directory))
    if found:
        small = minimise(case, lambda c: bool(differences(*both(spark, c, directory))))
        report = differences(*both(spark, small, directory))
        pytest.fail("\n".join([*report, json.dumps(small.to_json())]), pytrace=False)


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_no_divergence(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, make_case(seed), tmp_path)


@pytest.mark.parametrize("case", kept_cases(), ids=lambda case: f"seed-{case.seed}")
def test_kept_case(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    check(spark, case, tmp_path)
