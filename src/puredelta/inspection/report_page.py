"""The page of a report: a template filled with facts and charts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from puredelta.inspection.commits import CommitFacts, newest_commits
from puredelta.inspection.described import Row, detail_row, time_text
from puredelta.inspection.findings import Finding, Severity
from puredelta.inspection.overlap import ColumnDepth, column_depths
from puredelta.inspection.table_checks import table_findings
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.quantities import counted, size_text
from puredelta.version import __version__

WIDTH, HEIGHT, BOTTOM = 800, 200, 180
"""Size of a chart, in its own units; columns stand on ``BOTTOM``."""
_GAP = 0.15
_LEAST = 1.5
"""The minimum height of a value that is not 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A rectangle of a column."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The chart's column of one commit."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Columns of equal width, left to right."""

    columns: tuple[Column, ...]
    top: str
    """The value of the full height."""
    first: str
    last: str


def rows_chart(commits: Sequence[CommitFacts]) -> Chart:
    """Rows inserted, updated and deleted by each commit, one on the other."""

    def stacked(commit: CommitFacts) -> tuple[tuple[str, int], ...]:
        return (
            ("inserted", commit.rows_inserted),
            ("updated", commit.rows_updated),
            ("deleted", commit.rows_deleted),
        )

    def title(commit: CommitFacts) -> str:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in stacked(commit))
        return f"Version {commit.version}, {commit.operation}: {counts}"

    return _chart(commits, stacked, title, lambda value: f"{value:,} rows")


def bytes_chart(commits: Sequence[CommitFacts]) -> Chart:
    """Bytes written by each commit: for new rows below, for copied ones above."""

    def stacked(commit: CommitFacts) -> tuple[tuple[str, int], ...]:
        changed = min(commit.changed_bytes, commit.added_bytes)
        return (("changed", changed), ("copied", commit.added_bytes - changed))

    def title(commit: CommitFacts) -> str:
        written, changed = size_text(commit.added_bytes), size_text(commit.changed_bytes)
        return f"Version {commit.version}, {commit.operation}: {written} written, {changed} changed"

    return _chart(commits, stacked, title, size_text)


def _chart(
    commits: Sequence[CommitFacts],
    stacked: Callable[[CommitFacts], tuple[tuple[str, int], ...]],
    title: Callable[[CommitFacts], str],
    as_text: Callable[[int], str],
) -> Chart:
    totals = [sum(value for _, value in stacked(commit)) for commit in commits]
    most = max(totals, default=0)
    step = WIDTH / max(len(commits), 1)
    columns = tuple(
        Column(
            title=title(commit),
            parts=_parts(stacked(commit), most, x=step * (n + _GAP / 2), width=step * (1 - _GAP)),
        )
        for n, commit in enumerate(commits)
    )
    return Chart(
        columns=columns,
        top=as_text(most),
        first=f"version {commits[0].version}" if commits else "",
        last=f"version {commits[-1].version}" if commits else "",
    )


def _parts(
    values: tuple[tuple[str, int], ...], most: int, *, x: float, width: float
) -> tuple[Part, ...]:
    """Stack values from the bottom; heights go by square roots, so that small commits show."""
    total = sum(value for _, value in values)
    if total <= 0:
        return ()
    full = max(_LEAST, BOTTOM * math.sqrt(total / most))
    parts: list[Part] = []
    y = float(BOTTOM)
    for kind, value in values:
        if value > 0:
            height = full * value / total
            y -= height
            parts.append(Part(kind=kind, x=round(x, 2), y=round(y, 2),
                              width=round(width, 2), height=round(height, 2)))  # fmt: skip
    return tuple(parts)


_BUCKETS = ((1 << 20, "up to 1 MiB"), (16 << 20, "1 to 16 MiB"), (64 << 20, "16 to 64 MiB"),
            (256 << 20, "64 to 256 MiB"), (1 << 30, "256 MiB to 1 GiB"))  # fmt: skip
_LAST_BUCKET = "over 1 GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBucket:
    """The number of files in a range of sizes."""

    label: str
    num_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """All facts of the page."""

    detail: Row
    commits: Sequence[CommitFacts]
    """Oldest first."""
    num_commits: int
    """Total number: the newest version plus one."""
    buckets: Sequence[SizeBucket]
    depths: Sequence[ColumnDepth]
    clustered_by: frozenset[str]
    findings: Sequence[Finding]
    sentences: Sequence[str]
    """Sentences about the table."""
    made: str

    @property
    def warnings(self) -> Sequence[Finding]:
        """The findings with a next step, the worst first."""
        order = [Severity.ERROR, Severity.WARNING]
        wanted = [f for f in self.findings if f.severity in order]
        return sorted(wanted, key=lambda f: order.index(f.severity))


def report_facts(log: TableLog, *, commits: int, clock: Clock = wall_clock) -> ReportFacts:
    """Read the facts about a table: the newest version, some commits, and a listing of the root."""
    snapshot = log.snapshot()
    detail = detail_row(snapshot)
    found = newest_commits(log, snapshot, limit=commits)
    return ReportFacts(
        detail=detail,
        commits=found,
        num_commits=snapshot.version + 1,
        buckets=size_buckets(snapshot),
        depths=column_depths(snapshot),
        clustered_by=frozenset(detail["clusteringColumns"]),
        findings=tuple(table_findings(log, clock=clock)),
        sentences=tuple(_sentences(snapshot, detail)),
        made=time_text(clock()),
    )


def size_buckets(snapshot: Snapshot) -> tuple[SizeBucket, ...]:
    """Count files by size."""
    counts = [[0, 0] for _ in range(len(_BUCKETS) + 1)]
    for size_bytes in snapshot.files.rows["size_bytes"].to_pylist():
        place = next((n for n, (top, _) in enumerate(_BUCKETS) if size_bytes <= top), len(_BUCKETS))
        counts[place][0] += 1
        counts[place][1] += size_bytes
    labels = [*(label for _, label in _BUCKETS), _LAST_BUCKET]
    return tuple(
        SizeBucket(label=label, num_files=files, size_bytes=size)
        for label, (files, size) in zip(labels, counts, strict=True)
    )


def _sentences(snapshot: Snapshot, detail: Row) -> list[str]:
    """Return sentences about the meaning of protocol and properties."""
    properties, config = snapshot.config.properties, snapshot.config
    reader, writer = detail["minReaderVersion"], detail["minWriterVersion"]
    said = [f"Readers need protocol version {reader}, writers version {writer}."]
    if detail["partitionColumns"]:
        said.append(f"Rows are in directories by {', '.join(detail['partitionColumns'])}.")
    if detail["clusteringColumns"]:
        said.append(f"OPTIMIZE orders rows by {', '.join(detail['clusteringColumns'])}.")
    features = (
        ("deletionVectors", "Changed rows are marked in deletion vectors, files stay."),
        ("changeDataFeed", "Each commit keeps which rows it changed (change data feed)."),
        ("columnMapping", "Columns have names of their own in the files, so they can be renamed."),
        ("rowTracking", "Every row keeps its id."),
        ("checkConstraints", "Rows must fulfil CHECK constraints."),
        ("inCommitTimestamp", "Commits carry their own time."),
        ("appendOnly", "Rows can only be appended."),
    )
    said += [text for name, text in features if config.is_active(name)]
    said.append(
        f"Removed files are kept {_span(properties.deleted_file_retention.total_seconds())}, the "
        f"log {_span(properties.log_retention.total_seconds())}; a checkpoint is due every "
        f"{properties.checkpoint_interval} commits."
    )
    return said


def _span(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}" + ("s" if count > 1 else "")
    return f"{seconds:g} seconds"


_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that are invisible, or that reverse the text after them."""


def report_page(log: TableLog, *, commits: int = 200, clock: Clock = wall_clock) -> str:
    """Return the page as HTML: one document without scripts that loads nothing.

    Reads the log, the newest ``commits`` commits, and a listing of the table's root.
    """
    return render(report_facts(log, commits=commits, clock=clock))


def render(facts: ReportFacts) -> str:
    """Return the page with these facts."""
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
    """Return a text with invisible characters spelled out."""
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
    source = resources.files("puredelta.inspection").joinpath("report_page.html.j2")
    return environment.from_string(source.read_text(encoding="utf-8"))


def _finalized(value: Any) -> Any:
    """Clean every text that the template prints; marked-up text is the template's own."""
    return (
        value if hasattr(value, "__html__") or isinstance(value, int | float) else _visible(value)
    )
