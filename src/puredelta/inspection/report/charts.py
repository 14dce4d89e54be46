"""Numbers of commits as the columns of a chart: places and sizes, no markup."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from puredelta.inspection.table.commits import CommitFacts
from puredelta.quantities import size_text

WIDTH, HEIGHT, BOTTOM = 800, 200, 180
"""Of a chart, in units of its own; columns stand on ``BOTTOM``."""
_GAP = 0.15
_LEAST = 1.5
"""The height of what is not 0, at least."""


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
    """What a chart shows of one commit."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Columns of equal width, left to right."""

    columns: tuple[Column, ...]
    top: str
    """The value that the full height stands for."""
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
