"""Dry run of a statement: its stages up to the decision, recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark.sql import functions as F

from puredelta.commands.command import Command
from puredelta.commands.dml.decide import Decision, decide
from puredelta.commands.dml.new_rows import FIRST_INSERT, marked_source
from puredelta.commands.dml.prune import prune
from puredelta.commands.dml.report_clauses import StatedClause, stated_clauses, statement_name
from puredelta.commands.dml.resolve.resolve import resolve
from puredelta.commands.dml.search import search
from puredelta.commands.dml.search_plan import SearchPlan
from puredelta.commands.dml.source import StatementContext, plan_source, source_in_use, stage_source
from puredelta.commands.dml.spec import InputRows, Stage, StatementSpec, ask
from puredelta.commands.statement.parts import StageTime
from puredelta.commands.statement.prepared import Running, running_statement
from puredelta.commands.statement.stages import Around, StageTimer, described_outcome
from puredelta.spark.session.names import CLAUSE

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Recording:
    """Outcomes and times by stage, of the last run only if a statement ran several times."""

    outcomes: dict[str, object] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    context: StatementContext | None = None
    """Of the last run."""
    runs: int = 0

    def observe(self, stage: str, outcome: object) -> None:
        """Keep an outcome."""
        self.outcomes[stage] = outcome

    def on_run(self, context: StatementContext) -> None:
        """Keep the context of a run, and forget the run before."""
        self.context = context
        self.runs += 1

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Measure the time of the block."""
        started = time.monotonic()
        yield
        self.seconds[stage] = time.monotonic() - started

    def find(self, stage: str, kind: type[T]) -> T | None:
        """Return the outcome of a stage, None if it has not run."""
        found = self.outcomes.get(stage)
        return found if isinstance(found, kind) else None

    def stages(self) -> tuple[StageTime, ...]:
        """Return the executed stages, in order."""
        return tuple(
            StageTime(
                name=name, seconds=seconds, outcome=described_outcome(self.outcomes.get(name))
            )
            for name, seconds in self.seconds.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A statement with its chosen files. All files that it writes are removed when it ends."""

    name: str
    """``MERGE``, ``UPDATE``, ..."""
    context: StatementContext
    plan: SearchPlan
    clauses: tuple[StatedClause, ...]
    recording: Recording
    stage: StageTimer

    def decide(self) -> Decision:
        """Search the rows and decide about the files: stages 5 and 6.

        Runs the Spark job of the search.
        """
        positions = self.stage(Stage.SEARCH, search, self.context, self.plan)
        return self.stage(Stage.DECIDE, decide, self.context, self.plan, positions)


def run_statement(command: Command, spec: StatementSpec) -> AbstractContextManager[Running]:
    """Return the context of a running statement: progress, spans and the tag of its jobs."""
    return running_statement(
        command.spark, statement_name(spec), command.log.root_uri, command.session.settings
    )


@contextmanager
def tried_statement(
    command: Command,
    spec: StatementSpec,
    rows: InputRows,
    *,
    evaluates: bool,
    around: Sequence[Around] = (),
) -> Iterator[Trial]:
    """Run stages 1 to 4; ``evaluates`` the source, or only chooses how it would be read.

    The files of an evaluated source are removed at the end, in every case.
    """
    recording = Recording()
    stage = StageTimer(
        statement=f"{command.log.root_uri} (tried)",
        observe=recording.observe,
        around=(recording.timed, *around),
    )
    asked = stage(Stage.SPEC, ask, command, spec, rows)
    statement = stage(Stage.RESOLVE, resolve, asked)
    context = stage(Stage.SOURCE, stage_source if evaluates else plan_source, asked, statement)
    with source_in_use(context):
        plan = stage(Stage.PRUNE, prune, context)
        yield Trial(
            name=statement_name(spec),
            context=context,
            plan=plan,
            clauses=stated_clauses(spec, statement),
            recording=recording,
            stage=stage,
        )


def count_inserts(context: StatementContext, decision: Decision) -> tuple[int, ...]:
    """Return the rows of each NOT MATCHED clause, in their order.

    Runs one Spark job where conditions decide or several clauses share the rows, else none.
    """
    clauses, rows = context.statement.not_matched, decision.rows
    if not rows.inserts:
        return tuple(0 for _ in clauses)
    if len(clauses) == 1 and rows.num_inserts is not None:
        return (rows.num_inserts,)
    read = frozenset[str]().union(
        *(c.condition.source_columns for c in clauses if c.condition is not None)
    )
    frame, clause = marked_source(context, decision.positions, (), clauses, read)
    chosen = frame.select(clause.cast("int").alias(CLAUSE)).where(F.col(CLAUSE).isNotNull())
    counted = context.statement.timestamp.bind(chosen.groupBy(CLAUSE).count()).collect()
    counts = {row[CLAUSE] - FIRST_INSERT: int(row["count"]) for row in counted}
    return tuple(counts.get(n, 0) for n in range(len(clauses)))


def known_inserts(decision: Decision, num_clauses: int, inserted: int) -> tuple[int | None, ...]:
    """Return the rows of each clause as far as their total determines them."""
    if num_clauses == 1 or not decision.rows.inserts:
        return tuple(inserted for _ in range(num_clauses))
    return tuple(None for _ in range(num_clauses))
