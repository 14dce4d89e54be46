"""Drivers that are killed at a named point, and that it would be noticed if they were not."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from puredelta.commands.restore import restore_table
from puredelta.commands.statement.stages import StageTimer
from puredelta.log.commit.commit_request import Environment, Phase
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session import session as sessions
from puredelta.store.local import LocalStore
from simulation.kills.kills import Kills, Trial
from simulation.kills.points import Points, kind_of, newest_commit, noted, watched
from simulation.sweep.subject import Subject
from simulation.sweep.sweep import Sweep
from tests.commands.sessions import FakeSession, Settings
from tests.log.tables import WRITE, Client, add, create_table, remove

_DRIVER = """
from pathlib import Path
from puredelta.store.local import LocalStore
from simulation.kills.points import Points, watched
root = Path({root!r})
with watched(Points(root=root, notes=Path({notes!r}), fatal={fatal!r})):
    for version in range(3):
        LocalStore(root).put_if_absent(f"_delta_log/{{version:020}}.json", b"")
"""


def test_points_are_reached_in_their_order_with_the_version_that_is_there(tmp_path: Path) -> None:
    root, notes = tmp_path / "table", tmp_path / "notes"
    points = Points(root=root, notes=notes)
    with watched(points):
        Environment().on_phase(Phase.STAGED)
        assert StageTimer(statement="MERGE")("4 prune", lambda: 7) == 7
        LocalStore(root).put_if_absent("_delta_log/00000000000000000000.json", b"")
        LocalStore(tmp_path / "other").put("x", b"")
    Environment().on_phase(Phase.STAGED)
    assert noted(notes) == {
        "phase STAGED #1": -1,
        "stage 4 prune #1": -1,
        "before put_if_absent commit #1": -1,
        "after put_if_absent commit #1": 0,
    }


@pytest.mark.parametrize(
    ("fatal", "newest"),
    [
        ("before put_if_absent commit #1", -1),
        ("after put_if_absent commit #1", 0),
        ("after put_if_absent commit #2", 1),
    ],
)
def test_a_driver_dies_at_its_point_and_nothing_comes_after(
    tmp_path: Path, fatal: str, newest: int
) -> None:
    root, notes = tmp_path / "table", tmp_path / "notes"
    script = _DRIVER.format(root=str(root), notes=str(notes), fatal=fatal)
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert newest_commit(root) == newest
    assert list(noted(notes))[-1] == fatal


def test_files_have_kinds() -> None:
    names = ("_delta_log/0.json", "_delta_log/0.checkpoint.parquet", "a/part-0.parquet", "dv.bin")
    assert [kind_of(name) for name in names] == ["commit", "checkpoint", "data", "vector"]


class _Conf(Settings):
    """Settings that can be changed; a client sends that, and a hook sees it."""

    def set(self, key: str, value: str) -> None:
        self._values[key] = value
        sessions._kept.clear()

    def unset(self, key: str) -> None:
        del self._values[key]
        sessions._kept.clear()


class _NoSpark(FakeSession):
    """A session without a JVM, for a command that only writes to the log."""

    def __init__(self) -> None:
        super().__init__(spark__sql__session__timeZone="UTC")
        self.conf = _Conf(self.conf.getAll)
        client = SimpleNamespace(deque=deque(), thread_connection=None)
        gateway = SimpleNamespace(_gateway_client=client)
        tracker = SimpleNamespace(getExecutorInfos=list)  # nobody runs a task
        context = SimpleNamespace(statusTracker=lambda: tracker)
        jsc = SimpleNamespace(sc=lambda: context)
        self.sparkContext = SimpleNamespace(_gateway=gateway, _jsc=jsc)


def _two_versions(_: Any, root: Path) -> None:
    table = root / "table"
    table.mkdir(parents=True)
    for number, name in enumerate(("a.parquet", "b.parquet")):
        pq.write_table(pa.table({"id": [number], "v": [name]}), table / name)
    log = create_table(LocalStore(table), add("a.parquet"))
    Client(log, log.snapshot()).commit([remove("a.parquet"), add("b.parquet")], WRITE)


def _restore(spark: Any, root: str) -> object:
    return restore_table(spark, TableLog.open(f"{root}/table"), version=0)


_LOG_ALONE = {"restore": Subject(prepare=_two_versions, run=_restore)}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_command_is_killed_at_its_points_alone_and_after_a_rival(
    tmp_path: Path, *, every: bool
) -> None:
    spark: Any = _NoSpark()
    kills = Kills(spark, tmp_path, _LOG_ALONE)
    kills.run("restore", every=every)
    assert kills.violations == []
    phases = {f"phase {phase.name}" for phase in Phase}
    assert phases | {"before put_if_absent commit", "after put_if_absent commit"} <= set(
        kills.by_point
    )
    kills = Kills(spark, tmp_path / "again", _LOG_ALONE)
    found = kills.unharmed("restore")
    point = "after put_if_absent commit #1"
    trial = Trial(point=point, version=found.points[point], has_rival=False)
    (survived,) = kills.at_point("restore", found, replace(trial, point="nowhere #1"))
    assert "was not killed" in survived
    (lost,) = kills.at_point("restore", found, replace(trial, version=trial.version + 1))
    assert "it was killed at version" in lost


def test_every_store_call_of_a_command_fails_once(tmp_path: Path) -> None:
    spark: Any = _NoSpark()
    sweep = Sweep(spark, tmp_path, until=math.inf, subjects=_LOG_ALONE)
    sweep.run("restore")
    assert sweep.violations == []
    assert sweep.tried.total() == sweep.num_points["restore"] > 50


@pytest.fixture
def kills(spark: SparkSession, tmp_path: Path) -> Iterator[Kills]:
    spark.sparkContext.setLogLevel("OFF")
    yield Kills(spark, tmp_path)
    spark.sparkContext.setLogLevel("ERROR")


@pytest.mark.faults
def test_who_survives_or_loses_a_version_is_noticed(kills: Kills) -> None:
    found = kills.unharmed("insert")
    point = "after put_if_absent commit #1"
    trial = Trial(point=point, version=found.points[point], has_rival=False)
    assert kills.at_point("insert", found, trial) == []
    (survived,) = kills.at_point("insert", found, replace(trial, point="nowhere #1"))
    assert "was not killed" in survived
    (lost,) = kills.at_point("insert", found, replace(trial, version=trial.version + 1))
    assert "it was killed at version" in lost
