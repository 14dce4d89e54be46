"""What a run of many seeds has to say: sums, and nothing lost; or a seed to replay."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from simulation.command_line import spell
from simulation.faults import FaultKind
from simulation.plan import Plan
from simulation.simulate import Run
from simulation.statements.statement import Outcome


@dataclass(slots=True)
class Totals:
    """Sums over runs."""

    seeds: int = 0
    versions: int = 0
    steps: int = 0
    cpu_seconds: float = 0.0
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    faults: Counter[FaultKind] = field(default_factory=Counter)

    def add(self, run: Run) -> None:
        """Count a run."""
        self.seeds += 1
        self.versions += run.num_versions
        self.steps += run.num_steps
        self.cpu_seconds += run.cpu_seconds
        self.outcomes.update(run.outcomes)
        self.faults.update(kind for _, kind in run.faults)

    def lines(self, seconds: float) -> Iterator[str]:
        """Yield the report of runs that took so long together."""
        yield from self._table()
        ended = Counter[Outcome]()
        for (_, outcome), count in self.outcomes.items():
            ended[outcome] += count
        yield ""
        yield f"{self.seeds:12,} seeds, {sum(ended.values()):,} statements of concurrent writers"
        yield f"{ended[Outcome.COMMITTED]:12,} committed"
        yield f"{ended[Outcome.CONFLICT]:12,} conflicted with another writer"
        yield f"{ended[Outcome.UNKNOWN]:12,} of unknown outcome"
        yield f"{ended[Outcome.FAILED]:12,} failed, {ended[Outcome.KILLED]:,} killed"
        yield f"{self.versions:12,} versions checked when they landed"
        yield f"{self.steps:12,} points at which another writer might go on"
        yield f"{sum(self.faults.values()):12,} faults injected:"
        for kind, count in self.faults.most_common():
            yield f"{count:18,} {kind.value}"
        yield (
            f"{self.seeds / max(seconds, 1e-9) * 60:12,.0f} seeds a minute "
            f"({self.seeds / max(self.cpu_seconds, 1e-9) * 60:,.0f} a minute of one core)"
        )

    def _table(self) -> Iterator[str]:
        columns = list(Outcome)
        kinds = sorted({kind for kind, _ in self.outcomes})
        yield f"{'':12}" + "".join(f"{column.value:>15}" for column in columns)
        for kind in kinds:
            counts = (self.outcomes[kind, column] for column in columns)
            yield f"{kind:12}" + "".join(f"{count or '':>15}" for count in counts)


def replay_command(plan: Plan) -> str:
    """Return the command that runs a plan again."""
    return f'make simulate ARGS="{spell(plan)}"'


def violation_lines(failed: Run, smallest: Run) -> Iterator[str]:
    """Yield what broke, how little of it suffices, and how to see it again."""
    plan = smallest.plan
    yield f"SEED {failed.plan.seed} BREAKS A RULE: {failed.violation}"
    yield f"  replay: {replay_command(failed.plan)}"
    yield (
        f"  shrunk to {len(plan.all_statements())} statements, {len(smallest.faults)} faults and "
        f"{len(smallest.switches)} switches: {smallest.violation}"
    )
    yield f"  replay: {replay_command(plan)}"
    yield "  what happens:"
    for line in smallest.trace:
        yield f"  {line}"


def print_lines(*lines: str) -> None:
    """Print lines at once: whoever waits for hours looks at them."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
