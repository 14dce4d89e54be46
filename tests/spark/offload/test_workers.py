"""What comes back from workers: answers, refusals and failures."""

from __future__ import annotations

import functools
import importlib
import signal
from operator import neg
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.offload import workers
from puredelta.spark.offload.workers import (
    WorkerCalls,
    WorkerSettings,
    assign_to_tasks,
    count_tasks,
    run_in_workers,
)
from puredelta.spark.session.session import NotApplicable
from tests.spark.local_workers import LocalWorkers

SETTINGS = WorkerSettings()


def test_answers_come_by_call(spark: SparkSession) -> None:
    calls = [
        WorkerCalls(function=abs, messages=[-1, 2, -3]),
        WorkerCalls(function=neg, messages=[]),
        WorkerCalls(function=neg, messages=[1]),
    ]
    for settings in (SETTINGS, WorkerSettings(quickack=False, gc_freeze=False, keep_memory=False)):
        assert run_in_workers(spark, calls, settings) == [[1, 2, 3], [], [-1]]


def test_workers_without_the_libraries_are_refused(spark: SparkSession) -> None:
    calls = [WorkerCalls(function=importlib.import_module, messages=["no_such_module"])]
    answer = run_in_workers(spark, calls, SETTINGS)
    assert isinstance(answer, NotApplicable)
    assert "ModuleNotFoundError" in answer.reason


def test_another_failure_is_raised(spark: SparkSession) -> None:
    calls = [WorkerCalls(function=int, messages=["a text"])]
    with pytest.raises(Exception, match="a text"):
        run_in_workers(spark, calls, SETTINGS)


def test_a_worker_that_a_signal_ends_leaves_the_work_to_spark(spark: SparkSession) -> None:
    """As Arrow ends one over a damaged file, or the system one that takes too much memory."""
    calls = [WorkerCalls(function=signal.raise_signal, messages=[signal.SIGKILL])]
    answer = run_in_workers(spark, calls, SETTINGS)
    assert isinstance(answer, NotApplicable)
    assert "Python worker exited unexpectedly" in answer.reason


class Missing:
    """Cannot be unpacked anywhere."""

    def __reduce__(self) -> Any:
        return importlib.import_module, ("no_such_module",)


def test_a_worker_that_cannot_unpack_a_task_refuses_quietly() -> None:
    session: Any = LocalWorkers()
    calls = [WorkerCalls(function=abs, messages=[1, Missing()])]
    assert run_in_workers(session, calls, SETTINGS) == NotApplicable(
        reason="ModuleNotFoundError on a worker: No module named 'no_such_module'"
    )


def test_workers_that_lack_a_library_are_not_asked_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session: Any = LocalWorkers(able_tasks=0)
    able = [WorkerCalls(function=abs, messages=[-1])]
    refused = run_in_workers(session, able, SETTINGS)
    assert isinstance(refused, NotApplicable)
    assert "pyarrow" in refused.reason
    session.able_tasks = None
    assert run_in_workers(session, able, SETTINGS) == refused
    other: Any = LocalWorkers()
    assert run_in_workers(other, able, SETTINGS) == [[1]]
    monkeypatch.setattr(workers, "LACKING_SECONDS", -1.0)
    assert run_in_workers(session, able, SETTINGS) == [[1]]
    monkeypatch.undo()
    assert run_in_workers(session, able, SETTINGS) == [[1]]


def test_workers_that_lack_something_for_one_task_are_asked_again() -> None:
    session: Any = LocalWorkers()
    assert isinstance(
        run_in_workers(session, [WorkerCalls(function=abs, messages=[Missing()])], SETTINGS),
        NotApplicable,
    )
    able = [WorkerCalls(function=abs, messages=[-1])]
    assert run_in_workers(session, able, SETTINGS) == [[1]]


def test_items_are_assigned_by_size() -> None:
    items = [(n,) for n in range(5)]
    assert assign_to_tasks(items, [10, 1, 1, 1, 7], num_tasks=2) == [
        [(0,)],
        [(4,), (1,), (2,), (3,)],
    ]
    assert assign_to_tasks(items[:1], [5], num_tasks=4) == [[(0,)]]


def test_tasks_are_few_and_none_is_long() -> None:
    count_local = functools.partial(count_tasks, are_objects=False)
    assert count_local([100] * 64, 2) == 2
    assert count_local([8_000_000] * 64, 2) == 62
    assert count_local([1], 8) == 1
    assert count_tasks([8_000_000] * 64, 2, are_objects=True) == 16
