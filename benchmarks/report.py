"""Measurements as JSON, as a Markdown table and as a picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

_COLOURS = {
    "puredelta": "#1b6ca8",
    "puredelta-dv": "#7fb2d6",
    "delta-spark": "#d1495b",
    "delta-spark-dv": "#e9a4ad",
    "delta-rs": "#e0a030",
    "spark-copy": "#8d99ae",
}
_COMPARED = (
    ("puredelta", "delta-spark"),
    ("puredelta", "delta-rs"),
    ("puredelta", "spark-copy"),
    ("puredelta-dv", "puredelta"),
    ("puredelta-dv", "delta-spark-dv"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One engine on one workload."""

    workload: str
    engine: str
    seconds: tuple[float, ...] = ()
    """Of every repeat whose result was right."""
    cpu_seconds: tuple[float, ...] = ()
    """Processor time of all processes of the engine: what a busy machine does not change."""
    jobs: int | None = None
    """Spark jobs of the last repeat."""
    outside_seconds: float | None = None
    """The median time in which no Spark job ran."""
    memory_mb: Mapping[str, float] = field(default_factory=dict)
    """The highest peaks, of Java and of Python processes."""
    problem: str | None = None
    """Why there is no time to report."""

    @property
    def median(self) -> float | None:
        return self.median_of("seconds")

    def median_of(self, what: str) -> float | None:
        """Return the median of ``seconds`` or ``cpu_seconds``, if the results were right."""
        values = getattr(self, what)
        return statistics.median(values) if values and not self.problem else None


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the mean that suits ratios.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def ratios(
    found: Sequence[Measurement], engine: str, base: str, what: str = "seconds"
) -> dict[str, float]:
    """Return what ``engine`` needs by what ``base`` needs, where both have a time."""
    own, other = (
        {m.workload: value for m in found if m.engine == name and (value := m.median_of(what))}
        for name in (engine, base)
    )
    return {name: own[name] / other[name] for name in own if name in other}


def markdown(found: Sequence[Measurement], heading: str) -> str:
    """Return seconds per workload and engine, then ratios, jobs, memory and what went wrong."""
    workloads, engines = _names(found)
    by_both = {(m.workload, m.engine): m for m in found}
    lines = [f"# {heading}", "", "## Seconds (medians) and ratios", ""]
    lines += _comparison(found, "seconds")
    lines += ["", "## Processor seconds of all processes (medians) and ratios", ""]
    lines += _comparison(found, "cpu_seconds")
    lines += ["", "## Spark jobs, seconds in which none ran, peak memory in MB (Java + Python)", ""]
    lines += _table_head(["workload", *engines])
    for workload in workloads:
        cells = [_resources(by_both.get((workload, engine))) for engine in engines]
        lines.append(_row([workload, *cells]))
    problems = [f"- {m.workload}, {m.engine}: {m.problem}" for m in found if m.problem]
    return "\n".join([*lines, *(["", "## Without a time", "", *problems] if problems else [])])


def _comparison(found: Sequence[Measurement], what: str) -> list[str]:
    workloads, engines = _names(found)
    by_both = {(m.workload, m.engine): m for m in found}
    pairs = [(own, base) for own, base in _COMPARED if own in engines and base in engines]
    compared = {pair: ratios(found, *pair, what) for pair in pairs}
    lines = _table_head(["workload", *engines, *(f"{own} / {base}" for own, base in pairs)])
    for workload in workloads:
        cells = [_seconds(by_both.get((workload, engine)), what) for engine in engines]
        cells += [_ratio(compared[pair].get(workload)) for pair in pairs]
        lines.append(_row([workload, *cells]))
    means = [_ratio(geometric_mean(compared[pair].values())) for pair in pairs]
    worst = [_ratio(max(compared[pair].values(), default=None)) for pair in pairs]
    lines.append(_row(["geometric mean", *([""] * len(engines)), *means]))
    lines.append(_row(["worst", *([""] * len(engines)), *worst]))
    return lines


def _names(found: Sequence[Measurement]) -> tuple[list[str], list[str]]:
    workloads = list(dict.fromkeys(m.workload for m in found))
    return workloads, list(dict.fromkeys(m.engine for m in found))


def _table_head(names: Sequence[str]) -> list[str]:
    return [_row(names), _row(["---"] * len(names))]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _seconds(measurement: Measurement | None, what: str) -> str:
    if measurement is None:
        return "-"
    value = measurement.median_of(what)
    return "failed" if value is None else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _resources(measurement: Measurement | None) -> str:
    if measurement is None or measurement.median is None:
        return "-"
    memory = " + ".join(f"{mb:.0f}" for mb in measurement.memory_mb.values() if mb)
    if measurement.jobs is None or measurement.outside_seconds is None:
        return memory
    return f"{measurement.jobs} jobs, {measurement.outside_seconds:.2f} s, {memory}"


def picture(found: Sequence[Measurement], heading: str) -> str:
    """Return an SVG with a group of bars per workload; their length is logarithmic."""
    workloads, engines = _names(found)
    times = [m.median for m in found if m.median is not None]
    if not times:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>'
    low, high = math.log10(min(times)) - 0.1, math.log10(max(times)) + 0.1
    bar, gap, left, width = 12, 14, 290, 620
    by_both = {(m.workload, m.engine): m.median for m in found}
    parts = [f'<text x="10" y="22" font-size="15">{escape(heading)}</text>']
    for number, engine in enumerate(engines):
        x = 10 + number * 140
        parts.append(_rectangle(x, 34, 12, 12, engine))
        parts.append(f'<text x="{x + 18}" y="45">{escape(engine)}</text>')
    y = 70
    for workload in workloads:
        parts.append(f'<text x="10" y="{y + bar}">{escape(workload)}</text>')
        for engine in engines:
            seconds = by_both.get((workload, engine))
            if seconds is None:
                continue
            length = max(2.0, (math.log10(seconds) - low) / (high - low) * width)
            parts.append(_rectangle(left, y, length, bar - 2, engine))
            parts.append(f'<text x="{left + length + 5:.0f}" y="{y + 9}">{seconds:.2f} s</text>')
            y += bar
        y += gap
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{y}" '
        f'font-family="sans-serif" font-size="11">\n{body}\n</svg>\n'
    )


def _rectangle(x: float, y: float, width: float, height: float, engine: str) -> str:
    colour = _COLOURS.get(engine, "#444444")
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'
