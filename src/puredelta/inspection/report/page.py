"""The page of a report: a template filled with facts. Every text of the table is escaped."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from puredelta.inspection.report.charts import BOTTOM, HEIGHT, WIDTH, bytes_chart, rows_chart
from puredelta.inspection.report.facts import ReportFacts, report_facts
from puredelta.inspection.table.described import time_text
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.replay.table_log import TableLog
from puredelta.quantities import counted, size_text
from puredelta.version import __version__

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that show nothing, or that turn the text after them around."""


def report_page(log: TableLog, *, commits: int = 200, clock: Clock = wall_clock) -> str:
    """Return the page as HTML: one document without scripts that loads nothing.

    Reads the log, the newest ``commits`` commits, and a listing of the table's root.

    Raises:
        TableNotFoundError: there is no table.
        DeltaError: the newest version cannot be read.
    """
    return render(report_facts(log, commits=commits, clock=clock))


def render(facts: ReportFacts) -> str:
    """Return the page of some facts."""
    written = sum(c.added_bytes for c in facts.commits)
    changed = sum(min(c.changed_bytes, c.added_bytes) for c in facts.commits)
    location = str(facts.detail["location"])
    return _template().render(
        facts=facts,
        title=facts.detail["name"] or location.rstrip("/").rpartition("/")[2] or location,
        rows_chart=rows_chart(facts.commits),
        bytes_chart=bytes_chart(facts.commits),
        written_bytes=written,
        changed_bytes=changed,
        chart_width=WIDTH,
        chart_height=HEIGHT,
        chart_bottom=BOTTOM,
        most_files=max((bucket.num_files for bucket in facts.buckets), default=0),
        version=__version__,
    )


def _visible(value: object) -> str:
    """Return a text with what cannot be seen written out."""
    text = "" if value is None else str(value)
    return _UNSEEN.sub(lambda match: repr(match[0])[1:-1], text)


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_finalized,
    )
    environment.filters |= {"size": size_text, "time": time_text, "counted": counted}
    source = resources.files("puredelta.inspection.report").joinpath("page.html.j2")
    return environment.from_string(source.read_text(encoding="utf-8"))


def _finalized(value: Any) -> Any:
    """Clean every text that the template prints; marked-up text is the template's own."""
    return (
        value if hasattr(value, "__html__") or isinstance(value, int | float) else _visible(value)
    )
