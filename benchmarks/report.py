"""Measurements as JSON, as a Markdown table and as a picture."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from xml.sax.saxutils import escape

_COLOURS = {
    "puredelta": "#1b6ca8",
    "puredelta-dv": "#7fb2d6",
    "delta-spark": "#d1495b",
    "delta-spark-dv": "#e9a4ad",
    "delta-rs": "#e0a030",
    "spark-copy": "#8d99ae",
    "arrow-copy": "#c2c9d6",
}
_COMPARED = (
    ("puredelta", "delta-spark"),
    ("puredelta", "delta-rs"),
    ("puredelta", "spark-copy"),
    ("puredelta", "arrow-copy"),
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
    """The highest peaks of resident memory, by kind of process (`benchmarks.processes`)."""
    heap_mb: float | None = None
    """The highest peak of the driver's Java heap, garbage included."""
    problem: str | None = None
    """Why there is no time to report."""

    @property
    def median(self) -> float | None:
        return self.median_of("seconds")

    def median_of(self, what: str) -> float | None:
        """Return the median of ``seconds`` or ``cpu_seconds``, or the sum of ``memory_mb``.

        Only what was right has one.
        """
        if self.problem:
            return None
        if what == "memory_mb":
            return sum(self.memory_mb.values()) or None
        # A worker that ended unseen takes its processor time with it.
        values = [value for value in getattr(self, what) if value > 0]
        return statistics.median(values) if values else None


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


def stored(found: Sequence[Measurement], heading: str) -> str:
    """Return the measurements as JSON."""
    return json.dumps({"heading": heading, "measurements": [asdict(m) for m in found]}, indent=1)


def restored(text: str) -> list[Measurement]:
    """Return what `stored` kept."""
    return [
        Measurement(
            **{
                **kept,
                "seconds": tuple(kept["seconds"]),
                "cpu_seconds": tuple(kept["cpu_seconds"]),
            }
        )
        for kept in json.loads(text)["measurements"]
    ]


def markdown(found: Sequence[Measurement], heading: str) -> str:
    """Return seconds per workload and engine, then ratios, jobs, memory and what went wrong."""
    workloads, engines = _names(found)
    by_both = {(m.workload, m.engine): m for m in found}
    lines = [f"# {heading}", "", "## Seconds (medians) and ratios", ""]
    lines += _comparison(found, "seconds")
    lines += ["", "## Processor seconds of all processes (medians) and ratios", ""]
    lines += _comparison(found, "cpu_seconds")
    lines += ["", "## Spark jobs, seconds in which none ran", ""]
    lines += table_head(["workload", *engines])
    for workload in workloads:
        cells = [_jobs(by_both.get((workload, engine))) for engine in engines]
        lines.append(table_row([workload, *cells]))
    lines += ["", "## Peak resident memory of all processes in MB and ratios", ""]
    lines += _comparison(found, "memory_mb")
    lines += ["", "## Peak memory in MB by kind of process, and of the driver's Java heap", ""]
    lines += table_head(["workload", *engines])
    for workload in workloads:
        cells = [_memory(by_both.get((workload, engine))) for engine in engines]
        lines.append(table_row([workload, *cells]))
    problems = [f"- {m.workload}, {m.engine}: {m.problem}" for m in found if m.problem]
    return "\n".join([*lines, *(["", "## Without a time", "", *problems] if problems else [])])


def _comparison(found: Sequence[Measurement], what: str) -> list[str]:
    workloads, engines = _names(found)
    by_both = {(m.workload, m.engine): m for m in found}
    pairs = [(own, base) for own, base in _COMPARED if own in engines and base in engines]
    compared = {pair: ratios(found, *pair, what) for pair in pairs}
    lines = table_head(["workload", *engines, *(f"{own} / {base}" for own, base in pairs)])
    for workload in workloads:
        cells = [_value(by_both.get((workload, engine)), what) for engine in engines]
        cells += [_ratio(compared[pair].get(workload)) for pair in pairs]
        lines.append(table_row([workload, *cells]))
    means = [_ratio(geometric_mean(compared[pair].values())) for pair in pairs]
    worst = [_ratio(max(compared[pair].values(), default=None)) for pair in pairs]
    lines.append(table_row(["geometric mean", *([""] * len(engines)), *means]))
    lines.append(table_row(["worst", *([""] * len(engines)), *worst]))
    return lines


def _names(found: Sequence[Measurement]) -> tuple[list[str], list[str]]:
    workloads = list(dict.fromkeys(m.workload for m in found))
    return workloads, list(dict.fromkeys(m.engine for m in found))


def table_head(names: Sequence[str]) -> list[str]:
    return [table_row(names), table_row(["---"] * len(names))]


def table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _value(measurement: Measurement | None, what: str) -> str:
    if measurement is None:
        return "-"
    value = measurement.median_of(what)
    if value is None:
        return "failed" if measurement.problem else "-"
    return f"{value:.0f}" if what == "memory_mb" else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _jobs(measurement: Measurement | None) -> str:
    if measurement is None or measurement.jobs is None or measurement.outside_seconds is None:
        return "-"
    return f"{measurement.jobs} jobs, {measurement.outside_seconds:.2f} s"


def _memory(measurement: Measurement | None) -> str:
    if measurement is None or measurement.median_of("memory_mb") is None:
        return "-"
    kinds = [f"{kind} {mb:.0f}" for kind, mb in measurement.memory_mb.items() if mb]
    heap = [] if measurement.heap_mb is None else [f"heap {measurement.heap_mb:.0f}"]
    return ", ".join([*kinds, *heap])


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


def ratio_picture(found: Sequence[Measurement], heading: str, *, engine: str, base: str) -> str:
    """Return an SVG with a bar per workload: the share of ``base`` that ``engine`` takes.

    The ends of the axis are nothing and the whole of ``base``.
    """
    shares = sorted(ratios(found, engine, base).items(), key=lambda pair: pair[1])
    mean = geometric_mean(share for _, share in shares)
    left, width, row = 300, 500, 17
    title = f"{heading}: {engine} as a share of {base}"
    parts = [f'<text x="10" y="20" font-size="14">{escape(title)}</text>']
    for number, (workload, share) in enumerate([*shares, ("geometric mean", mean or 0.0)]):
        y = 34 + number * row
        name = engine if number < len(shares) else base
        parts.append(_rectangle(left, y, width, row - 5, "arrow-copy"))
        parts.append(_rectangle(left, y, min(share, 1.0) * width, row - 5, name))
        parts.append(f'<text x="10" y="{y + 10}">{escape(workload)}</text>')
        parts.append(f'<text x="{left + width + 8}" y="{y + 10}">{share:.2f}</text>')
    body = "\n".join(parts)
    height = 34 + (len(shares) + 1) * row + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 50} {height}" '
        f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _rectangle(x: float, y: float, width: float, height: float, engine: str) -> str:
    colour = _COLOURS.get(engine, "#444444")
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'
