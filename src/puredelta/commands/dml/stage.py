"""The stages of one statement: timed, logged and shown to an observer, all in one place."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeAlias, TypeVar

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

Observer: TypeAlias = Callable[[str, Any], None]
"""Gets the name of each stage that is done, and its outcome."""


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
    _seconds: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, name: str, run: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a stage; its outcome describes itself in the debug line."""
        started = time.monotonic()
        outcome = run(*args, **kwargs)
        self._seconds[name] = elapsed = time.monotonic() - started
        if logger.isEnabledFor(logging.DEBUG):
            describe = getattr(outcome, "describe", lambda: "done")
            logger.debug("%s: %s: %s (%.3f s)", self.statement, name, describe(), elapsed)
        self.observe(name, outcome)
        return outcome

    def elapsed_ms(self, *names: str) -> int:
        """Return the milliseconds that stages took together, at least 1; 0 if none has run."""
        seconds = [self._seconds[name] for name in names if name in self._seconds]
        return max(1, round(sum(seconds) * 1000)) if seconds else 0
