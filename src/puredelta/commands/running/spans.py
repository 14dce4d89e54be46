"""Spans of OpenTelemetry for statements and their stages, where the application traces anything.

Nothing is imported here: an application that has set tracing up has imported the package itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from puredelta.version import __version__

_TRACE = "opentelemetry.trace"


def find_tracer() -> Any | None:
    """Return a tracer of the application's, ``None`` if it has none."""
    trace: Any = sys.modules.get(_TRACE)
    return None if trace is None else trace.get_tracer("puredelta", __version__)


@contextmanager
def statement_span(tracer: Any | None, name: str, table: str) -> Iterator[Any | None]:
    """Let a span stand for what runs inside; an error is recorded in it."""
    if tracer is None:
        yield None
        return
    attributes = {"db.system.name": "delta", "db.operation.name": name, "puredelta.table": table}
    with tracer.start_as_current_span(f"puredelta {name}", attributes=attributes) as span:
        yield span


@contextmanager
def stage_span(tracer: Any, stage: str) -> Iterator[None]:
    """Let a span below stand for a stage."""
    with tracer.start_as_current_span(f"puredelta {stage}", attributes={"puredelta.stage": stage}):
        yield


def set_counts(span: Any | None, counts: Mapping[str, int | None]) -> None:
    """Add to a span what was counted."""
    if span is not None:
        known = {f"puredelta.{key}": count for key, count in counts.items() if count is not None}
        span.set_attributes(known)
