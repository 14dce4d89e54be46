"""Files that Python workers write: planned apart, written by one Spark job.

Whoever wants files yields what workers shall write and is sent their answers (`WritePlan`). In
between another plan may join, so that the copies of touched files and the new rows of a statement
are one job: one start, one set of tasks that the cores share.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from pyspark import SparkContext

from puredelta.spark.offload.workers import Fields, collect_if_fit, packed_code
from puredelta.spark.session.fallback import NotApplicable
from puredelta.worker.write_file import FileAnswer, answer_with, of_tuples

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WriteOrders:
    """What workers shall write, in one task per batch."""

    batches: Sequence[Sequence[Fields]]
    write: Callable[[Iterable[Fields]], Sequence[Fields]]
    """A function of a worker module; it answers with the fields of `FileAnswer`."""


WriteAnswers: TypeAlias = "list[FileAnswer] | NotApplicable"
"""In no fixed order. After a refusal files of tasks that succeeded may be there."""
WritePlan: TypeAlias = Generator[WriteOrders, WriteAnswers, T]
"""Yields once, or not at all if there is nothing to write. If the job raises, or nothing can be
made of the answers, it removes what was written, or says who does.
"""


def write_alone(context: SparkContext, plan: WritePlan[T]) -> T:
    """Carry a plan out. Runs one Spark job, none if the plan asks for nothing."""
    started = _Started(plan)
    _carry_out(context, [started])
    return started.result


def write_both(context: SparkContext, first: WritePlan[A], second: WritePlan[B]) -> tuple[A, B]:
    """Carry two plans out by one Spark job; tasks of the second come first in it.

    If the second makes nothing of its answers, the files of the first stay: whoever asked for
    them removes them.
    """
    plans = _Started(first), _Started(second)
    _carry_out(context, plans)
    return plans[0].result, plans[1].result


class _Started(Generic[T]):
    """A plan, and how far it got."""

    def __init__(self, steps: WritePlan[T]) -> None:
        self._steps = steps
        self._results: list[T] = []
        self.orders: WriteOrders | None = None
        """What it waits for."""

    @property
    def result(self) -> T:
        return self._results[0]

    def start(self) -> None:
        try:
            self.orders = next(self._steps)
        except StopIteration as end:
            self._results.append(end.value)

    def go_on(self, answers: WriteAnswers) -> None:
        self.orders = None
        try:
            self._steps.send(answers)
        except StopIteration as end:
            self._results.append(end.value)
        else:
            raise AssertionError("a plan yields once")

    def fail(self, failure: BaseException) -> BaseException | None:
        """Let the plan clean up if it waits; return what it makes of the failure."""
        if self.orders is None:
            return None
        self.orders = None
        try:
            self._steps.throw(failure)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            return error
        raise AssertionError("a plan yields once")


def _carry_out(context: SparkContext, plans: Sequence[_Started[Any]]) -> None:
    try:
        for plan in plans:
            plan.start()
        waiting = [(plan, plan.orders) for plan in plans if plan.orders is not None]
        answers = _answers(context, [orders for _, orders in waiting]) if waiting else []
        for (plan, _), answered in zip(waiting, answers, strict=True):
            plan.go_on(answered)
    except BaseException as failure:  # noqa: BLE001 - raised again
        _fail(plans, failure)


def _fail(plans: Sequence[_Started[Any]], failure: BaseException) -> NoReturn:
    """Let plans that wait clean up; the first, if it waits, has the name for what happened."""
    named, *_ = [plan.fail(failure) for plan in plans]
    raise named or failure


def _answers(context: SparkContext, orders: Sequence[WriteOrders]) -> list[WriteAnswers]:
    payloads = tuple(packed_code(one.write) for one in orders)
    # New rows make few tasks, and long ones: copies fill what they leave.
    numbered = list(enumerate(one.batches for one in orders))
    batches = [(number, batch) for number, some in reversed(numbered) for batch in some]
    found = collect_if_fit(context, batches, functools.partial(answer_with, payloads))
    if isinstance(found, NotApplicable):
        return [found] * len(orders)
    return [
        all_done(of_tuples(fields for of, fields in found if of == number))
        for number in range(len(orders))
    ]


def all_done(answers: list[FileAnswer]) -> WriteAnswers:
    """Return the answers, or the refusal of one of them."""
    reason = next((answer.refusal for answer in answers if answer.refusal), None)
    return answers if reason is None else NotApplicable(reason=reason)
