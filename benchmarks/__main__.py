"""Measure merges and conversions; see docs/performance.md.

    python -m benchmarks

Chosen by the environment: PUREDELTA_BENCH_SIZE (S, M or L), PUREDELTA_BENCH_WORKLOADS (``all``,
``main``, or how titles begin, separated by ``;``), PUREDELTA_BENCH_ENGINES (``all`` or names
separated by ``,``), PUREDELTA_BENCH_REPEATS, PUREDELTA_BENCH_DIRECTORY (where tables are laid).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks import engines as known
from benchmarks.conversions import CONVERSIONS, Conversion
from benchmarks.engines import ENGINES, Engine, EngineProcess
from benchmarks.replay import table_totals
from benchmarks.report import Measurement, markdown, picture
from benchmarks.tables import BaseTable, Layout, Shape, lay_table, write_parquet
from benchmarks.workloads import MAIN, WORKLOADS, Source, Workload, make_source

RESULTS = Path(__file__).parent / "results"
_WARM_UP_MERGES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is measured."""

    size: str
    workloads: tuple[Workload | Conversion, ...]
    engines: tuple[Engine, ...]
    repeats: int
    directory: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Options:
        """Read the choices of the user.

        Raises:
            SystemExit: a name is not known.
        """
        names = environment.get("PUREDELTA_BENCH_ENGINES", ",".join(known.MAIN))
        chosen = list(ENGINES) if names == "all" else names.split(",")
        if unknown := [name for name in chosen if name not in ENGINES]:
            raise SystemExit(f"no engine {unknown[0]!r}, only {', '.join(ENGINES)}")
        size = environment.get("PUREDELTA_BENCH_SIZE", "S")
        if size not in ("S", "M", "L"):
            raise SystemExit(f"no size {size!r}, only S, M, L")
        return cls(
            size=size,
            workloads=_workloads(environment.get("PUREDELTA_BENCH_WORKLOADS", "main")),
            engines=tuple(ENGINES[name] for name in chosen),
            repeats=int(environment.get("PUREDELTA_BENCH_REPEATS", "3")),
            directory=Path(
                environment.get("PUREDELTA_BENCH_DIRECTORY", str(RESULTS / "tables"))
            ).resolve(),
        )


def _workloads(chosen: str) -> tuple[Workload | Conversion, ...]:
    every: tuple[Workload | Conversion, ...] = (*WORKLOADS, *CONVERSIONS)
    if chosen == "all":
        return every
    if chosen == "main":
        return (*(w for w in every if w.title in MAIN), *CONVERSIONS)
    parts = tuple(part.strip() for part in chosen.split(";"))
    found = tuple(w for w in every if w.title.startswith(parts))
    if not found:
        raise SystemExit(f"no workload {chosen!r}, only {'; '.join(w.title for w in every)}")
    return found


@dataclass(slots=True)
class _Tries:
    """What the repeats of one engine on one workload gave."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    jobs: int | None = None
    memory_mb: dict[str, float] = field(default_factory=dict)
    problem: str | None = None

    def add(self, answer: Mapping[str, Any], problem: str | None) -> None:
        if problem is not None:
            self.problem = problem
            return
        self.seconds.append(answer["seconds"])
        self.cpu_seconds.append(answer["cpu_seconds"])
        if "jobs" in answer:
            self.jobs = answer["jobs"]
            self.outside.append(answer["seconds"] - answer["job_seconds"])
        for kind, mb in answer["memory_mb"].items():
            self.memory_mb[kind] = max(mb, self.memory_mb.get(kind, 0.0))

    def measurement(self, workload: str, engine: str) -> Measurement:
        return Measurement(
            workload=workload,
            engine=engine,
            seconds=tuple(self.seconds),
            cpu_seconds=tuple(self.cpu_seconds),
            jobs=self.jobs,
            outside_seconds=statistics.median(self.outside) if self.outside else None,
            memory_mb=self.memory_mb,
            problem=self.problem,
        )


class Bench:
    """Engines in warm processes, and the tables they are measured on."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._scratch = options.directory / "scratch"
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._processes = {
            name: EngineProcess(name) for name in dict.fromkeys(e.process for e in options.engines)
        }

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def warm_up(self) -> None:
        """Merge twice with every engine, untimed."""
        workload = next(w for w in WORKLOADS if w.title == "upsert (.05, .1, .1)")
        table = self._base("S", workload.layout)
        source = make_source(workload, table)
        written = self._written(source)
        for engine in self._options.engines:
            for _ in range(_WARM_UP_MERGES if engine.merges else 0):
                self._merge(engine, workload, table, source, written)

    def measure(self, workload: Workload | Conversion) -> list[Measurement]:
        """Let every engine do the same in turn, as often as asked."""
        attempt = (
            self._converting(workload)
            if isinstance(workload, Conversion)
            else self._merging(workload)
        )
        tries = {engine.name: _Tries() for engine in self._options.engines}
        for _ in range(self._options.repeats):
            for engine in self._options.engines:
                if isinstance(workload, Conversion) and not engine.converts:
                    continue
                answer, problem = attempt(engine)
                tries[engine.name].add(answer, problem)
                print(_line(workload.title, engine.name, answer, problem), flush=True)
        return [
            found.measurement(workload.title, name)
            for name, found in tries.items()
            if found.seconds or found.problem
        ]

    def _merging(self, workload: Workload) -> Callable[[Engine], tuple[dict[str, Any], str | None]]:
        table = self._base(self._options.size, workload.layout)
        source = make_source(workload, table)
        written = self._written(source)
        return lambda engine: self._merge(engine, workload, table, source, written)

    def _merge(
        self,
        engine: Engine,
        workload: Workload,
        table: BaseTable,
        source: Source,
        written: tuple[Path, Path],
    ) -> tuple[dict[str, Any], str | None]:
        copy = self._scratch / "table"
        process = self._processes[engine.process]
        try:
            if not engine.merges:
                return self._copy(process, table, source, written[1])
            table.copy_to(copy, deletion_vectors=engine.deletion_vectors)
            answer = process.ask(
                {
                    "do": "merge",
                    "table": str(copy),
                    "source": str(written[0]),
                    "on": workload.on,
                    "clauses": [(c.kind.value, c.condition) for c in workload.clauses],
                }
            )
            if "error" in answer:
                return answer, answer["error"]
            found = table_totals(copy, table.shape.checked)
            right = found == source.expected
            return answer, None if right else f"{found} instead of {source.expected}"
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _copy(
        self, process: EngineProcess, table: BaseTable, source: Source, inserted: Path
    ) -> tuple[dict[str, Any], str | None]:
        target = self._scratch / "copied"
        files = [str(table.directory / table.shape.file_name(f)) for f in source.touched]
        request = {"do": "copy", "files": files, "source": str(inserted), "target": str(target)}
        try:
            answer = process.ask(request)
        finally:
            shutil.rmtree(target, ignore_errors=True)
        return answer, answer.get("error")

    def _converting(
        self, conversion: Conversion
    ) -> Callable[[Engine], tuple[dict[str, Any], str | None]]:
        size = self._options.size
        base = self._options.directory / f"{size}-{conversion.name}"
        conversion.lay(size, base)
        return lambda engine: self._convert(engine, conversion, base)

    def _convert(
        self, engine: Engine, conversion: Conversion, base: Path
    ) -> tuple[dict[str, Any], str | None]:
        size, copy = self._options.size, self._scratch / "table"
        request = {
            "do": "convert",
            "table": str(copy),
            "partition_schema": conversion.partition_schema,
        }
        try:
            conversion.copy(size, base, copy)
            answer = self._processes[engine.process].ask(request)
            return answer, answer.get("error") or conversion.problem(size, copy)
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _base(self, size: str, layout: Layout) -> BaseTable:
        return lay_table(Shape(size, layout), self._options.directory / f"{size}-{layout.value}")

    def _written(self, source: Source) -> tuple[Path, Path]:
        """Write the source, and what it inserts, as Parquet."""
        paths = self._scratch / "source.parquet", self._scratch / "inserted.parquet"
        write_parquet(source.rows, paths[0])
        write_parquet(source.inserted, paths[1])
        return paths


def _line(title: str, engine: str, answer: Mapping[str, Any], problem: str | None) -> str:
    told = problem or f"{answer['seconds']:.2f} s" + (
        f", {answer['jobs']} jobs" if "jobs" in answer else ""
    )
    return f"{title:<48} {engine:<15} {told}"


def main() -> None:
    options = Options.of(os.environ)
    bench = Bench(options)
    found: list[Measurement] = []
    try:
        bench.warm_up()
        for workload in options.workloads:
            found += bench.measure(workload)
            _store(found, options)
    finally:
        bench.close()
    print(f"\n{markdown(found, _heading(options))}\n\nKept in {RESULTS}")
    if any(m.problem for m in found):
        sys.exit(1)


def _store(found: Sequence[Measurement], options: Options) -> None:
    RESULTS.mkdir(exist_ok=True)
    heading = _heading(options)
    kept = {"heading": heading, "measurements": [asdict(m) for m in found]}
    (RESULTS / f"{options.size}.json").write_text(json.dumps(kept, indent=1))
    (RESULTS / f"{options.size}.md").write_text(markdown(found, heading) + "\n")
    (RESULTS / f"{options.size}.svg").write_text(picture(found, heading))


def _heading(options: Options) -> str:
    day = datetime.now(tz=timezone.utc).date()
    return f"Size {options.size}, {day}, {os.cpu_count()} cores, {platform.machine()}"


if __name__ == "__main__":
    main()
