"""Several processes merge into one table at once, each into partitions of its own.

    python -m benchmarks.writers

All merges must commit: none touches what another reads. The rows are verified after the last, and
the log must have a version for every merge. Engines follow each other, so that they do not share
the machine. Each process merges twice into another table first, untimed.

Choices are those of `benchmarks.options`, and PUREDELTA_BENCH_WRITERS (8), PUREDELTA_BENCH_MERGES:
how many each of them does (5), PUREDELTA_BENCH_MEMORY: the heap of each driver (1g).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.bench import Bench, heading, wrong
from benchmarks.engines import Engine, EngineProcess
from benchmarks.options import PREFIX, RESULTS, Options
from benchmarks.report import table_head, table_row
from benchmarks.requests import Request, merge_request
from benchmarks.rows import PART, RowSet, Totals, make_rows, total
from benchmarks.tables import PARTITIONS, BaseTable, Layout, Shape, write_parquet
from benchmarks.workloads import ON, UPSERT

CHANGED = NEW = 200
_WARM_UPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What one merge brings into one partition."""

    path: Path
    part: int
    before: Totals
    """What the rows it changes added up to."""
    after: Totals
    """What changed and new rows add up to."""

    def request(self, table: Path) -> Request:
        """Ask for the merge."""
        on = f"t.{PART} = {self.part} AND s.{PART} = {self.part} AND {ON}"
        clauses = [(clause.kind, clause.condition) for clause in UPSERT]
        return merge_request(table, self.path, on, clauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """What became of all merges of an engine."""

    engine: str
    writers: int
    merges: int
    """Of all writers together."""
    seconds: float
    """From the first merge's beginning to the last one's end."""
    committed: int
    problems: tuple[str, ...]

    @property
    def per_second(self) -> float:
        return self.committed / self.seconds


def draw(shape: Shape, number: int, part: int, directory: Path) -> Source:
    """Write the source of one merge; no row is changed twice, no new key comes twice."""
    old = shape.file_rows(part).numbers
    block = number // PARTITIONS * CHANGED
    changed_numbers = old[block : block + CHANGED]
    if len(changed_numbers) < CHANGED:
        raise SystemExit(f"a partition has {len(old)} rows, too few for so many merges")
    parts = np.full(CHANGED, part, np.int32)
    before = make_rows(RowSet(numbers=changed_numbers, parts=parts))
    changed = RowSet(numbers=changed_numbers, parts=parts, changed=np.ones(CHANGED, np.bool_))
    new = RowSet(numbers=shape.rows + number * NEW + np.arange(NEW), parts=parts)
    rows = pa.concat_tables([make_rows(changed), make_rows(new)])
    path = directory / f"{number:05d}.parquet"
    write_parquet(rows, path)
    return Source(
        path=path,
        part=part,
        before=total(before, shape.checked),
        after=total(rows, shape.checked),
    )


def race(
    bench: Bench, engine: Engine, base: BaseTable, sources: Sequence[Sequence[Source]], limit: float
) -> Race:
    """Let a process for each list of sources merge them, all at the same time."""
    table, warm = bench.scratch / f"{engine.name}-table", bench.scratch / f"{engine.name}-warm"
    base.copy_to(table, deletion_vectors=engine.deletion_vectors)
    processes = [EngineProcess(engine.process, limit_seconds=limit) for _ in sources]
    try:
        with ThreadPoolExecutor(len(processes)) as pool:
            list(pool.map(partial(_warm_up, base, engine, warm), processes, sources))
            begun = time.perf_counter()
            answers = list(pool.map(partial(_merge_all, table), processes, sources))
            seconds = time.perf_counter() - begun
    finally:
        for process in processes:
            process.close()
    errors = [error for found in answers for error in found]
    merges = sum(map(len, sources))
    problems = [error[:300] for error in errors]
    versions = len(list((table / "_delta_log").glob("*.json"))) - 1
    if versions != merges - len(errors):
        problems.append(f"{versions} versions of {merges - len(errors)} merges that succeeded")
    if not problems and (problem := wrong(table, base.shape, _expected(base, sources))):
        problems.append(problem)
    return Race(
        engine=engine.name,
        writers=len(sources),
        merges=merges,
        seconds=seconds,
        committed=versions,
        problems=tuple(problems),
    )


def _warm_up(
    base: BaseTable,
    engine: Engine,
    directory: Path,
    process: EngineProcess,
    sources: Sequence[Source],
) -> None:
    for number in range(_WARM_UPS):
        copy = directory / f"{sources[0].path.stem}-{number}"
        base.copy_to(copy, deletion_vectors=engine.deletion_vectors)
        answer = process.ask(sources[0].request(copy))
        if "error" in answer:
            raise SystemExit(f"{engine.name} cannot warm up: {answer['error']}")
        shutil.rmtree(copy)


def _merge_all(table: Path, process: EngineProcess, sources: Sequence[Source]) -> list[str]:
    """Merge one source after the other; return the errors."""
    answers = [process.ask(source.request(table)) for source in sources]
    return [str(answer["error"]) for answer in answers if "error" in answer]


def _expected(base: BaseTable, sources: Sequence[Sequence[Source]]) -> Totals:
    expected = base.totals
    for source in (source for some in sources for source in some):
        expected = expected - source.before + source.after
    return expected


def report(found: Sequence[Race], title: str) -> str:
    """Return what every engine did, as Markdown."""
    head = ["engine", "writers", "merges", "committed", "seconds", "commits a second", "ratio"]
    peer = next((one for one in found if one.engine == "delta-spark"), None)
    lines = [f"# Writers of one table, {title}", "", *table_head([*head, "problem"])]
    for one in found:
        ratio = f"{one.per_second / peer.per_second:.1f}" if peer and peer.committed else "-"
        cells = [one.engine, str(one.writers), str(one.merges), str(one.committed)]
        cells += [f"{one.seconds:.1f}", f"{one.per_second:.2f}", ratio]
        lines.append(table_row([*cells, "; ".join(one.problems[:1])]))
    return "\n".join(lines)


def main() -> None:
    """Measure what the environment chooses."""
    os.environ.setdefault(f"{PREFIX}MEMORY", "1g")
    options = Options.of(os.environ, engines="puredelta,delta-spark", suffix="-writers")
    writers = int(os.environ.get(f"{PREFIX}WRITERS", "8"))
    merges = int(os.environ.get(f"{PREFIX}MERGES", "5"))
    bench = Bench(options)
    base = bench.base(Shape(options.size, Layout.PARTITIONED))
    drawn = [
        [
            draw(base.shape, PARTITIONS * merge + writer, writer, bench.scratch / "sources")
            for merge in range(merges)
        ]
        for writer in range(writers)
    ]
    found: list[Race] = []
    try:
        for engine in (engine for engine in options.engines if engine.merges):
            found.append(race(bench, engine, base, drawn, options.limit_seconds))
            print(report(found[-1:], heading(options)).splitlines()[-1], flush=True)
    finally:
        bench.close()
    title = heading(options)
    RESULTS.mkdir(exist_ok=True)
    kept = {"heading": title, "races": [asdict(one) for one in found]}
    (RESULTS / f"{options.name}.json").write_text(json.dumps(kept, indent=1))
    (RESULTS / f"{options.name}.md").write_text(report(found, title) + "\n")
    print(f"\n{report(found, title)}\n\nKept in {RESULTS} as {options.name}")
    if any(one.problems for one in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
