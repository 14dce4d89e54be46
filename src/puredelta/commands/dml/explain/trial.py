"""A statement that is tried: its stages up to the decision, and nothing after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from puredelta.commands.command import Command
from puredelta.commands.dml.decide.decide import Decision, decide
from puredelta.commands.dml.explain.clauses import StatedClause, stated_clauses, statement_name
from puredelta.commands.dml.explain.recording import Recording
from puredelta.commands.dml.prune.plan import SearchPlan
from puredelta.commands.dml.prune.prune import prune
from puredelta.commands.dml.resolve.resolve import resolve
from puredelta.commands.dml.search.search import search
from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.dml.source.stage import plan_source, source_in_use, stage_source
from puredelta.commands.dml.spec.statement import InputRows, StatementSpec, ask
from puredelta.commands.running.stages import Around, StageTimer


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A statement whose files were chosen. Nothing below the table stays when it ends."""

    name: str
    """``MERGE``, ``UPDATE``, ..."""
    context: StatementContext
    plan: SearchPlan
    clauses: tuple[StatedClause, ...]
    recording: Recording
    stage: StageTimer

    def decide(self) -> Decision:
        """Search the rows and decide what would become of the files: stages 5 and 6.

        Runs the Spark job of the search.
        """
        positions = self.stage("5 search", search, self.context, self.plan)
        return self.stage("6 decide", decide, self.context, self.plan, positions)


@contextmanager
def tried_statement(
    command: Command,
    spec: StatementSpec,
    rows: InputRows,
    *,
    evaluates: bool,
    around: Sequence[Around] = (),
) -> Iterator[Trial]:
    """Run stages 1 to 4; ``evaluates`` the source, or only choose how it would be read.

    What a source is evaluated into is removed at the end, whatever happens.
    """
    recording = Recording()
    stage = StageTimer(
        statement=f"{command.log.root_uri} (tried)",
        observe=recording.observe,
        around=(recording.timed, *around),
    )
    asked = stage("1 spec", ask, command, spec, rows)
    statement = stage("2 resolve", resolve, asked)
    context = stage("3 source", stage_source if evaluates else plan_source, asked, statement)
    with source_in_use(context):
        plan = stage("4 prune", prune, context)
        yield Trial(
            name=statement_name(spec),
            context=context,
            plan=plan,
            clauses=stated_clauses(spec, statement),
            recording=recording,
            stage=stage,
        )
