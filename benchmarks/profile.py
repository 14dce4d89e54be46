"""Where the time of puredelta's commands goes: phases, Spark jobs, calls into the JVM.

    python -m benchmarks.profile

Every workload that is chosen is summed up in a line; the slowest are taken apart, beside the
copy of the same files by Spark alone, which is what the work itself costs there. Choices are
those of `benchmarks.options`, PUREDELTA_BENCH_SLOWEST: how many are taken apart (3), and
PUREDELTA_BENCH_PIECES: how many files each of the usual ones is cut into (1).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.bench import Answer, Attempt, Bench, heading
from benchmarks.conversions import Conversion
from benchmarks.options import PREFIX, RESULTS, Measured, Options
from benchmarks.report import table_head, table_row
from benchmarks.spark_engine import covered
from benchmarks.tables import Shape

_INDENT = "&nbsp;&nbsp;"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The repeat of an engine that took the median time."""

    workload: str
    engine: str
    answer: Mapping[str, Any]
    copy_seconds: float | None
    """What Spark alone needs to copy what must be touched."""

    @property
    def seconds(self) -> float:
        return float(self.answer["seconds"])


def main() -> None:
    """Profile what the environment chooses."""
    chosen = Options.of(os.environ, engines="puredelta,spark-copy", suffix="-profile")
    options = replace(chosen, traces=True)
    slowest = int(os.environ.get(f"{PREFIX}SLOWEST", "3"))
    bench = Bench(options)
    found: list[Profile] = []
    problems: list[str] = []
    try:
        for workload in options.workloads:
            answers, wrong = _answers(bench, options, workload)
            problems += wrong
            found += _profiles(workload.title, answers)
            _store(found, options, slowest)
    finally:
        bench.close()
    print(f"\n{report(found, heading(options), slowest)}\n\nKept in {RESULTS} as {options.name}")
    if problems:
        sys.exit("\n".join(problems))


def _answers(
    bench: Bench, options: Options, workload: Measured
) -> tuple[dict[str, list[Answer]], list[str]]:
    """Return what every engine answered, by its name, and what was wrong."""
    attempt = _attempt(bench, options, workload)
    answers: dict[str, list[Answer]] = {}
    problems = []
    for _ in range(options.repeats):
        for engine in options.engines_for(workload):
            tried = bench.judged(attempt, engine)
            line = tried.line(workload.title, engine.name)
            print(line, flush=True)
            if tried.problem is None:
                answers.setdefault(engine.name, []).append(tried.answer)
            else:
                problems.append(line)
    return answers, problems


def _attempt(bench: Bench, options: Options, workload: Measured) -> Attempt:
    if isinstance(workload, Conversion):
        return bench.converting(workload)
    usual = Shape(options.size, workload.layout)
    pieces = int(os.environ.get(f"{PREFIX}PIECES", "1"))
    shape = usual if usual.is_partitioned else replace(usual, pieces=pieces)
    case = bench.merging(workload, shape, drawn_from=usual)
    return lambda engine: bench.merge(engine, case)


def _profiles(workload: str, answers: Mapping[str, Sequence[Answer]]) -> list[Profile]:
    medians = {name: _median(found) for name, found in answers.items()}
    copy = medians.get("spark-copy")
    return [
        Profile(
            workload=workload,
            engine=name,
            answer=answer,
            copy_seconds=None if copy is None else copy["seconds"],
        )
        for name, answer in medians.items()
        if "spans" in answer
    ]


def _median(answers: Sequence[Answer]) -> Answer:
    return sorted(answers, key=lambda answer: answer["seconds"])[(len(answers) - 1) // 2]


# --- the report -----------------------------------------------------------------------------


def report(found: Sequence[Profile], title: str, slowest: int) -> str:
    """Return, as Markdown, a line for every profile and the phases of the slowest."""
    ordered = sorted(found, key=lambda profile: -profile.seconds)
    lines = [
        f"# Where the time goes, {title}",
        "",
        *table_head(
            [
                *("workload", "engine", "seconds", "in Spark jobs", "outside", "jobs"),
                *("Py4J calls", "processor s", "Spark's copy, s"),
            ]
        ),
        *map(_summary, ordered),
    ]
    for profile in ordered[:slowest]:
        lines += ["", f"## {profile.workload}, {profile.engine}: {profile.seconds:.2f} s", ""]
        lines += phase_table(profile.answer)
        lines += ["", *job_table(profile.answer)]
    return "\n".join(lines)


def _summary(profile: Profile) -> str:
    answer, copy = profile.answer, profile.copy_seconds
    command = answer["spans"][0]
    cells = [f"{answer['seconds']:.2f}", f"{answer['job_seconds']:.2f}"]
    cells += [f"{answer['seconds'] - answer['job_seconds']:.2f}", str(answer["jobs"])]
    cells += [str(command["calls"]), f"{answer['cpu_seconds']:.2f}"]
    cells += ["-" if copy is None else f"{copy:.2f}"]
    return table_row([profile.workload, profile.engine, *cells])


@dataclass(slots=True)
class _Phase:
    """All spans of a path."""

    seconds: float = 0.0
    own_seconds: float = 0.0
    """Without the phases inside of it, those in another thread excepted."""
    in_jobs: float = 0.0
    jobs: int = 0
    calls: int = 0
    python_seconds: float = 0.0
    beside: bool = False
    times: int = 0


def phase_table(answer: Answer) -> list[str]:
    """Return the phases in the order they began; a phase that others are part of comes first."""
    jobs = [(job["begun_ms"], job["ended_ms"]) for job in answer["ran"]]
    phases: dict[tuple[str, ...], _Phase] = {}
    for span in answer["spans"]:
        phase = phases.setdefault(tuple(span["path"]), _Phase())
        seconds = span["ended"] - span["begun"]
        phase.times += 1
        phase.seconds += seconds
        phase.own_seconds += seconds
        phase.calls += span["calls"]
        phase.python_seconds += span["python_seconds"]
        phase.beside = span["beside"]
        begun, ended = span["begun"] * 1_000, span["ended"] * 1_000
        inside = [(max(b, begun), min(e, ended)) for b, e in jobs if b < ended and e > begun]
        phase.in_jobs += covered(inside) / 1_000
        phase.jobs += sum(begun <= b < ended for b, _ in jobs)
        above = phases.get(tuple(span["path"][:-1]))
        if above is not None and not span["beside"]:
            above.own_seconds -= seconds
    head = ["phase", "times", "seconds", "its own", "a job ran", "none ran", "jobs"]
    lines = table_head([*head, "Py4J calls", "Python, processor s"])
    for path, phase in sorted(phases.items(), key=lambda item: _place(item[0], list(phases))):
        name = f"{_INDENT * (len(path) - 1)}{path[-1]}{' (at the same time)' * phase.beside}"
        cells = [f"{phase.seconds:.2f}", f"{phase.own_seconds:.2f}", f"{phase.in_jobs:.2f}"]
        cells += [f"{phase.seconds - phase.in_jobs:.2f}", str(phase.jobs), str(phase.calls)]
        lines.append(table_row([name, str(phase.times), *cells, f"{phase.python_seconds:.2f}"]))
    return lines


def _place(path: tuple[str, ...], order: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Return where a phase stands: after what it is a part of, before what began later."""
    return tuple(order.index(path[: depth + 1]) for depth in range(len(path)))


def job_table(answer: Answer) -> list[str]:
    """Return the Spark jobs of a command."""
    head = ["job", "began at, s", "seconds", "tasks", "their time", "processor s of the JVM"]
    lines = table_head([*head, "read, MB", "written, MB", "shuffled, MB"])
    start = answer["spans"][0]["begun"] * 1_000
    for job in answer["ran"]:
        seconds = (job["ended_ms"] - job["begun_ms"]) / 1_000
        cells = [f"{(job['begun_ms'] - start) / 1_000:.2f}", f"{seconds:.2f}", str(job["tasks"])]
        cells += [f"{job[key]:.2f}" for key in ("run_seconds", "cpu_seconds")]
        sizes = (job[key] / 2**20 for key in ("read_bytes", "written_bytes", "shuffled_bytes"))
        lines.append(table_row([job["name"], *cells, *(f"{mb:.1f}" for mb in sizes)]))
    return lines


def _store(found: Sequence[Profile], options: Options, slowest: int) -> None:
    RESULTS.mkdir(exist_ok=True)
    title = heading(options)
    kept = [{"workload": p.workload, "engine": p.engine, "answer": p.answer} for p in found]
    (RESULTS / f"{options.name}.json").write_text(json.dumps(kept, indent=1))
    (RESULTS / f"{options.name}.md").write_text(report(found, title, slowest) + "\n")


if __name__ == "__main__":
    main()
