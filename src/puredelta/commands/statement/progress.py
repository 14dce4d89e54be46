"""The progress line of a statement.

The line goes to standard error if the session wants it (``spark.puredelta.progress``). It appears
only after a delay, so that short statements write nothing.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event, RLock, Thread
from typing import Any, TextIO, TypeAlias, TypeVar

from pyspark.sql import SparkSession

from puredelta.commands.statement.rendering import printable
from puredelta.spark.jvm.jobs import TaskCounts
from puredelta.spark.session.concurrent_jobs import shows_own_bar, watch_tasks
from puredelta.spark.session.delta_conf import PROGRESS

_FIRST_S = 1.0
_EVERY_S = 0.5
_STOP_S = 2.0
_WIDTH_MAX = 120

FindTasks = Callable[[], TaskCounts | None]


def _nothing() -> None:
    """Do nothing."""


def _fraction(tasks: TaskCounts) -> str:
    """Return the finished tasks, and the number of known ones."""
    return f"{tasks.done}/{tasks.known} tasks"


@dataclass(slots=True, kw_only=True)
class ProgressLine:
    """The line of one statement; `stage` sets the name it shows."""

    title: str
    find_tasks: FindTasks
    out: TextIO
    first_s: float = _FIRST_S
    every_s: float = _EVERY_S
    close: Callable[[], None] = _nothing
    """Stops the observation of tasks."""
    counted: Callable[[TaskCounts], str] = _fraction
    """Makes the text of the tasks."""
    _stage: str = ""
    _shown: int = 0
    _started: float = field(default_factory=time.monotonic)
    _ended: Event = field(default_factory=Event)
    _thread: Thread | None = None
    _writing: RLock = field(default_factory=RLock)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show the name of this stage while the block runs."""
        self._stage = name
        yield

    def show(self, text: str) -> None:
        """Show this text instead of the stage's name, until something else is shown."""
        self._stage = text

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line until the end, and remove it."""
        self._thread = Thread(target=self._run, name="puredelta-progress", daemon=True)
        self._thread.start()
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        """Remove the line for good; a second call does nothing."""
        if self._ended.is_set():
            return
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_STOP_S)
        self._write("")
        self.close()

    def leave(self, text: str) -> None:
        """Write a permanent line above this one; nothing once this one has been removed."""
        with self._writing, contextlib.suppress(OSError, ValueError):
            if not self._ended.is_set():
                self._write("")
                self.out.write(printable(text) + "\n")

    def line(self, width: int = _WIDTH_MAX) -> str:
        """Return the current text; where space is short, the path loses its beginning."""
        tasks = self.find_tasks()
        counted = "" if tasks is None else f", {self.counted(tasks)}"
        seconds = time.monotonic() - self._started
        state = printable(f": {self._stage}{counted} ({seconds:.0f} s)")
        return _shortened(printable(self.title), max(0, width - len(state))) + state[:width]

    def _run(self) -> None:
        wait_s = self.first_s
        while not self._ended.wait(wait_s):
            self._write(self.line(_width()))
            wait_s = self.every_s

    def _write(self, text: str) -> None:
        """Overwrite the present line; a closed stream is no error."""
        with self._writing:
            if not text and not self._shown:
                return
            with contextlib.suppress(OSError, ValueError):
                self.out.write("\r" + text.ljust(self._shown) + ("" if text else "\r"))
                self.out.flush()
            self._shown = len(text)


def _width() -> int:
    """Return the number of characters in a line of the terminal."""
    return min(_WIDTH_MAX, shutil.get_terminal_size((80, 24)).columns - 1)


def _shortened(title: str, width: int) -> str:
    """Return a title, with its path shortened at the beginning to fit the width. Pure.

    >>> _shortened("MERGE file:/data/tables/events", 20)
    'MERGE ...bles/events'
    """
    if len(title) <= width:
        return title
    kind, _, place = title.partition(" ")
    room = width - len(f"{kind} ...")
    return f"{kind} ...{place[-room:]}" if room > 0 else title[:width]


def open_progress(
    spark: SparkSession, tag: str | None, title: str, settings: Mapping[str, str]
) -> ProgressLine | None:
    """Return the line of a statement, ``None`` if the session wants none. ``tag`` is that of its
    jobs, if it starts any.
    """
    own_bar = shows_own_bar(spark, settings)
    if not wants_progress(settings, sys.stderr, spark_shows=own_bar):
        return None
    tasks = watch_tasks(spark, tag)
    return ProgressLine(title=title, find_tasks=tasks.find, out=sys.stderr, close=tasks.close)


def wants_progress(settings: Mapping[str, str], out: TextIO, *, spark_shows: bool) -> bool:
    """Tell whether to show progress; ``auto``: in notebooks, and in a terminal where Spark itself
    shows none, as ``spark_shows`` says.

    Raises:
        InvalidRequestError: the setting is none of auto, on, off.
    """
    value = PROGRESS.read(settings)
    if value != "auto":
        return value == "on"
    if _in_notebook():
        return True
    return out.isatty() and not spark_shows


def _in_notebook() -> bool:
    """Tell whether a notebook's kernel runs this process: its shell differs from a terminal's."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


logger = logging.getLogger(__name__)

Note: TypeAlias = Callable[[str], None]
"""Receives the current work of a statement, in words."""

_EVERY_FILES = 256
_LOGGED_EVERY_S = 30.0

T = TypeVar("T")


def note_nothing(_text: str) -> None:
    """Do nothing."""


def counted(
    files: Iterable[T], total: int, note: Note, *, logged_every_s: float = _LOGGED_EVERY_S
) -> Iterator[T]:
    """Yield files whose footers have been read, and note their number, at intervals in the log."""
    logged = time.monotonic()
    for number, file in enumerate(files):
        if number % _EVERY_FILES == 0:
            text = f"reading footers, {number}/{total} files"
            note(text)
            if time.monotonic() - logged > logged_every_s:
                logged = time.monotonic()
                logger.info("CONVERT TO DELTA: %s", text)
        yield file
