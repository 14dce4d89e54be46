"""Options of a call, and second runs of a statement after another writer's commit (X-29b).

A second run repeats the stages that read the table, on its newest version. Names, the clock
and the rows of the source stay those of the first run.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from puredelta.commands.dml.actions import Outcome
from puredelta.commands.dml.search import LookUp, look_up
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.write import Rewriters
from puredelta.commands.statement.stages import Around, Observer, ignore_stage
from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)

logger = logging.getLogger(__name__)

_ABOUT_ROWS = (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConcurrentDeleteDeleteException,
)
"""Conflicts that lead to a second run; all others change the meaning of a statement."""
_WAIT_S = 0.1
_WAIT_S_MAX = 5.0


def until_committed(
    run: Callable[[StatementContext], Outcome],
    context: StatementContext,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Run the stages after the source, and repeat them after a conflict about rows, up to a limit.

    A statement whose source reads the table itself runs once: its rows are those of one version.
    So does one whose table got another definition meanwhile.

    Raises:
        ConflictError: the last one.
    """
    retries = 0 if context.command.transaction.has_read_rows else context.settings.retries
    for attempt in range(retries):
        try:
            return run(context)
        except _ABOUT_ROWS as conflict:
            sleep(_pause_s(attempt))
            renewed = _on_newest_version(context)
            if renewed is None:
                raise
            logger.info(
                "%s: run %d, on version %d: %s",
                context.command.log.root_uri,
                attempt + 2,
                renewed.snapshot.version,
                conflict,
            )
            context = renewed
        if context.command.already_committed():
            return Outcome.of_earlier()
    return run(context)


def _on_newest_version(context: StatementContext) -> StatementContext | None:
    """Return the statement on the newest version; None if its meaning may have changed."""
    command = context.command.on(context.command.log.snapshot())
    if command.snapshot.config != context.snapshot.config:
        return None
    statistics = context.statistics.of(command.snapshot.files)
    return replace(context, command=command, statistics=statistics)


def _pause_s(attempt: int) -> float:
    """Return a time that grows with each attempt and differs from writer to writer."""
    longest = min(_WAIT_S * 2**attempt, _WAIT_S_MAX)
    return random.uniform(longest / 2, longest)  # noqa: S311 - no secret


def _ignore_run(_: StatementContext) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """Options of an execution; the defaults are those of a user's statement."""

    settings: ExecutionSettings | None = None
    """``None``: those of the session."""
    look_up: LookUp = look_up
    rewriters: Callable[[StatementContext], Rewriters] = Rewriters.of
    observe: Observer = ignore_stage
    around: Sequence[Around] = ()
    """Context that runs beside every stage: progress, spans."""
    on_run: Callable[[StatementContext], None] = _ignore_run
    """Gets the context of every run of stages 4 to 10."""


DEFAULTS = ExecutionOptions()
