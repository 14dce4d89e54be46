"""What the stages of one statement found, kept until its report is made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.report.parts import StageTime
from puredelta.commands.running.stages import described_outcome

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Recording:
    """Outcomes and times by stage; of a statement that ran again those of the last run."""

    outcomes: dict[str, object] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    context: StatementContext | None = None
    """Of the last run."""
    runs: int = 0

    def observe(self, stage: str, outcome: object) -> None:
        """Keep an outcome."""
        self.outcomes[stage] = outcome

    def on_run(self, context: StatementContext) -> None:
        """Keep the context of a run; the one before is forgotten."""
        self.context = context
        self.runs += 1

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Time what runs inside."""
        started = time.monotonic()
        yield
        self.seconds[stage] = time.monotonic() - started

    def find(self, stage: str, kind: type[T]) -> T | None:
        """Return the outcome of a stage, None if it has not run."""
        found = self.outcomes.get(stage)
        return found if isinstance(found, kind) else None

    def stages(self) -> tuple[StageTime, ...]:
        """Return what ran, in its order."""
        return tuple(
            StageTime(
                name=name, seconds=seconds, outcome=described_outcome(self.outcomes.get(name))
            )
            for name, seconds in self.seconds.items()
        )
