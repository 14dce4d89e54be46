"""Engines in warm processes, the tables they are measured on, and whether results are right."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from benchmarks.conversions import Conversion
from benchmarks.engines import Engine, EngineProcess
from benchmarks.options import RESULTS, Measured, Options
from benchmarks.replay import table_totals
from benchmarks.report import (
    Measurement,
    markdown,
    picture,
    ratio_picture,
    ratios,
    restored,
    stored,
)
from benchmarks.requests import Request, convert_request, copy_request, merge_request
from benchmarks.rows import Totals
from benchmarks.tables import BaseTable, Shape, lay_table, write_parquet
from benchmarks.workloads import WORKLOADS, Workload, make_source

_WARM_UP = "upsert (.05, .1, .1)"
_WARM_UP_MERGES = 2

Answer: TypeAlias = Mapping[str, Any]


class Titled(Protocol):
    """What can be measured."""

    @property
    def title(self) -> str: ...


Anything = TypeVar("Anything", bound=Titled)


@dataclass(frozen=True, slots=True)
class Try:
    """What an engine answered, and what is wrong with what it did."""

    answer: Answer
    problem: str | None

    def line(self, title: str, engine: str) -> str:
        """Describe it in a line."""
        told = self.problem or f"{self.answer['seconds']:.2f} s" + (
            f", {self.answer['jobs']} jobs" if "jobs" in self.answer else ""
        )
        return f"{title:<48} {engine:<15} {told}"


Attempt: TypeAlias = Callable[[Engine], Try]


@dataclass(slots=True)
class Tries:
    """What the repeats of one engine on one workload gave."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    jobs: int | None = None
    memory_mb: dict[str, float] = field(default_factory=dict)
    heap_mb: float | None = None
    problem: str | None = None

    def add(self, found: Try) -> None:
        """Count a repeat, or remember what was wrong with it."""
        answer = found.answer
        if found.problem is not None:
            self.problem = found.problem
            return
        self.seconds.append(answer["seconds"])
        self.cpu_seconds.append(answer["cpu_seconds"])
        if "jobs" in answer:
            self.jobs = answer["jobs"]
            self.outside.append(answer["seconds"] - answer["job_seconds"])
            self.heap_mb = max(answer["heap_mb"], self.heap_mb or 0.0)
        for kind, mb in answer["memory_mb"].items():
            self.memory_mb[kind] = max(mb, self.memory_mb.get(kind, 0.0))

    def measurement(self, workload: str, engine: str) -> Measurement:
        """Sum them up."""
        return Measurement(
            workload=workload,
            engine=engine,
            seconds=tuple(self.seconds),
            cpu_seconds=tuple(self.cpu_seconds),
            jobs=self.jobs,
            outside_seconds=statistics.median(self.outside) if self.outside else None,
            memory_mb=dict(self.memory_mb),
            heap_mb=self.heap_mb,
            problem=self.problem,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCase:
    """A MERGE that is ready to be asked for."""

    workload: Workload
    table: BaseTable
    source: Path
    inserted: Path
    """The new rows of the source alone."""
    touched: tuple[Path, ...]
    """Files that must change."""
    expected: Totals


class Bench:
    """Asks engines and judges what they did. A process that dies or hangs is replaced."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.scratch = options.directory / "scratch"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self._processes: dict[str, EngineProcess] = {}
        self._warm: dict[str, set[str]] = {}
        """The engines that have merged, by process."""

    def close(self) -> None:
        """End all processes and remove what they worked on."""
        self._close_processes()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def measure(self, workload: Measured) -> Iterator[list[Measurement]]:
        """Let every engine do the same in turn; yield what is known after every repeat."""
        engines = self.options.engines_for(workload)
        if isinstance(workload, Conversion):
            return self.repeat(workload.title, engines, self.converting(workload))
        case = self.merging(workload, Shape(self.options.size, workload.layout))
        return self.repeat(workload.title, engines, lambda engine: self.merge(engine, case))

    def repeat(
        self, title: str, engines: Sequence[Engine], attempt: Attempt
    ) -> Iterator[list[Measurement]]:
        """Let engines attempt the same, as often as asked; one that failed is passed over."""
        if self.options.fresh:
            self._close_processes()
        tries = {engine.name: Tries() for engine in engines}
        for _ in range(self.options.repeats):
            for engine in engines:
                if tries[engine.name].problem is not None:
                    continue
                found = self.judged(attempt, engine)
                tries[engine.name].add(found)
                print(found.line(title, engine.name), flush=True)
            yield [found.measurement(title, name) for name, found in tries.items()]

    def judged(self, attempt: Attempt, engine: Engine) -> Try:
        """Attempt it with a warm process; whatever goes wrong is a problem of this engine."""
        try:
            self._warm_up(engine)
            return attempt(engine)
        except Exception as failure:  # noqa: BLE001 - the others go on
            return Try({}, f"{type(failure).__name__}: {failure}")

    def ask(self, engine: Engine, request: Request) -> Answer:
        """Send one request to the engine's process, which is started if it does not run."""
        running = self._processes.get(engine.process)
        if running is None or not running.is_running:
            running = EngineProcess(engine.process, limit_seconds=self.options.limit_seconds)
            self._processes[engine.process] = running
        if self.options.traces and engine.process == "puredelta" and engine.merges:
            request = {**request, "trace": True}
        answer = running.ask(request)
        if not running.is_running:
            running.close()
            del self._processes[engine.process]
            self._warm.pop(engine.process, None)
        return answer

    def base(self, shape: Shape) -> BaseTable:
        """Return a laid table."""
        return lay_table(shape, self.options.directory / shape.name)

    # --- merges -----------------------------------------------------------------------------

    def merging(
        self,
        workload: Workload,
        shape: Shape,
        *,
        drawn_from: Shape | None = None,
        name: str = "source",
    ) -> MergeCase:
        """Draw the source of a MERGE into the table of ``shape``; its files have a ``name``.

        ``drawn_from`` has the same rows in other files: those that the fractions mean.
        """
        table = self.base(shape)
        source = make_source(workload, table if drawn_from is None else self.base(drawn_from))
        paths = self.scratch / f"{name}.parquet", self.scratch / f"{name}-inserted.parquet"
        write_parquet(source.rows, paths[0])
        write_parquet(source.inserted, paths[1])
        return MergeCase(
            workload=workload,
            table=table,
            source=paths[0],
            inserted=paths[1],
            touched=tuple(table.directory / shape.file_name(file) for file in source.touched),
            expected=source.expected,
        )

    def merge(self, engine: Engine, case: MergeCase) -> Try:
        """Merge into a fresh copy of the table, or copy what must change."""
        if not engine.merges:
            return self._copy(engine, case)
        copy = self.scratch / "table"
        try:
            case.table.copy_to(copy, deletion_vectors=engine.deletion_vectors)
            clauses = [(c.kind, c.condition) for c in case.workload.clauses]
            answer = self.ask(engine, merge_request(copy, case.source, case.workload.on, clauses))
            return Try(answer, answer.get("error") or wrong(copy, case.table.shape, case.expected))
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _copy(self, engine: Engine, case: MergeCase) -> Try:
        target = self.scratch / "copied"
        try:
            answer = self.ask(engine, copy_request(case.touched, case.inserted, target))
            return Try(answer, answer.get("error"))
        finally:
            shutil.rmtree(target, ignore_errors=True)

    # --- conversions ------------------------------------------------------------------------

    def converting(self, conversion: Conversion) -> Attempt:
        """Lay the files of a conversion."""
        base = self.options.directory / conversion.directory
        conversion.lay(base)
        return lambda engine: self._convert(engine, conversion, base)

    def _convert(self, engine: Engine, conversion: Conversion, base: Path) -> Try:
        copy = self.scratch / "table"
        try:
            conversion.copy(base, copy)
            answer = self.ask(engine, convert_request(copy, conversion.partition_schema))
            return Try(answer, answer.get("error") or conversion.problem(copy))
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    # --- processes --------------------------------------------------------------------------

    def _warm_up(self, engine: Engine) -> None:
        """Merge twice, untimed, with an engine whose process is new."""
        warm = self._warm.setdefault(engine.process, set())
        if engine.name in warm or not engine.merges:
            return
        warm.add(engine.name)
        workload = next(w for w in WORKLOADS if w.title == _WARM_UP)
        case = self.merging(workload, Shape("S", workload.layout), name="warm-up")
        for _ in range(_WARM_UP_MERGES):
            self.merge(engine, case)

    def _close_processes(self) -> None:
        for process in self._processes.values():
            process.close()
        self._processes.clear()
        self._warm.clear()


def wrong(table: Path, shape: Shape, expected: Totals) -> str | None:
    """Say what is wrong with the rows of a table."""
    found = table_totals(table, shape.checked)
    return None if found == expected else f"{found} instead of {expected}"


def earlier(options: Options) -> list[Measurement]:
    """Return what an earlier run of the name measured, if this one takes it up."""
    path = RESULTS / f"{options.name}.json"
    return restored(path.read_text()) if options.resumes and path.exists() else []


def run(
    options: Options,
    workloads: Sequence[Anything],
    measure: Callable[[Anything], Iterator[list[Measurement]]],
) -> None:
    """Measure what an earlier run has not; the report is written anew after every repeat.

    Raises:
        SystemExit: something has no time.
    """
    found = earlier(options)
    title = heading(options)
    for workload in due(options, found, workloads):
        others = not_measured(found, workload, options)
        for state in measure(workload):
            found = [*others, *state]
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{options.name}.json").write_text(stored(found, title))
            (RESULTS / f"{options.name}.md").write_text(markdown(found, title) + "\n")
            (RESULTS / f"{options.name}.svg").write_text(picture(found, title))
            for base in ("delta-spark", "delta-rs"):
                if ratios(found, "puredelta", base):
                    drawn = ratio_picture(found, title, engine="puredelta", base=base)
                    (RESULTS / f"{options.name}-{base}.svg").write_text(drawn)
    print(f"\n{markdown(found, title)}\n\nKept in {RESULTS} as {options.name}")
    if any(m.problem for m in found):
        sys.exit(1)


def due(
    options: Options, found: Sequence[Measurement], workloads: Sequence[Anything]
) -> Iterator[Anything]:
    """Yield the workloads that have not been measured, until the time is over."""
    known = {(m.workload, m.engine) for m in found if not m.problem}
    end = time.monotonic() + 60 * options.minutes
    for workload in workloads:
        engines = options.engines_for(workload)
        if all((workload.title, engine.name) in known for engine in engines):
            continue
        if time.monotonic() > end:
            print(f"Left for another run: {workload.title}", flush=True)
            continue
        yield workload


def not_measured(
    found: Sequence[Measurement], workload: Titled, options: Options
) -> list[Measurement]:
    """Return what is known of other workloads, and of engines that are not asked now."""
    names = {engine.name for engine in options.engines_for(workload)}
    return [m for m in found if m.workload != workload.title or m.engine not in names]


def heading(options: Options) -> str:
    """Say where and when it was measured."""
    day = datetime.now(tz=timezone.utc).date()
    return f"Size {options.size}, {day}, {os.cpu_count()} cores, {platform.machine()}"
