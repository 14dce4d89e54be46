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
    _batches: Sequence[Any] = ()
    _answers: list[Any] = field(default_factory=list)

    @property
    def sparkContext(self) -> LocalWorkers:  # noqa: N802 - Spark's name
        return self

    def parallelize(self, batches: Sequence[Any], num_slices: int) -> LocalWorkers:
        assert num_slices == len(batches)
        self._batches, self._answers = batches, []
        return self

    def flatMap(self, work: Work) -> LocalWorkers:  # noqa: N802 - Spark's name
        for number, batch in enumerate(self._batches):
            if number == self.able_tasks:
                raise RuntimeError("ModuleNotFoundError: No module named 'pyarrow'")
            self._answers += [list(work(batch)) for _ in range(self.attempts)][-1]
        return self

    def collect(self) -> list[Any]:
        return self._answers
