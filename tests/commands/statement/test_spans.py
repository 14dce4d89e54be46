"""Spans go to the tracer of the application, if it has imported one; nothing is imported here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from puredelta.commands.statement.stages import (
    find_tracer,
    set_counts,
    stage_span,
    statement_span,
)


class Span:
    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name, self.attributes = name, dict(attributes)

    def set_attributes(self, more: dict[str, Any]) -> None:
        self.attributes |= more


class Tracer:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.depths: list[int] = []
        self._depth = 0

    @contextmanager
    def start_as_current_span(self, name: str, *, attributes: dict[str, Any]) -> Iterator[Span]:
        span = Span(name, attributes)
        self.spans.append(span)
        self.depths.append(self._depth)
        self._depth += 1
        yield span
        self._depth -= 1


def test_an_application_without_tracing_has_no_spans() -> None:
    assert "opentelemetry.trace" not in sys.modules
    assert find_tracer() is None
    with statement_span(None, "MERGE", "file:/t") as span:
        set_counts(span, {"rows": 1})


def test_stages_stand_below_their_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    module, tracer = ModuleType("opentelemetry.trace"), Tracer()
    module.get_tracer = lambda *_: tracer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", module)
    with statement_span(find_tracer(), "MERGE", "file:/t") as span:
        with stage_span(tracer, "5 search"):
            pass
        set_counts(span, {"rows_inserted": 3, "jobs": None})
    assert [s.name for s in tracer.spans] == ["puredelta MERGE", "puredelta 5 search"]
    assert tracer.depths == [0, 1]
    assert tracer.spans[0].attributes == {
        "db.system.name": "delta",
        "db.operation.name": "MERGE",
        "puredelta.table": "file:/t",
        "puredelta.rows_inserted": 3,
    }
