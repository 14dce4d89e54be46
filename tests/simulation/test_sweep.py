"""A sample of the fault sweep, and that it would notice: `make faults` runs the whole."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.api import write
from puredelta.errors import CommitUnknownError
from puredelta.store.base import StorageError
from puredelta.store.local import LocalStore
from puredelta.tables.delta_table import DeltaTable
from simulation.sweep import worker_fault
from simulation.sweep.commands import COMMANDS
from simulation.sweep.injection import Injector, Killed, Kind, Place, injected, places
from simulation.sweep.judge import State, broken_rules
from simulation.sweep.sweep import Sweep

SAMPLE = {
    "delete, vectors": 61,
    "insert": 29,
    "create, named": 29,
    "restore": 31,
    "vacuum": 41,
    "update, in place": 67,
    "delete, row groups": 67,
}
"""Each so-manieth point of some commands."""
FEW = ("delete, vectors", "insert", "vacuum", "update, in place")

OLD = State(version=1, rows={(1, "a"): 1}, commits={"0.json": b"x", "1.json": b"y"})
NEW = State(version=2, rows={(1, "b"): 1}, commits={**OLD.commits, "2.json": b"z"})


@pytest.fixture
def _silent() -> Iterator[None]:
    logger = logging.getLogger("puredelta")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(level)


@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize(
    ("names", "tried_min"),
    [
        pytest.param(FEW, 8, id="few"),
        pytest.param(SAMPLE, 15, id="all", marks=pytest.mark.thorough),
    ],
)
def test_a_fault_leaves_the_old_table_or_the_new_one(
    spark: SparkSession, tmp_path: Path, names: Collection[str], tried_min: int
) -> None:
    spark.sparkContext.setLogLevel("OFF")
    sweep = Sweep(spark, tmp_path, until=time.monotonic() + 600)
    try:
        for name in names:
            sweep.run(name, every=SAMPLE[name])
    finally:
        spark.sparkContext.setLogLevel("ERROR")
    assert not sweep.violations
    assert not sweep.left_out
    assert sweep.tried.total() >= tried_min
    assert {name for name, _, _ in sweep.tried} == set(names) <= set(COMMANDS)
    assert not spark.sparkContext.getJobTags()


def test_workers_have_no_fault_after_the_faults(spark: SparkSession, tmp_path: Path) -> None:
    """A worker keeps its classes, so functions that it unpacked earlier meet the faulty one."""
    path, scratch = str(tmp_path / "t"), tmp_path / "scratch"
    write(spark.range(40).repartition(4), path)

    def delete(at: int) -> None:
        DeltaTable.forPath(spark, path).delete(f"id % 8 = {at}")

    delete(0)
    injector = Injector(str(tmp_path), place=Place.WORKER_WRITE)
    with injected(injector, scratch):
        delete(1)
    assert injector.counts[Place.WORKER_WRITE] == 4
    delete(2)
    assert not scratch.exists()
    assert worker_fault.failing(str.upper, str(scratch), 1, 5, None)("done") == "DONE"


@pytest.mark.parametrize(
    ("now", "failed", "known", "rule"),
    [
        (NEW, None, True, ""),
        (OLD, StorageError("full"), True, ""),
        (NEW, Killed(), False, ""),
        (OLD, Killed(), False, ""),
        (OLD, None, True, "acknowledged"),
        (NEW, StorageError("full"), True, "failed"),
        (replace(NEW, rows={}), Killed(), False, "neither old nor new"),
        (replace(OLD, version=0), Killed(), False, "version 1 is gone"),
        (replace(OLD, commits={"1.json": b"other"}), Killed(), False, "was changed"),
    ],
)
def test_rules(now: State, failed: BaseException | None, known: bool, rule: str) -> None:
    found = broken_rules(OLD, NEW, now, failed=failed, known=known)
    assert bool(found) == bool(rule)
    assert rule in "; ".join(found)
    assert not isinstance(failed, CommitUnknownError)


def test_the_chosen_call_fails_as_it_was_asked(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "table")
    elsewhere = LocalStore(tmp_path / "other")

    def put(nth: int, kind: Kind) -> Injector:
        injector = Injector(str(tmp_path / "table"), Place.STORE, nth, kind)
        with injected(injector, tmp_path / f"{kind.name}-{nth}"):
            elsewhere.put("x", b"1")
            store.put("a", b"1234")
            store.put("b", b"1234")
        return injector

    assert put(0, Kind.IO_BEFORE).counts[Place.STORE] == 2
    store.delete("b")
    with pytest.raises(StorageError, match="space"):
        put(2, Kind.FULL_BEFORE)
    assert not store.exists("b")
    with pytest.raises(PermissionError):
        put(2, Kind.DENIED_AFTER)
    assert store.exists("b")
    with pytest.raises(StorageError):
        put(1, Kind.SHORT)
    assert [file.name for file in (tmp_path / "table").glob(".*.tmp")]
    with pytest.raises(Killed):
        put(2, Kind.KILLED_BEFORE)
    store.put("c", b"")  # the next process lives


def test_every_call_is_met_by_every_kind() -> None:
    points = list(places({Place.STORE: 2, Place.SPARK_WRITE: 1, Place.WORKER_WRITE: 1}))
    assert len(points) == len(set(points)) == 2 * 8 + 9 + 7
