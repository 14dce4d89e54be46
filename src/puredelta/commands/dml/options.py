"""What a call may choose of how its stages work: settings, workers' parts, an observer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from puredelta.commands.dml.search.search import LookUp, look_up
from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.dml.spec.settings import ExecutionSettings
from puredelta.commands.dml.stage import Observer, ignore_stage
from puredelta.commands.dml.write import Rewriters


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """The defaults are what every statement of a user has."""

    settings: ExecutionSettings | None = None
    """``None``: those of the session."""
    look_up: LookUp = look_up
    rewriters: Callable[[StatementContext], Rewriters] = Rewriters.of
    observe: Observer = ignore_stage


DEFAULTS = ExecutionOptions()
