"""Two Spark jobs at the same time, of which both succeed or both are cancelled, and what runs.

A classic session has Spark's status tracker. A Connect client has what the server reports of its
operations: tasks, but no jobs.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, Generic, TypeVar

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from puredelta.spark.jvm.gateway import JVM_ERRORS, insist
from puredelta.spark.jvm.jobs import TaskCounts, count_jobs, count_running_tasks, find_tasks
from puredelta.spark.session.session import is_connect

logger = logging.getLogger(__name__)

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

BACKGROUND = "puredelta-background"
"""Name of the second thread."""
_CANCEL_AGAIN_SECONDS = 0.2
_TASKS_STOP_SECONDS_MAX = 5.0
_ASK_AGAIN_SECONDS = 0.02


def run_concurrently(
    spark: SparkSession, background: Callable[[], A], foreground: Callable[[], B]
) -> tuple[A, B]:
    """Run ``background`` in a second thread while ``foreground`` runs in this one.

    Job group, description and tags of the calling thread hold for both. When one fails, the
    Spark jobs of the other are cancelled; it has ended, too, when the first error is raised. The
    same holds if a user interrupts this thread; a second interrupt ends the waiting.
    """
    with tagged_jobs(spark) as tag:
        order: list[BaseException] = []
        other = _Work(background, order)
        thread = InheritableThread(
            target=lambda: _run(other, lambda: _cancel(spark, tag)),
            session=spark,
            name=BACKGROUND,
        )
        thread.start()
        own = _Work(foreground, order)
        own.run()
        _wait(other.ended, order, lambda: _cancel(spark, tag))
        thread.join()
        if order:
            raise order[0]
        return other.results[0], own.results[0]


@dataclass(slots=True)
class _Work(Generic[T]):
    """A call, and what came of it. ``order`` is shared: who failed first."""

    call: Callable[[], T]
    order: list[BaseException]
    results: list[T] = field(default_factory=list)
    error: BaseException | None = None
    ended: Event = field(default_factory=Event)

    def run(self) -> None:
        try:
            self.results.append(self.call())
        except BaseException as error:  # noqa: BLE001 - raised in the calling thread
            self.error = error
            self.order.append(error)
        finally:
            self.ended.set()


def _wait(ended: Event, order: list[BaseException], cancel: Callable[[], None]) -> None:
    """Wait for other work, which is cancelled once anything has failed or interrupts the wait.

    An event is waited for: a thread whose ``join`` is interrupted counts as ended in Python 3.11.
    """
    try:
        while not ended.is_set():
            if order:
                cancel()  # again: it may have been between two jobs
            ended.wait(_CANCEL_AGAIN_SECONDS if order else None)
    except BaseException as interruption:
        if order:
            raise
        order.append(interruption)
        _wait(ended, order, cancel)


def _run(work: _Work[T], cancel: Callable[[], None]) -> None:
    work.run()
    if work.error is not None:
        cancel()


@contextmanager
def tagged_jobs(spark: SparkSession) -> Iterator[str]:
    """Give all jobs started inside, and in threads that inherit from here, a tag of their own.

    Those that run still when something fails inside, such as an interrupt of a call into the JVM,
    are cancelled. The error is raised when their tasks have ended, too, as far as they do so soon:
    what they write can be removed then.
    """
    tag = f"puredelta-{uuid.uuid4()}"
    if is_connect(spark):
        spark.addTag(tag)
    else:
        spark.sparkContext.addJobTag(tag)
    try:
        yield tag
    except BaseException:
        _quietly(lambda: _cancel(spark, tag))
        _quietly(lambda: _await_tasks(spark, tag))
        raise
    finally:
        _quietly(lambda: _untag(spark, tag))


def _await_tasks(spark: SparkSession, tag: str) -> None:
    """Wait until no task of the jobs runs any more, or does not stop."""
    if is_connect(spark):
        return  # a client knows nothing of tasks
    until = time.monotonic() + _TASKS_STOP_SECONDS_MAX
    while count_running_tasks(spark, tag) and time.monotonic() < until:
        time.sleep(_ASK_AGAIN_SECONDS)


def _quietly(end: Callable[[], None]) -> None:
    """Do what must hide no other error."""
    try:
        insist(end)
    except (*JVM_ERRORS, OSError) as failure:
        logger.warning("Jobs of a statement could not be ended: %s", failure)


def _untag(spark: SparkSession, tag: str) -> None:
    if is_connect(spark):
        spark.removeTag(tag)
    else:
        spark.sparkContext.removeJobTag(tag)


def _cancel(spark: SparkSession, tag: str) -> None:
    if is_connect(spark):
        spark.interruptTag(tag)
    else:
        spark.sparkContext.cancelJobsWithTag(tag)


# --- What runs --------------------------------------------------------------------------------

_SPARK_BAR = "spark.ui.showConsoleProgress"


def count_started_jobs(spark: SparkSession, tag: str) -> int | None:
    """Return how many jobs with the tag have been started; ``None`` if Spark does not say."""
    return None if is_connect(spark) else count_jobs(spark, tag)


def find_running_tasks(spark: SparkSession) -> TaskCounts | None:
    """Return the tasks of all jobs that run; ``None`` if none does, or Spark does not say."""
    return None if is_connect(spark) else find_tasks(spark, None)


def shows_own_bar(spark: SparkSession, settings: Mapping[str, str]) -> bool:
    """Return whether Spark itself shows the progress of jobs in a terminal of this process."""
    return not is_connect(spark) and settings.get(_SPARK_BAR, "true").lower() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTasks:
    """The tasks of a statement."""

    find: Callable[[], TaskCounts | None]
    """Returns those that run now; ``None`` if none does, or Spark does not say."""
    close: Callable[[], None] = lambda: None
    """Ends the watch."""


def watch_tasks(spark: SparkSession, tag: str | None) -> WatchedTasks:
    """Watch the tasks of the jobs with a tag; without one there are none."""
    if tag is None:
        return WatchedTasks(find=lambda: None)
    if not is_connect(spark):
        return WatchedTasks(find=partial(find_tasks, spark, tag))
    tasks = _ReportedTasks()
    handler: Any = tasks
    spark.registerProgressHandler(handler)
    return WatchedTasks(
        find=lambda: tasks.latest, close=lambda: spark.removeProgressHandler(handler)
    )


@dataclass(slots=True, eq=False)
class _ReportedTasks:
    """The server's reports on a client's operations: a progress handler of PySpark."""

    latest: TaskCounts | None = None

    def __call__(
        self,
        stages: Any,
        inflight_tasks: int,
        operation_id: Any,
        done: bool,  # noqa: FBT001 - PySpark's signature
    ) -> None:
        """Receive PySpark's arguments for every handler."""
        del inflight_tasks, operation_id
        counted = list(stages or ())
        tasks = TaskCounts(
            done=sum(stage.num_completed_tasks for stage in counted),
            known=sum(stage.num_tasks for stage in counted),
            running_jobs=1,
        )
        self.latest = None if done else tasks
