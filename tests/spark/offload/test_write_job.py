"""Two plans, one job: what becomes of answers, refusals and failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError, ErrorCode
from puredelta.spark.offload.workers import WorkerCalls, WorkerSettings
from puredelta.spark.offload.write_job import (
    PlannedFiles,
    write_alone,
    write_both,
)
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.write.written_files import keep_answered
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from tests.faults import MemoryStore
from tests.spark.local_workers import LocalWorkers

SETTINGS = WorkerSettings()
Order = tuple[int, str | None]


def write(orders: Sequence[Order]) -> list[tuple[Any, ...]]:
    """Answer each order with its own number; the second field is what goes wrong."""
    answers = []
    for ordinal, problem in orders:
        if problem == "disk full":
            raise OSError(28, "disk full")
        answers.append(FileAnswer(ordinal=ordinal, name=f"{ordinal}", refusal=problem))
    return [FILE_ANSWERS.encode(answer) for answer in answers]


def write_again(orders: Sequence[Order]) -> list[tuple[Any, ...]]:
    """Answer as another function, which workers must not mistake for the first."""
    return [
        FILE_ANSWERS.encode(FileAnswer(ordinal=-ordinal, name="again")) for ordinal, _ in orders
    ]


class Plans:
    """Plans that note what happens to them."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def plan(
        self,
        name: str,
        *messages: Sequence[Order],
        by: Callable[[Any], Any] = write,
        ends: Callable[[], None] = lambda: None,
    ) -> PlannedFiles[list[int]]:
        def finish(answers: list[FileAnswer]) -> list[int]:
            ends()
            self.notes.append(f"{name} is finished")
            return sorted(answer.ordinal for answer in answers)

        return PlannedFiles(
            calls=WorkerCalls(function=by, messages=messages),
            finish=finish,
            discard=partial(self.notes.append, f"{name} is discarded"),
            location=f"where {name} lies",
        )


@pytest.fixture
def plans() -> Plans:
    return Plans()


@pytest.fixture
def session() -> Any:
    return LocalWorkers()


def test_each_plan_gets_its_own_answers(session: Any, plans: Plans) -> None:
    both = write_both(
        session,
        plans.plan("first", [(1, None), (2, None)], [(3, None)]),
        plans.plan("second", [(1, None)], [(2, None)], by=write_again),
        SETTINGS,
    )
    assert both == ([1, 2, 3], [-2, -1])
    alone = write_alone(session, plans.plan("third", [(4, None)]), SETTINGS)
    assert alone == [4]
    assert not [note for note in plans.notes if "discarded" in note]


def test_tasks_of_the_second_plan_begin_first(plans: Plans) -> None:
    """New rows make few tasks, and long ones: copies fill what they leave."""
    workers = LocalWorkers()
    session: Any = workers
    write_both(
        session,
        plans.plan("copies", [(1, None)], [(2, None)]),
        plans.plan("new rows", [(3, None)]),
        SETTINGS,
    )
    found = [FILE_ANSWERS.decode(one) for _, _, answers in workers.answers for one in answers]
    assert [answer.ordinal for answer in found] == [3, 1, 2]


def test_one_spark_job_does_both(spark: SparkSession, plans: Plans) -> None:
    def shipped(orders: Sequence[Order]) -> list[tuple[Any, ...]]:
        """Answer inside a worker, which has none of the code of tests."""
        return [(ordinal, None, 0, 0, 0, 0, b"", (), None, (), (), 0, ()) for ordinal, _ in orders]

    context = spark.sparkContext
    context.setJobGroup("write job test", "")
    try:
        both = write_both(
            spark,
            plans.plan("first", [(1, None)], [(2, None)], by=shipped),
            plans.plan("second", [(7, None)], by=shipped),
            SETTINGS,
        )
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert both == ([1, 2], [7])
    assert len(context.statusTracker().getJobIdsForGroup("write job test")) == 1


def test_a_plan_that_is_refused_does_not_keep_the_other(session: Any, plans: Plans) -> None:
    first, second = write_both(
        session,
        plans.plan("first", [(1, None)], [(2, "cannot read it")]),
        plans.plan("second", [(3, None)]),
        SETTINGS,
    )
    assert first == NotApplicable(reason="cannot read it")
    assert second == [3]
    assert plans.notes == ["second is finished", "first is discarded"]


def test_a_plan_that_was_refused_before_does_not_keep_the_other(session: Any, plans: Plans) -> None:
    refused = NotApplicable(reason="no local file system")
    plan = partial(plans.plan, "other", [(3, None)])
    assert write_both(session, refused, plan(), SETTINGS) == (refused, [3])
    assert write_both(session, plan(), refused, SETTINGS) == ([3], refused)
    no_session: Any = None
    assert write_both(no_session, refused, refused, SETTINGS) == (refused, refused)
    assert write_alone(no_session, refused, SETTINGS) == refused


def test_unfit_workers_refuse_both(plans: Plans) -> None:
    session: Any = LocalWorkers(able_tasks=1)
    both = write_both(
        session, plans.plan("first", [(1, None)]), plans.plan("second", [(3, None)]), SETTINGS
    )
    assert [isinstance(one, NotApplicable) for one in both] == [True, True]
    assert plans.notes == ["second is discarded", "first is discarded"]


def test_a_session_that_wants_no_workers_has_none(plans: Plans) -> None:
    no_session: Any = None
    settings = WorkerSettings(enabled=False)
    refused = write_alone(no_session, plans.plan("only", [(1, None)]), settings)
    assert refused == NotApplicable(reason="spark.puredelta.workers.enabled is false")


def test_a_failed_job_discards_both(session: Any, plans: Plans) -> None:
    with pytest.raises(OSError, match="disk full"):
        write_both(
            session,
            plans.plan("first", [(1, None)]),
            plans.plan("second", [(3, "disk full")]),
            SETTINGS,
        )
    assert plans.notes == ["second is discarded", "first is discarded"]


@pytest.mark.parametrize("failing", ["first", "second"])
def test_a_plan_that_cannot_be_finished_discards_both(
    session: Any, plans: Plans, failing: str
) -> None:
    def incomplete() -> None:
        raise ValueError("a row is missing")

    first, second = (
        plans.plan(name, [(1, None)], ends=incomplete if name == failing else lambda: None)
        for name in ("first", "second")
    )
    with pytest.raises(ValueError, match="a row is missing"):
        write_both(session, first, second, SETTINGS)
    assert plans.notes[-2:] == ["second is discarded", "first is discarded"]


def test_what_cannot_be_discarded_hides_no_failure(session: Any) -> None:
    def cannot() -> None:
        raise OSError(13, "not allowed")

    plan: PlannedFiles[None] = PlannedFiles(
        calls=WorkerCalls(function=write, messages=[[(1, "disk full")]]),
        finish=lambda _: None,
        discard=cannot,
        location="",
    )
    with pytest.raises(OSError, match="disk full"):
        write_alone(session, plan, SETTINGS)


def test_plans_without_calls_run_nothing(plans: Plans) -> None:
    no_session: Any = None
    assert write_alone(no_session, plans.plan("nothing"), SETTINGS) == []
    nothing = plans.plan("first"), plans.plan("second")
    assert write_both(no_session, *nothing, SETTINGS) == ([], [])
    session: Any = LocalWorkers()
    one = plans.plan("second", [(3, None)])
    assert write_both(session, plans.plan("first"), one, SETTINGS) == ([], [3])


def test_what_the_storage_refuses_is_named(plans: Plans) -> None:
    session: Any = LocalWorkers()
    full = plans.plan("only", [(1, "disk full")], by=_no_space)
    with pytest.raises(Exception, match="could not be written to where only lies"):
        write_alone(session, full, SETTINGS)


def _no_space(_: Any) -> None:
    raise OSError(28, "No space left on device")


def stored(*paths: str) -> MemoryStore:
    store = MemoryStore()
    for path in paths:
        store.put(path, b"1234")
    return store


def test_files_of_no_answer_are_deleted() -> None:
    store = stored("job/p=1/a", "job/p=1/lost", "job/b")
    answers = {
        path: FileAnswer(ordinal=0, name=path, size_bytes=4) for path in ("job/p=1/a", "job/b")
    }
    keep_answered(store, store.walk("job"), answers)
    assert sorted(store.files) == ["job/b", "job/p=1/a"]


@pytest.mark.parametrize(
    ("paths", "seen"), [(["job/b"], "no such file"), (["job/a", "job/b"], "4 bytes")]
)
def test_a_file_that_the_driver_does_not_see_fails(paths: list[str], seen: str) -> None:
    """Its worker has another disk at the path of the table."""
    store = stored(*paths)
    answers = {"job/a": FileAnswer(ordinal=0, name="a", size_bytes=5)}
    with pytest.raises(DeltaError, match=f"5 bytes to memory:/table/job/a.* sees {seen}") as caught:
        keep_answered(store, store.walk("job"), answers)
    assert caught.value.code is ErrorCode.WRITE_FAILED


def test_a_listing_that_lags_behind_is_not_believed() -> None:
    store = stored("job/a")
    keep_answered(store, [], {"job/a": FileAnswer(ordinal=0, name="a", size_bytes=4)})
    assert list(store.files) == ["job/a"]


def test_a_path_that_the_file_system_spells_otherwise_is_kept() -> None:
    """Where ``p=A`` and ``p=a`` are one directory the listing has the older spelling."""
    store = stored("job/p=A/a", "job/p=A/b")
    answers = {f"job/p={p}/{name}": FileAnswer(ordinal=0, size_bytes=4) for p, name in ("Aa", "ab")}
    keep_answered(store, store.walk("job"), answers)
    assert sorted(store.files) == ["job/p=A/a", "job/p=A/b"]
