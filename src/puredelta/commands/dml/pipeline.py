"""The ten stages of MERGE, UPDATE, DELETE and ``replaceWhere``, from the statement to its commit.

Every stage is a function from frozen values to a frozen value, in the module of its name.
After any failure the table is unchanged and the written files are removed.
"""

from __future__ import annotations

from functools import partial

from puredelta.commands.command import Command
from puredelta.commands.dml.actions import Outcome, commit, prepare_commit
from puredelta.commands.dml.decide import decide
from puredelta.commands.dml.in_place import plan_in_place
from puredelta.commands.dml.new_rows import new_rows
from puredelta.commands.dml.prune import prune
from puredelta.commands.dml.resolve.resolve import resolve
from puredelta.commands.dml.retry import DEFAULTS, ExecutionOptions, until_committed
from puredelta.commands.dml.search import search
from puredelta.commands.dml.source import StatementContext, source_in_use, stage_source
from puredelta.commands.dml.spec import InputRows, Stage, StatementSpec, ask
from puredelta.commands.dml.verify import verify
from puredelta.commands.dml.write import write
from puredelta.commands.finish import discarded_on_failure
from puredelta.commands.statement.stages import StageTimer
from puredelta.spark.connect.messages import without_origins


def execute(
    command: Command,
    spec: StatementSpec,
    rows: InputRows,
    options: ExecutionOptions = DEFAULTS,
) -> Outcome:
    """Execute a statement on the command's snapshot and commit it, unless it changes nothing."""
    with without_origins():
        return _execute(command, spec, rows, options)


def _execute(
    command: Command, spec: StatementSpec, rows: InputRows, options: ExecutionOptions
) -> Outcome:
    stage = StageTimer(
        statement=command.log.root_uri, observe=options.observe, around=options.around
    )
    asked = stage(Stage.SPEC, ask, command, spec, rows, options.settings)
    statement = stage(Stage.RESOLVE, resolve, asked)
    if command.already_committed():
        return Outcome.of_earlier()
    context = stage(Stage.SOURCE, stage_source, asked, statement)
    with source_in_use(context):
        return until_committed(partial(_change_rows, stage=stage, options=options), context)


def _change_rows(
    context: StatementContext, *, stage: StageTimer, options: ExecutionOptions
) -> Outcome:
    """Run the stages that read the version of the context, and commit on it."""
    options.on_run(context)
    plan = stage(Stage.PRUNE, prune, context)
    positions = stage(Stage.SEARCH, search, context, plan, look_up=options.look_up)
    decision = stage(Stage.DECIDE, decide, context, plan, positions)
    new = stage(Stage.NEW_ROWS, new_rows, context, plan, decision)
    in_place = partial(plan_in_place, context, plan, decision)
    writing = partial(write, rewriters=options.rewriters, in_place=in_place)
    written = stage(Stage.WRITE, writing, context, decision, new)
    with discarded_on_failure(written.discard):
        counts = stage(Stage.VERIFY, verify, context, plan, decision, written)
        prepare = partial(prepare_commit, rows=counts, times=stage)
        prepared = stage(Stage.ACTIONS, prepare, context, plan, decision, written)
    finishing = partial(commit, discard=written.discard)
    return stage(Stage.COMMIT, finishing, context, prepared, plan)
