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
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import puredelta
import puredelta.tables
from tests.reference.differential.compare import differences, minimise
from tests.reference.differential.execute import (
    Content,
    Implementation,
    Outcome,
    Reader,
    create_table,
    execute,
)
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
    """Both implementations over twin tables; a table is created once, read once and copied.

    Each reads what the other wrote.
    """

    spark: SparkSession
    directory: Path
    contents: dict[str, Content] = field(default_factory=dict)
    """What the tables hold before their statements, by name."""

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
        return self._execute(
            case,
            Implementation(
                table_type=puredelta.tables.DeltaTable,
                run_sql=lambda text: puredelta.sql(self.spark, text),
                reader=Reader(table=self._read_by_reference, changes=self._feed_by_reference),
            ),
        )

    def _ask_reference(self, case: Case) -> Outcome:
        import delta.tables  # noqa: PLC0415 - only where the reference is installed

        return self._execute(
            case,
            Implementation(
                table_type=delta.tables.DeltaTable,
                run_sql=self.spark.sql,
                reader=Reader(table=self._read, changes=self._feed),
            ),
        )

    def _execute(self, case: Case, by: Implementation) -> Outcome:
        name = _digest(case.table_text())
        base = self.directory / "tables" / name
        if not base.exists():
            create_table(self.spark, case, str(base))
        if name not in self.contents:
            self.contents[name] = Reader(table=self._read, changes=self._feed).content(str(base))
        twin = self.directory / "twins" / str(uuid.uuid4())
        shutil.copytree(base, twin)
        try:
            return execute(self.spark, case, str(twin), by, self.contents[name])
        finally:
            shutil.rmtree(twin)

    def _read(self, path: str) -> DataFrame:
        return puredelta.read(self.spark, path)

    def _feed(self, path: str, version: int) -> DataFrame:
        return puredelta.read_changes(self.spark, path, starting_version=version)

    def _read_by_reference(self, path: str) -> DataFrame:
        return self.spark.read.format("delta").load(path)

    def _feed_by_reference(self, path: str, version: int) -> DataFrame:
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        return reader.option("startingVersion", version).load(path)


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
