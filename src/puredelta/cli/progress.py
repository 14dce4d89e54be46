"""Progress of a long command on stderr: the phase, Spark's tasks and the time; terminals only."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from types import TracebackType

from pyspark.sql import SparkSession
from rich.console import Console
from rich.markup import escape
from typing_extensions import Self

_STAGES = "puredelta.stage"
_EVERY_SECONDS = 0.5


class Progress:
    """Shows what a command is doing while it does it."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._phase = ""
        self._began = time.monotonic()
        self._status = console.status(escape(title)) if console.is_terminal else None
        self._stopped = threading.Event()
        self._spark: SparkSession | None = None
        self._watcher: threading.Thread | None = None
        self._handler = _PhaseHandler(self)
        self._level = logging.NOTSET

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
            stages = logging.getLogger(_STAGES)
            self._level = stages.level
            stages.addHandler(self._handler)
            stages.setLevel(logging.DEBUG)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def phase(self, text: str) -> None:
        """Say what the command does now."""
        self._phase = text
        self._update("")

    def done(self, text: str) -> None:
        """Leave a line about a phase that is done."""
        if self._status is not None:
            self._console.print(f"[dim]{escape(text)}[/dim]")

    def watch(self, spark: SparkSession | None) -> None:
        """Show the tasks of the jobs that a session runs, from now on."""
        self._phase = "running"
        self._spark = spark
        if self._status is not None and spark is not None:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()

    def stop(self) -> None:
        """Clear the line; a second call does nothing."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._watcher is not None:
            self._watcher.join(timeout=2)
        if self._status is not None:
            stages = logging.getLogger(_STAGES)
            stages.removeHandler(self._handler)
            stages.setLevel(self._level)
            self._status.stop()

    def _update(self, tasks: str) -> None:
        if self._status is not None:
            seconds = time.monotonic() - self._began
            self._status.update(escape(f"{self._title}: {self._phase}{tasks} ({seconds:.0f} s)"))

    def _watch(self) -> None:
        with suppress(Exception):  # the session is going away
            while self._spark is not None and not self._stopped.wait(_EVERY_SECONDS):
                self._update(_tasks(self._spark))


class _PhaseHandler(logging.Handler):
    """Takes the lines of stages that are done."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.DEBUG)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Show one line."""
        self._progress.done(record.getMessage())


def _tasks(spark: SparkSession) -> str:
    """Return how many tasks of the stages at work are done, as text."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    if not known:
        return ""
    done = sum(stage.numCompletedTasks for stage in known)
    return f", task {done} of {sum(stage.numTasks for stage in known)}"
