"""Many small merges into one table: does the hundredth take as long as the first?

    python -m benchmarks.trickle

Every merge has a thousand rows: half of them change a run of neighbours in the order of keys,
somewhere in the table, the others have new keys behind all that are there. Nothing cleans up
in between, but for auto compaction, where the table wants it: each engine has a table with
it and one without. Rows are verified after the last merge.

Choices are those of `benchmarks.options`, and PUREDELTA_BENCH_MERGES: how many (100).
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.bench import Bench, Try, heading, wrong
from benchmarks.engines import Engine
from benchmarks.options import PREFIX, RESULTS, Options
from benchmarks.replay import active_files
from benchmarks.report import table_head, table_row
from benchmarks.requests import merge_request
from benchmarks.rows import Numbers, RowSet, Totals, make_rows, mixed, total
from benchmarks.tables import BaseTable, Layout, Shape, write_parquet
from benchmarks.workloads import ON, UPSERT

CHANGED = NEW = 500
WARM_UP = 5
WINDOW = 20
_COMPACTION: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"no": {}, "auto": {"delta.autoOptimize.autoCompact": "true"}}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """The source of one merge."""

    rows: pa.Table
    before: Totals
    """What the rows it changes added up to."""
    after: Totals
    """What changed and new rows add up to."""


def drops(shape: Shape, merges: int) -> Iterator[Drop]:
    """Yield the sources; no row is changed twice.

    Raises:
        SystemExit: the table has too few rows for so many merges.
    """
    block = shape.rows // merges
    if block < CHANGED:
        raise SystemExit(f"{shape.rows} rows are too few for {merges} merges")
    blocks = np.argsort(mixed(np.arange(merges), 11), kind="stable")
    for number, start in enumerate((blocks * block).tolist()):
        old: Numbers = np.arange(start, start + CHANGED)
        new: Numbers = shape.rows + number * NEW + np.arange(NEW)
        all_changed = np.ones(CHANGED, np.bool_)
        changed = make_rows(RowSet(numbers=old, changed=all_changed))
        rows = pa.concat_tables([changed, make_rows(RowSet(numbers=new))])
        yield Drop(
            rows=rows,
            before=total(make_rows(RowSet(numbers=old)), shape.checked),
            after=total(rows, shape.checked),
        )


@dataclass(slots=True)
class Series:
    """The merges of one engine into one table, and what they took."""

    engine: Engine
    compaction: str
    table: Path
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    """Of the table, after every merge."""
    megabytes: float = 0.0
    """Of the files of the table after the last merge."""
    memory_mb: float = 0.0
    """The highest peak of all processes together."""
    problem: str | None = None

    def begin(self, table: BaseTable) -> None:
        """Make the table."""
        table.copy_to(
            self.table,
            deletion_vectors=self.engine.deletion_vectors,
            properties=_COMPACTION[self.compaction],
        )

    def add(self, found: Try) -> None:
        """Count a merge; a problem ends the series."""
        self.problem = found.problem
        if found.problem is None:
            self.seconds.append(found.answer["seconds"])
            self.cpu_seconds.append(found.answer["cpu_seconds"])
            self.memory_mb = max(self.memory_mb, sum(found.answer["memory_mb"].values()))
            files = active_files(self.table)
            self.files.append(len(files))
            self.megabytes = sum(file.add["size"] for file in files) / 2**20

    def kept(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**asdict(self), "engine": self.engine.name, "table": self.table.name}

    def ends(self, values: Sequence[float]) -> tuple[float, float] | None:
        """Return the medians of the first merges after warming up, and of the last."""
        warm = values[WARM_UP:]
        if len(warm) < 2:  # noqa: PLR2004 - one is both
            return None
        window = min(WINDOW, len(warm) // 2)
        return statistics.median(warm[:window]), statistics.median(warm[-window:])


def main() -> None:
    """Measure what the environment chooses."""
    options = Options.of(os.environ, engines="puredelta,delta-spark", suffix="-trickle")
    merges = int(os.environ.get(f"{PREFIX}MERGES", "100"))
    bench = Bench(options)
    found = [
        Series(engine, compaction, bench.scratch / f"{engine.name}-{compaction}")
        for engine in options.engines
        if engine.merges
        for compaction in _COMPACTION
    ]
    try:
        table = bench.base(Shape(options.size, Layout.CLUSTERED))
        sources, expected = _sources(bench, table, merges)
        for series in found:
            series.begin(table)
        for number, source in enumerate(sources, start=1):
            judge = partial(wrong, shape=table.shape, expected=expected)
            for series in (series for series in found if series.problem is None):
                _merge(bench, series, source, judge if number == merges else _not_yet)
            _store(found, options)
    finally:
        bench.close()
    print(f"\n{report(found, heading(options))}\n\nKept in {RESULTS} as {options.name}")
    if any(series.problem for series in found):
        sys.exit(1)


def _sources(bench: Bench, table: BaseTable, merges: int) -> tuple[list[Path], Totals]:
    """Write all sources; return them and what the table adds up to after the last."""
    paths: list[Path] = []
    expected = table.totals
    for drop in drops(table.shape, merges):
        paths.append(bench.scratch / "drops" / f"{len(paths):05d}.parquet")
        write_parquet(drop.rows, paths[-1])
        expected = expected - drop.before + drop.after
    return paths, expected


def _merge(bench: Bench, series: Series, source: Path, judge: Callable[[Path], str | None]) -> None:
    """Merge one source into one of the tables."""
    clauses = [(clause.kind, clause.condition) for clause in UPSERT]
    request = merge_request(series.table, source, ON, clauses)

    def attempt(engine: Engine) -> Try:
        answer = bench.ask(engine, request)
        return Try(answer, answer.get("error") or judge(series.table))

    found = bench.judged(attempt, series.engine)
    series.add(found)
    title = f"merge {len(series.seconds)}, compaction {series.compaction}"
    files = f", {series.files[-1]} files" if series.files else ""
    print(found.line(title, series.engine.name) + files, flush=True)


def _not_yet(_: Path) -> None:
    """Judge nothing: the table is not complete."""


def report(found: Sequence[Series], title: str) -> str:
    """Return, as Markdown, the first merges beside the last, and what the table became."""
    lines = [
        f"# {CHANGED + NEW} rows a merge, {title}",
        "",
        f"Medians of the first {WINDOW} merges after {WARM_UP} to warm up, and of the last.",
        "",
        *table_head(
            [
                *("engine", "compaction", "merges", "first, s", "last, s", "ratio"),
                *("first, processor s", "last", "ratio", "slowest, s", "all, s"),
                *("files after", "most files", "MB after", "peak memory, MB"),
            ]
        ),
    ]
    for series in found:
        cells = [series.engine.name, series.compaction, str(len(series.seconds))]
        if series.problem or not series.seconds:
            lines.append(table_row([*cells, str(series.problem), *([""] * 11)]))
            continue
        for values in (series.seconds, series.cpu_seconds):
            ends = series.ends(values)
            first, last = ends or (0.0, 0.0)
            ratio = f"{last / first:.2f}" if first else "-"
            cells += [f"{first:.2f}", f"{last:.2f}", ratio]
        cells += [f"{max(series.seconds[WARM_UP:], default=0.0):.2f}", f"{sum(series.seconds):.1f}"]
        cells += [str(series.files[-1]), str(max(series.files))]
        cells += [f"{series.megabytes:.0f}", f"{series.memory_mb:.0f}"]
        lines.append(table_row(cells))
    return "\n".join(lines)


def _store(found: Sequence[Series], options: Options) -> None:
    RESULTS.mkdir(exist_ok=True)
    title = heading(options)
    kept = {"heading": title, "series": [series.kept() for series in found]}
    (RESULTS / f"{options.name}.json").write_text(json.dumps(kept, indent=1))
    (RESULTS / f"{options.name}.md").write_text(report(found, title) + "\n")


if __name__ == "__main__":
    main()
