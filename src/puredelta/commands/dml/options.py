"""What a call may choose of how its stages work: settings, workers' parts, an observer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from puredelta.commands.dml.search.search import LookUp, look_up
from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.dml.spec.settings import ExecutionSettings
from puredelta.commands.dml.write import Rewriters
from puredelta.commands.running.stages import Around, Observer, ignore_stage


def _ignore_run(_: StatementContext) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """The defaults are what every statement of a user has."""

    settings: ExecutionSettings | None = None
    """``None``: those of the session."""
    look_up: LookUp = look_up
    rewriters: Callable[[StatementContext], Rewriters] = Rewriters.of
    observe: Observer = ignore_stage
    around: Sequence[Around] = ()
    """What goes on beside every stage: progress, spans."""
    on_run: Callable[[StatementContext], None] = _ignore_run
    """Gets the context of every run of stages 4 to 10."""


DEFAULTS = ExecutionOptions()
