"""Stage 1: what was asked, by whom, and of which rows.

The checks are those that need no schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from puredelta.commands.command import Command
from puredelta.commands.dml.spec.merge import MergeSpec, require_clauses
from puredelta.commands.dml.spec.replace_where import ReplaceSpec
from puredelta.commands.dml.spec.settings import ExecutionSettings
from puredelta.commands.dml.spec.statistics import StatisticsPrefetch
from puredelta.commands.dml.spec.update_delete import DeleteSpec, UpdateSpec

StatementSpec: TypeAlias = MergeSpec | UpdateSpec | DeleteSpec | ReplaceSpec
"""Closed union: ``match`` over it ends in ``assert_never``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRows:
    """What the names of a statement refer to."""

    target: DataFrame
    """The user's frame of the table. The table is read from the log, never through it."""
    source: DataFrame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A statement that was asked for; nothing is resolved yet."""

    command: Command
    settings: ExecutionSettings
    spec: StatementSpec
    rows: InputRows
    statistics: StatisticsPrefetch
    """Of the columns that the condition seems to name."""


def ask(
    command: Command,
    spec: StatementSpec,
    rows: InputRows,
    settings: ExecutionSettings | None = None,
) -> Asked:
    """Check the clauses, and start to parse statistics; runs no Spark job.

    ``settings`` are those of the session unless they are given.

    Raises:
        InvalidRequestError: a MERGE has no clause (M-09), or one that cannot be reached (M-08).
    """
    if settings is None:
        settings = ExecutionSettings.parse(command.session.settings)
    statistics = StatisticsPrefetch(
        files=command.snapshot.files,
        config=command.snapshot.config,
        by_statistics=settings.skips_by_statistics,
    )
    if isinstance(spec, MergeSpec):
        require_clauses(spec)
        statistics = statistics.guess(spec.on)
    return Asked(command=command, settings=settings, spec=spec, rows=rows, statistics=statistics)
