"""What the user chooses, by the environment (docs/performance.md has the list)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import engines as known
from benchmarks.conversions import CONVERSIONS, Conversion, main_conversions
from benchmarks.engines import ENGINES, Engine
from benchmarks.tables import SIZES
from benchmarks.workloads import MAIN, WORKLOADS, Workload

RESULTS = Path(__file__).parent / "results"
PREFIX = "PUREDELTA_BENCH_"

Measured = Workload | Conversion


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is measured, and how."""

    size: str
    workloads: tuple[Measured, ...]
    engines: tuple[Engine, ...]
    repeats: int
    directory: Path
    """Where tables are laid."""
    name: str
    """What files of the report are called."""
    fresh: bool = False
    """Every workload begins with new processes: their memory tells of nothing before."""
    resumes: bool = False
    """Workloads that an earlier report of the name has are not measured again."""
    traces: bool = False
    """Commands of puredelta tell of their phases (`benchmarks.profile`)."""
    limit_seconds: float = 3_600.0
    """How long an engine may take over one command."""
    minutes: float = math.inf
    """After so long no other workload is begun; another run takes it up (`resumes`)."""

    @classmethod
    def of(
        cls,
        environment: Mapping[str, str],
        *,
        workloads: str = "main",
        engines: str = ",".join(known.MAIN),
        suffix: str = "",
    ) -> Options:
        """Read the choices; ``workloads`` and ``engines`` stand where nobody chose any.

        Raises:
            SystemExit: a name is not known.
        """

        def chosen(key: str, default: str) -> str:
            return environment.get(f"{PREFIX}{key}", default)

        size = chosen("SIZE", "S")
        if size not in SIZES:
            raise SystemExit(f"no size {size!r}, only {', '.join(SIZES)}")
        return cls(
            size=size,
            workloads=_workloads(chosen("WORKLOADS", workloads), size),
            engines=_engines(chosen("ENGINES", engines)),
            repeats=int(chosen("REPEATS", "3")),
            directory=Path(chosen("DIRECTORY", str(RESULTS / "tables"))).resolve(),
            name=chosen("NAME", f"{size}{suffix}"),
            fresh=chosen("FRESH", "0") == "1",
            resumes=chosen("RESUME", "0") == "1",
            limit_seconds=float(chosen("LIMIT", "3600")),
            minutes=float(chosen("MINUTES", "inf")),
        )

    def engines_for(self, workload: object) -> tuple[Engine, ...]:
        """Return the engines that do such a thing."""
        converts = isinstance(workload, Conversion)
        return tuple(engine for engine in self.engines if engine.converts or not converts)


def _engines(chosen: str) -> tuple[Engine, ...]:
    names = list(ENGINES) if chosen == "all" else [name.strip() for name in chosen.split(",")]
    if unknown := [name for name in names if name not in ENGINES]:
        raise SystemExit(f"no engine {unknown[0]!r}, only {', '.join(ENGINES)}")
    return tuple(ENGINES[name] for name in names)


def _workloads(chosen: str, size: str) -> tuple[Measured, ...]:
    every: tuple[Measured, ...] = (*WORKLOADS, *CONVERSIONS)
    main: tuple[Measured, ...] = (
        *(w for w in WORKLOADS if w.title in MAIN),
        *main_conversions(size),
    )
    found: dict[Measured, None] = {}
    for part in (part.strip() for part in chosen.split(";")):
        match part:
            case "all":
                some = every
            case "main":
                some = main
            case _:
                some = tuple(w for w in every if part and w.title.startswith(part))
        if not some:
            titles = "; ".join(w.title for w in every)
            raise SystemExit(f"no workload {part!r}, only {titles}")
        found |= dict.fromkeys(some)
    return tuple(found)
