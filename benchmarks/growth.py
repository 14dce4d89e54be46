"""How the time of a merge grows with the table: ten times the rows, or a hundred times the files.

    python -m benchmarks.growth

A table of a size stands beside one that has ten times its rows in ten times its files, and
beside the same rows in a hundred times as many files, of which a merge touches the same rows.
Choices are those of `benchmarks.options`; the largest size cannot grow. PUREDELTA_BENCH_GROWS:
in what, ``rows``, ``files`` or both (both): ten times the rows may leave the rest no page cache.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from benchmarks.bench import Bench, heading
from benchmarks.options import PREFIX, RESULTS, Options
from benchmarks.processes import DRIVER_JAVA, DRIVER_PYTHON
from benchmarks.report import Measurement, stored, table_head, table_row
from benchmarks.tables import TEN_TIMES, Layout, Shape
from benchmarks.workloads import Workload

PIECES = 100
_BOTH = "rows,files"
_WORKLOADS = (
    "single_insert_only (.05, 0, .5);delete_only;upsert (.05, .1, .1);upsert (.5, ;"
    "upsert_clustered_1pct"
)
Found: TypeAlias = Mapping[tuple[str, str], Measurement]
"""By title and engine."""

_HEAD = ("workload, table", "files", "engine", "seconds", "ratio", "processor s", "ratio")
AIMS = {"rows": 11.0, "files": 1.5}


@dataclass(frozen=True, slots=True)
class Growth:
    """A table that is measured, and what it is more of than the first."""

    shape: Shape
    of: str | None = None

    def title(self, workload: Workload) -> str:
        """What its measurements are called."""
        return f"{workload.title}, {self.shape.name}"


def growths(size: str, layout: Layout, grows: str = _BOTH) -> tuple[Growth, ...]:
    """Return the tables to compare, the smallest first; ``grows`` names what they are more of."""
    every = (
        Growth(Shape(TEN_TIMES[size], layout), "rows"),
        Growth(Shape(size, layout, PIECES), "files"),
    )
    wanted = [growth for growth in every if growth.of in grows.split(",")]
    if layout is Layout.PARTITIONED:
        wanted = [growth for growth in wanted if growth.of != "files"]
    return (Growth(Shape(size, layout)), *wanted)


def main() -> None:
    """Measure what the environment chooses."""
    options = Options.of(os.environ, workloads=_WORKLOADS, engines="puredelta", suffix="-growth")
    if options.size not in TEN_TIMES:
        raise SystemExit(f"size {options.size} cannot grow, only {', '.join(TEN_TIMES)}")
    workloads = [w for w in options.workloads if isinstance(w, Workload)]
    found: dict[tuple[str, str], Measurement] = {}
    bench = Bench(options)
    try:
        for workload in workloads:
            for state in _measured(bench, options, workload):
                found |= {(one.workload, one.engine): one for one in state}
                _store(found, workloads, options)
    finally:
        bench.close()
    print(f"\n{report(found, workloads, options)}\n\nKept in {RESULTS} as {options.name}")
    if any(m.problem for m in found.values()):
        sys.exit(1)


def _grows() -> str:
    chosen = os.environ.get(f"{PREFIX}GROWS", _BOTH)
    if unknown := {*chosen.split(",")} - {*_BOTH.split(",")}:
        raise SystemExit(f"{PREFIX}GROWS: {', '.join(unknown)} is none of {_BOTH}")
    return chosen


def _measured(bench: Bench, options: Options, workload: Workload) -> Iterator[list[Measurement]]:
    """Measure the tables in turns; one after the other where each has processes of its own."""
    running = [
        _repeats(bench, options, workload, growth)
        for growth in growths(options.size, workload.layout, _grows())
    ]
    if options.fresh:
        return chain.from_iterable(running)
    return (state for turn in zip(*running, strict=True) for state in turn)


def _repeats(
    bench: Bench, options: Options, workload: Workload, growth: Growth
) -> Iterator[list[Measurement]]:
    drawn_from = None if growth.of != "files" else Shape(options.size, workload.layout)
    case = bench.merging(workload, growth.shape, drawn_from=drawn_from, name=growth.shape.name)
    title = growth.title(workload)
    return bench.repeat(title, options.engines, lambda engine: bench.merge(engine, case))


def report(found: Found, workloads: Sequence[Workload], options: Options) -> str:
    """Return, as Markdown, what every table needs by what the smallest needs, and its driver."""
    lines = [
        f"# Growth, {heading(options)}",
        "",
        "Ratios are to the first table of the workload; the aims are at most "
        + ", ".join(f"{limit:g} with more {what}" for what, limit in AIMS.items())
        + ". Memory is that of the driver, in MB.",
        "",
        *table_head([*_HEAD, "Python", "Java", "its heap"]),
    ]
    for workload in workloads:
        first, *_ = every = growths(options.size, workload.layout)
        for engine in options.engines:
            base = found.get((first.title(workload), engine.name))
            for growth in every:
                one = found.get((growth.title(workload), engine.name))
                if base is not None and one is not None:
                    lines.append(_line(growth.shape.files, base, one))
    return "\n".join(lines)


def _line(files: int, base: Measurement, one: Measurement) -> str:
    if one.problem:
        return table_row([one.workload, str(files), one.engine, one.problem, *([""] * 6)])
    times = []
    for what in ("seconds", "cpu_seconds"):
        own, other = one.median_of(what), base.median_of(what)
        times += ["-", "-"] if not own or not other else [f"{own:.2f}", f"{own / other:.2f}"]
    memory = [one.memory_mb.get(DRIVER_PYTHON), one.memory_mb.get(DRIVER_JAVA), one.heap_mb]
    cells = ["-" if mb is None else f"{mb:.0f}" for mb in memory]
    return table_row([one.workload, str(files), one.engine, *times, *cells])


def _store(found: Found, workloads: Sequence[Workload], options: Options) -> None:
    RESULTS.mkdir(exist_ok=True)
    kept = stored(list(found.values()), heading(options))
    (RESULTS / f"{options.name}.json").write_text(kept)
    (RESULTS / f"{options.name}.md").write_text(report(found, workloads, options) + "\n")


if __name__ == "__main__":
    main()
