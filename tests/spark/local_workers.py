"""A session whose workers are this process, to see what becomes of tasks that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Work = Callable[[Any], Iterable[Any]]


@dataclass(eq=False)
class LocalWorkers:
    """Stands for a session, its context and its data; runs one batch after the other."""

    able_tasks: int | None = None
    """How many tasks succeed before a worker turns out to have no pyarrow; ``None``: all."""
    attempts: int = 1
    """How often every task runs; the last answers count."""
    defaultParallelism: int = 2  # noqa: N815 - Spark's name
    master: str = "yarn"
    answers: list[Any] = field(default_factory=list)
    """Of the last job."""

    @property
    def sparkContext(self) -> LocalWorkers:  # noqa: N802 - Spark's name
        return self

    def parallelize(self, batches: Sequence[Any], num_slices: int) -> LocalBatches:
        assert num_slices == len(batches)
        return LocalBatches(self, batches)


@dataclass(frozen=True)
class LocalBatches:
    """Stands for an RDD."""

    context: LocalWorkers
    batches: Sequence[Any]

    def flatMap(self, work: Work) -> LocalBatches:  # noqa: N802 - Spark's name
        answers = self.context.answers
        answers.clear()
        for number, batch in enumerate(self.batches):
            if number == self.context.able_tasks:
                raise RuntimeError("ModuleNotFoundError: No module named 'pyarrow'")
            answers += [list(work(batch)) for _ in range(self.context.attempts)][-1]
        return self

    def collect(self) -> list[Any]:
        return list(self.context.answers)
