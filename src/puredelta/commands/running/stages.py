"""The stages of one statement: timed, logged and shown to whoever watches, all in one place."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeAlias, TypeVar

logger = logging.getLogger("puredelta.stage")
"""A name of its own: who reads its lines need not know which module a stage is in."""

P = ParamSpec("P")
R = TypeVar("R")

Observer: TypeAlias = Callable[[str, Any], None]
"""Gets the name of each stage that is done, and its outcome."""
Around: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Makes the context that a stage of this name runs in."""


def ignore_stage(_name: str, _outcome: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Wall-clock time of the phases that the history names; 0 for one that did not run."""

    execution_ms: int = 0
    materialize_source_ms: int = 0
    scan_ms: int = 0
    """Pruning, the search for rows, and the decision what to write."""
    rewrite_ms: int = 0
    """Writing new rows and copying those of touched files, which overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimer:
    """Runs the stages of one statement, one after the other."""

    statement: str
    """What the log calls it."""
    observe: Observer = ignore_stage
    around: Sequence[Around] = ()
    """What goes on beside every stage: progress, spans."""
    _seconds: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, name: str, run: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a stage; its outcome describes itself in the debug line."""
        started = time.monotonic()
        with ExitStack() as contexts:
            for around in self.around:
                contexts.enter_context(around(name))
            outcome = run(*args, **kwargs)
        self._seconds[name] = elapsed = time.monotonic() - started
        if logger.isEnabledFor(logging.DEBUG):
            described = described_outcome(outcome)
            logger.debug(
                "%s: %s: %s (%.3f s)",
                self.statement,
                name,
                described,
                elapsed,
                extra={
                    "puredelta_table": self.statement,
                    "puredelta_stage": name,
                    "puredelta_outcome": described,
                    "puredelta_seconds": elapsed,
                },
            )
        self.observe(name, outcome)
        return outcome

    def elapsed_ms(self, *names: str) -> int:
        """Return the milliseconds that stages took together, at least 1; 0 if none has run."""
        seconds = [self._seconds[name] for name in names if name in self._seconds]
        return max(1, round(sum(seconds) * 1000)) if seconds else 0

    @property
    def seconds(self) -> dict[str, float]:
        """The time of every stage that has run, in their order."""
        return dict(self._seconds)


def described_outcome(outcome: object) -> str:
    """Return what an outcome says of itself."""
    describe: Callable[[], str] = getattr(outcome, "describe", lambda: "done")
    return describe()
