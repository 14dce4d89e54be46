"""Stages of one statement: times, log lines, progress and spans.

Tracing uses a package that the application has already imported; it is never imported here.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ParamSpec, TypeAlias, TypeVar

from puredelta.version import __version__

logger = logging.getLogger("puredelta.stage")
"""A separate logger, independent of the modules of the stages."""

P = ParamSpec("P")
R = TypeVar("R")


class StageName(str, Enum):
    """Names of the stages of one kind of statement, as texts."""

    def __str__(self) -> str:
        """Return the name as logs, spans and the progress line show it."""
        return str(self.value)


Observer: TypeAlias = Callable[[str, Any], None]
"""Gets the name and the outcome of each finished stage."""
Around: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Makes the context in which a stage of this name runs."""


def ignore_stage(_name: str, _outcome: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Wall-clock time of the phases in the history; 0 for one that did not run."""

    execution_ms: int = 0
    materialize_source_ms: int = 0
    scan_ms: int = 0
    """Pruning, the search for rows, and the decision."""
    rewrite_ms: int = 0
    """Writing new rows and copying those of touched files, which overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimer:
    """Runner of the stages of one statement, in order."""

    statement: str
    """The statement's name in the log."""
    observe: Observer = ignore_stage
    around: Sequence[Around] = ()
    """Context that runs beside every stage: progress, spans."""
    _seconds: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, name: str, run: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a stage; its outcome describes itself in the debug line."""
        name = str(name)
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
        """Return the milliseconds of all stages, at least 1; 0 if none has run."""
        seconds = [self._seconds[name] for name in names if name in self._seconds]
        return max(1, round(sum(seconds) * 1000)) if seconds else 0

    @property
    def seconds(self) -> dict[str, float]:
        """The time of every stage that has run, in their order."""
        return dict(self._seconds)


def described_outcome(outcome: object) -> str:
    """Return an outcome's own description."""
    describe: Callable[[], str] = getattr(outcome, "describe", lambda: "done")
    return describe()


_TRACE = "opentelemetry.trace"


def find_tracer() -> Any | None:
    """Return the application's tracer, ``None`` if it has none."""
    trace: Any = sys.modules.get(_TRACE)
    return None if trace is None else trace.get_tracer("puredelta", __version__)


@contextmanager
def statement_span(tracer: Any | None, name: str, table: str) -> Iterator[Any | None]:
    """Open a span for the block; an error is recorded in it."""
    if tracer is None:
        yield None
        return
    attributes = {"db.system.name": "delta", "db.operation.name": name, "puredelta.table": table}
    with tracer.start_as_current_span(f"puredelta {name}", attributes=attributes) as span:
        yield span


@contextmanager
def stage_span(tracer: Any, stage: str) -> Iterator[None]:
    """Open a child span for a stage."""
    with tracer.start_as_current_span(f"puredelta {stage}", attributes={"puredelta.stage": stage}):
        yield


def set_counts(span: Any | None, counts: Mapping[str, int | None]) -> None:
    """Add counts to a span."""
    if span is not None:
        known = {f"puredelta.{key}": count for key, count in counts.items() if count is not None}
        span.set_attributes(known)
