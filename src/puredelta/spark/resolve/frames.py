"""Target and source of a command as frames that may be swapped for other rows.

A command resolves the user's expressions once, over what the user knows as target and
source, and evaluates them later over other frames: a scan of some files and some columns,
a staged copy of the source. `Frames` gives such rows the identity the expressions expect.

Column names may repeat in a source and may be the same on both sides, so each column has a
name of its own here: target columns the table's, source columns ``__puredelta_s<n>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from puredelta.protocol.values.predicates import Side
from puredelta.spark.session.helper_columns import source_column_name


class Scope(Enum):
    """Which sides an expression may see (M-20); the value is in the order Spark sees them."""

    PAIR = (Side.TARGET, Side.SOURCE)
    SOURCE = (Side.SOURCE,)
    TARGET = (Side.TARGET,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """One column of the source, by position: names may repeat."""

    ordinal: int
    name: str
    """As the user knows it."""
    staged: str
    """Unique: its name in staged files and in predicates."""
    type: T.DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetColumn:
    """One column of the target."""

    ordinal: int
    name: str
    type: T.DataType


def source_columns(rows: DataFrame) -> tuple[SourceColumn, ...]:
    """Return the columns of a source by position."""
    return tuple(
        SourceColumn(ordinal=n, name=f.name, staged=source_column_name(n), type=f.dataType)
        for n, f in enumerate(rows.schema.fields)
    )


def target_columns(rows: DataFrame) -> tuple[TargetColumn, ...]:
    """Return the columns of a target by position."""
    return tuple(
        TargetColumn(ordinal=n, name=f.name, type=f.dataType)
        for n, f in enumerate(rows.schema.fields)
    )


class Frames(Protocol):
    """Both sides of a command, and how other rows take their place. No method runs a job."""

    @property
    def target_columns(self) -> tuple[TargetColumn, ...]:
        """The columns of the target in order."""
        ...

    @property
    def source_columns(self) -> tuple[SourceColumn, ...]:
        """The columns of the source in order."""
        ...

    @property
    def target_qualifier(self) -> tuple[str, ...]:
        """The alias of the target; empty if it has none."""
        ...

    def displayed(self, scope: Scope) -> Sequence[str]:
        """Return the columns of a scope as messages show them: ``t.key``."""
        ...

    def target(self, rows: DataFrame) -> DataFrame:
        """Give scanned rows the identity of the target.

        ``rows`` has some of the table's columns under their names, and helper columns,
        which stay.
        """
        ...

    def source(self, rows: DataFrame) -> DataFrame:
        """Give staged rows the identity of the source.

        ``rows`` has some of the staged columns (`SourceColumn.staged`), and helper columns,
        which stay.
        """
        ...

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``, also after a join with ``source(...)``."""
        ...

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``, also after a join with ``target(...)``."""
        ...
