"""Two plans, one job: what each makes of answers, refusals and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.offload.workers import Fields
from puredelta.spark.offload.write_job import (
    WriteAnswers,
    WriteOrders,
    WritePlan,
    write_alone,
    write_both,
)
from puredelta.spark.session.fallback import NotApplicable
from puredelta.worker import write_file
from puredelta.worker.write_file import FileAnswer, as_tuples
from tests.spark.local_workers import LocalWorkers


def write(orders: Iterable[Fields]) -> Sequence[Fields]:
    """Answer each order with its own number; the second field is what goes wrong."""
    answers = []
    for ordinal, problem in orders:
        if problem == "disk full":
            raise OSError(28, "No space left on device")
        answers.append(FileAnswer(ordinal=ordinal, name=f"{ordinal}", refusal=problem))
    return as_tuples(answers)


def write_again(orders: Iterable[Fields]) -> Sequence[Fields]:
    """Answer as another function, which workers must not mistake for the first."""
    return as_tuples(FileAnswer(ordinal=-ordinal, name="again") for ordinal, _ in orders)


class Plans:
    """Plans that note what happens to them."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []

    def plan(
        self,
        name: str,
        *batches: Sequence[Fields],
        by: Any = write,
        ends: Callable[[], None] = lambda: None,
    ) -> WritePlan[WriteAnswers]:
        try:
            answers = yield WriteOrders(batches, by)
            ends()
        except Exception as failure:
            self.notes.append((name, type(failure).__name__))
            raise RuntimeError(f"{name} failed") from failure
        self.notes.append((name, "NotApplicable" if isinstance(answers, NotApplicable) else "done"))
        return answers


@pytest.fixture
def plans() -> Plans:
    return Plans()


@pytest.fixture
def context() -> Any:
    return LocalWorkers().sparkContext


def ordinals(answers: WriteAnswers) -> list[int]:
    assert not isinstance(answers, NotApplicable)
    return sorted(answer.ordinal for answer in answers)


def test_each_plan_gets_its_own_answers(context: Any, plans: Plans) -> None:
    first, second = write_both(
        context,
        plans.plan("first", [(1, None), (2, None)], [(3, None)]),
        plans.plan("second", [(1, None)], [(2, None)], by=write_again),
    )
    assert (ordinals(first), ordinals(second)) == ([1, 2, 3], [-2, -1])


def test_one_spark_job_does_both(spark: SparkSession, plans: Plans) -> None:
    context = spark.sparkContext
    context.setJobGroup("write job test", "")
    try:
        first, second = write_both(
            context,
            plans.plan("first", [(1, None)], [(2, None)], by=_shipped),
            plans.plan("second", [(7, None)], by=_shipped),
        )
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert (ordinals(first), ordinals(second)) == ([1, 2], [7])
    assert len(context.statusTracker().getJobIdsForGroup("write job test")) == 1


def _shipped(orders: Iterable[Fields]) -> Sequence[Fields]:
    """Answer inside a worker, which has none of the code of tests."""
    return [(ordinal, None, 0, 0, 0, 0, b"", (), None, (), ()) for ordinal, _ in orders]


def test_a_plan_that_refuses_does_not_keep_the_other(context: Any, plans: Plans) -> None:
    first, second = write_both(
        context,
        plans.plan("first", [(1, None)], [(2, "cannot read it")]),
        plans.plan("second", [(3, None)]),
    )
    assert first == NotApplicable(reason="cannot read it")
    assert ordinals(second) == [3]


def test_unfit_workers_refuse_both(plans: Plans) -> None:
    context: Any = LocalWorkers(able_tasks=1).sparkContext
    both = write_both(context, plans.plan("first", [(1, None)]), plans.plan("second", [(3, None)]))
    assert [isinstance(one, NotApplicable) for one in both] == [True, True]
    assert plans.notes == [("first", "NotApplicable"), ("second", "NotApplicable")]


def test_a_failed_job_fails_both_and_the_first_names_it(context: Any, plans: Plans) -> None:
    with pytest.raises(RuntimeError, match="first failed"):
        write_both(
            context,
            plans.plan("first", [(1, None)]),
            plans.plan("second", [(3, "disk full")]),
        )
    assert plans.notes == [("first", "OSError"), ("second", "OSError")]


def test_a_plan_that_fails_in_the_end_fails_the_next(context: Any, plans: Plans) -> None:
    def incomplete() -> None:
        raise ValueError("a row is missing")

    with pytest.raises(RuntimeError, match="first failed"):
        write_both(
            context,
            plans.plan("first", [(1, None)], ends=incomplete),
            plans.plan("second", [(3, None)]),
        )
    assert plans.notes == [("first", "ValueError"), ("second", "RuntimeError")]


def test_a_plan_that_cannot_begin_fails_the_one_before(context: Any, plans: Plans) -> None:
    def cannot() -> WritePlan[WriteAnswers]:
        raise ValueError("no such directory")
        yield

    with pytest.raises(RuntimeError, match="first failed"):
        write_both(context, plans.plan("first", [(1, None)]), cannot())
    assert plans.notes == [("first", "ValueError")]


def test_plans_without_orders_run_nothing(plans: Plans) -> None:
    def nothing() -> WritePlan[str]:
        return "nothing to do"
        yield

    no_context: Any = None
    assert write_alone(no_context, nothing()) == "nothing to do"
    assert write_both(no_context, nothing(), nothing()) == ("nothing to do",) * 2
    context: Any = LocalWorkers().sparkContext
    found, answers = write_both(context, nothing(), plans.plan("second", [(3, None)]))
    assert (found, ordinals(answers)) == ("nothing to do", [3])


def test_a_worker_without_the_libraries_says_so_for_each_order() -> None:
    no_such_module = b"cno_such_module\nsplit\n."
    answers = write_file.answer_with([b"", no_such_module], (1, [(3, None), (4, None)]))
    assert [(number, fields[0]) for number, fields in answers] == [(1, 3), (1, 4)]
    assert all("no_such_module" in str(fields) for _, fields in answers)
