"""The named points of a command, and a driver that dies at one of them.

Points are the phases of each commit (`Phase`), the end of each stage of a statement, both sides of
a job that writes data files, of a change of the catalog and of a write or removal of the store.
They are noted in a file, so that whoever looks afterwards knows how far a killed driver came.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

from pyspark.sql.readwriter import DataFrameWriter

from puredelta.commands.statement.stages import StageTimer
from puredelta.log.commit.commit_request import Environment, Phase
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY
from puredelta.spark.jvm import catalog
from puredelta.store.local import LocalStore

_REPEATS_MAX = 2
"""A point that comes again and again is one to die at only so often."""
_STORE_CALLS = ("put", "put_if_absent", "delete", "delete_tree", "delete_directory", "move")
_CATALOG_CALLS = ("run_command", "disown_directory", "update_entry_columns", "make_delta")


@dataclass(slots=True)
class Points:
    """Counts points, notes them in a file, and kills this process at one of them."""

    root: Path
    """The table's directory; stores elsewhere do not count."""
    notes: Path
    fatal: str = ""
    """The point to die at; none if empty."""
    at_staged: Callable[[], None] | None = None
    """What happens when the first commit is staged: a rival may be faster."""
    _seen: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def reach(self, name: str) -> None:
        """Note a point, and die if it is the one."""
        with self._lock:
            self._seen[name] += 1
            if (count := self._seen[name]) > _REPEATS_MAX:
                return
            point = f"{name} #{count}"
            with self.notes.open("a") as notes:
                notes.write(f"{point}\t{newest_commit(self.root)}\n")
            if point == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        if self.at_staged is not None and point == f"phase {Phase.STAGED.name} #1":
            self.at_staged()

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call with a point on both sides."""

        @functools.wraps(call)
        def called(*args: Any, **kwargs: Any) -> Any:
            self.reach(f"before {name}")
            answer = call(*args, **kwargs)
            self.reach(f"after {name}")
            return answer

        return called


class _WatchedPhase:
    """Stands in the place of `Environment.on_phase`: whatever a command passes, we are told."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def __get__(self, environment: object, owner: object) -> Callable[[Phase], None]:
        return lambda phase: self._points.reach(f"phase {phase.name}")

    def __set__(self, environment: object, value: object) -> None:
        """Take no other observer."""


@contextlib.contextmanager
def watched(points: Points) -> Iterator[None]:
    """Reach the points that the block comes to."""
    with contextlib.ExitStack() as patches:
        patches.enter_context(patch.object(Environment, "on_phase", _WatchedPhase(points)))
        patches.enter_context(patch.object(StageTimer, "__call__", _stage(points)))
        written = points.around("a job that writes", DataFrameWriter.parquet)
        patches.enter_context(patch.object(DataFrameWriter, "parquet", written))
        for name in _STORE_CALLS:
            call = _store_call(points, name, getattr(LocalStore, name))
            patches.enter_context(patch.object(LocalStore, name, call))
        for name in _CATALOG_CALLS:
            changed = points.around(f"catalog {name}", getattr(catalog, name))
            patches.enter_context(patch.object(catalog, name, changed))
        yield


def noted(notes: Path) -> dict[str, int]:
    """Return the points that a driver reached, each with the newest version at that moment."""
    if not notes.exists():
        return {}
    lines = (line.split("\t") for line in notes.read_text().splitlines())
    return {point: int(version) for point, version in lines}


def newest_commit(root: Path) -> int:
    """Return the newest version by the names of its files alone; -1 for none."""
    names = (file.stem for file in (root / LOG_DIRECTORY).glob("*.json"))
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _stage(points: Points) -> Callable[..., Any]:
    original = StageTimer.__call__

    def staged(timer: StageTimer, name: str, run: Any, *args: Any, **kwargs: Any) -> Any:
        outcome: Any = original(timer, name, run, *args, **kwargs)
        points.reach(f"stage {name}")
        return outcome

    return staged


def _store_call(points: Points, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def called(store: LocalStore, path: str, *args: Any, **kwargs: Any) -> Any:
        if not store.root_uri.removeprefix("file:").startswith(str(points.root)):
            return original(store, path, *args, **kwargs)
        what = f"{name} {kind_of(path)}"
        return points.around(what, original)(store, path, *args, **kwargs)

    return called


def kind_of(path: str) -> str:
    """Return what a file is, by its name.

    >>> [kind_of(f"_delta_log/{n}") for n in ("0001.json", "_last_checkpoint", "1.checkpoint.a")]
    ['commit', 'hint', 'checkpoint']
    """
    name = path.rpartition("/")[2]
    if path.startswith(LOG_DIRECTORY):
        if name.startswith("_last"):
            return "hint"
        return "commit" if name.partition(".")[2] == "json" else "checkpoint"
    return "vector" if name.endswith(".bin") else "data"
