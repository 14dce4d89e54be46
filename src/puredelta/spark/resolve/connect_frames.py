"""Frames of a Connect session: alias and name say which column is meant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.protocol.values.predicates import Side
from puredelta.spark.resolve.frames import Scope, source_columns, target_columns
from puredelta.spark.session.helper_columns import target_copy_name
from puredelta.spark.session.identifiers import display_name, quote


class ConnectFrames:
    """Frames whose columns are known by alias and name, all that a Connect client has.

    Beside the user's names each frame carries copies under unique names, so that what this
    library itself refers to is never ambiguous. What only the original plan could resolve
    is refused by Spark when it is resolved: a ``Column`` taken from a DataFrame, and inner
    aliases of a joined source.
    """

    def __init__(self, target: DataFrame, source: DataFrame) -> None:
        self.target_columns = target_columns(target)
        self.source_columns = source_columns(source)
        self._target_alias = outer_alias(target)
        self._source_alias = outer_alias(source)
        self._target = target
        self._source = source

    @property
    def target_qualifier(self) -> tuple[str, ...]:
        """The alias of the target; empty if it has none."""
        return () if self._target_alias is None else (self._target_alias,)

    @property
    def source_qualifier(self) -> tuple[str, ...]:
        """The alias of the source; empty if it has none."""
        return () if self._source_alias is None else (self._source_alias,)

    def displayed(self, scope: Scope) -> Sequence[str]:
        """Return the columns of a scope as messages show them: ``t.key``."""
        names = {
            Side.TARGET: [(*self.target_qualifier, c.name) for c in self.target_columns],
            Side.SOURCE: [(*self.source_qualifier, c.name) for c in self.source_columns],
        }
        return tuple(display_name(parts) for side in scope.value for parts in names[side])

    def stand_in(self, scope: Scope) -> DataFrame:
        """Return the frame of a scope for analysis; it is never run."""
        staged = self._source.toDF(*[c.staged for c in self.source_columns])
        match scope:
            case Scope.TARGET:
                return self.target(self._target)
            case Scope.SOURCE:
                return self.source(staged)
            case _:
                return self.target(self._target).crossJoin(self.source(staged))

    def shown(self, scope: Scope) -> DataFrame:
        """Return a frame of the user's names alone, for errors that list what there is."""
        sides = {Side.TARGET: self._target, Side.SOURCE: self._source}
        return reduce(lambda one, other: one.crossJoin(other), (sides[s] for s in scope.value))

    def target(self, rows: DataFrame) -> DataFrame:
        """Give scanned rows the identity of the target."""
        present = [c for c in self.target_columns if c.name in rows.columns]
        copies = [F.col(quote(c.name)).alias(target_copy_name(c.ordinal)) for c in present]
        frame = rows.select("*", *copies)
        return frame if self._target_alias is None else frame.alias(self._target_alias)

    def source(self, rows: DataFrame) -> DataFrame:
        """Give staged rows the identity of the source."""
        present = [c for c in self.source_columns if c.staged in rows.columns]
        frame = rows.select("*", *[F.col(c.staged).alias(c.name) for c in present])
        return frame if self._source_alias is None else frame.alias(self._source_alias)

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``."""
        ordinal = next(c.ordinal for c in self.target_columns if c.name == name)
        return F.col(target_copy_name(ordinal))

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``."""
        return F.col(staged)


_TRANSPARENT = ("Filter", "Sort", "Limit", "Tail", "Offset", "Deduplicate", "Sample", "Hint")
"""Connect plan nodes above which an alias still holds."""


def outer_alias(rows: DataFrame) -> str | None:
    """Return the alias of a Connect DataFrame as its columns know it."""
    plan: Any = getattr(rows, "_plan", None)
    while plan is not None and type(plan).__name__ in _TRANSPARENT:
        plan = plan._child  # noqa: SLF001 - no public way to ask for an alias
    if type(plan).__name__ != "SubqueryAlias":
        return None
    return str(plan._alias)  # noqa: SLF001
