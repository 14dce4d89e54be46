"""A resolved statement that changes rows, and frames with other rows for its two sides.

MERGE, UPDATE and DELETE have this one form: an UPDATE is a MERGE without source rows and
with one NOT MATCHED BY SOURCE clause.

The stages that search and write read only these types, never the user's spelling. The
``Column`` values are evaluated over the frames of ``ResolvedStatement.frames``:

=====================  ========================================================
ON, MATCHED            ``frames.target(rows).join(frames.source(rows), ...)``
NOT MATCHED            ``frames.source(rows)``
NOT MATCHED BY SOURCE  ``frames.target(rows)``
=====================  ========================================================

Frames may hold fewer columns than target and source have: the ``target_columns`` and
``source_columns`` of the evaluated expressions are enough.

Target columns are named as the final schema spells them. Source columns are named by
*staged name* (``SourceColumn.staged``), which is unique although two columns of a source may
share a name; predicates use the staged name as the first step of a source path.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.schema.predicates import Predicate, Ref
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.connect.messages import with_known_columns
from puredelta.spark.resolve.expressions import (
    ConditionPart,
    ExpressionTree,
    Frames,
    SourceColumn,
    SourceValue,
)
from puredelta.spark.resolve.statement_timestamp import StatementTimestamp
from puredelta.spark.session.names import FAILED, NO_SOURCE_COLUMN


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFrames:
    """Frames over which the Columns of a `ResolvedStatement` are evaluated; runs no job.

    Helper columns of the rows given pass through and are referred to by name; columns of
    target and source only through `target_column` and `source_column`. After a ``select``
    or an aggregation a frame is an ordinary DataFrame again.
    """

    frames: Frames
    source_columns: tuple[SourceColumn, ...]
    """The columns to which the statement refers."""

    def staging(self, source_rows: DataFrame, values: Sequence[StagedValue] = ()) -> DataFrame:
        """Return the referenced columns of the user's source under their staged names, and values
        of them; `FAILED` is one more column then.

        A source of which nothing is read still has rows: it gets one constant column.
        """
        if not self.source_columns:
            return source_rows.select(F.lit(True).alias(NO_SOURCE_COLUMN))  # noqa: FBT003
        renamed, wanted = self.frames.staged(source_rows), [c.staged for c in self.source_columns]
        is_all = self.source_columns == self.frames.staged_columns
        rows = renamed if is_all else renamed.select(*wanted)
        columns = [T.StructField(c.staged, c.type) for c in self.source_columns]
        rows = with_known_columns(rows, T.StructType(columns))
        if not values:
            return rows
        failed = functools.reduce(operator.or_, (one.value.failed for one in values))
        return self.source(rows).select(
            *(self.source_column(name).alias(name) for name in wanted),
            *(one.value.value.alias(one.staged) for one in values),
            F.when(failed, F.lit(1)).alias(FAILED),
        )

    def source(self, rows: DataFrame) -> DataFrame:
        """Give rows with (some of) the staged columns the identity of the source."""
        return self.frames.source(rows)

    def target(self, rows: DataFrame) -> DataFrame:
        """Give rows with (some of) the table's columns the identity of the target."""
        return self.frames.target(rows)

    def before_join(self, rows: DataFrame, name: str, value: Column) -> tuple[DataFrame, Column]:
        """Return rows of the target that are to be joined with the source, and a value of them."""
        return self.frames.before_join(rows, name, value)

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``."""
        return self.frames.source_column(staged)

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``, named as the schema spells it."""
        return self.frames.target_column(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedValue:
    """A value of source columns that is a column of the staged rows."""

    staged: str
    """Its name there."""
    value: SourceValue


@dataclass(frozen=True, slots=True, kw_only=True)
class EquiPair:
    """``target = source`` (or ``<=>``) between two plain columns or struct fields."""

    target: Ref
    source: Ref
    null_safe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedPair:
    """``target = source`` (or ``<=>``) between an expression of the target and a column of the
    source.
    """

    target: ExpressionTree
    source: Ref
    null_safe: bool
    conjunct: Predicate
    """What stands for it among the other conjuncts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePair:
    """A plain column of the target between plain columns of the source, one of them at least."""

    target: Ref
    low: Ref | None
    high: Ref | None
    low_open: bool = False
    """Whether the bound itself is outside of the range."""
    high_open: bool = False

    @property
    def bounds(self) -> tuple[Ref, ...]:
        """The columns of the source, the lower bound first."""
        return tuple(ref for ref in (self.low, self.high) if ref is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionParts:
    """The conjuncts of a condition, grouped by the sides they read; their AND is the condition.

    A conjunct without any column (``1 = 2``) counts as target-only.
    """

    pairs: tuple[EquiPair, ...] = ()
    target_only: tuple[Predicate, ...] = ()
    source_only: tuple[Predicate, ...] = ()
    other: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedCondition:
    """A boolean expression; NULL counts as false (M-35)."""

    column: Column
    predicate: Predicate
    """The condition as a predicate for pruning; parts that are not understood are ``Opaque``."""
    parts: ConditionParts
    sql: str
    """Plain SQL text for the history (W-16)."""
    target_columns: frozenset[str]
    source_columns: frozenset[str]
    """Staged names."""
    conjuncts: Callable[[], Sequence[ConditionPart]] = field(default=tuple, repr=False)
    """Returns the conjuncts, if staged rows can hold values of some; else nothing."""
    computed: tuple[ComputedPair, ...] = ()
    """Equalities of expressions, where staged rows hold the source's side."""
    tree: ExpressionTree | None = field(default=None, repr=False)
    """``None`` over Spark Connect, and for what has another value each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedUpdate:
    """``UPDATE``: the new row."""

    values: Mapping[str, Column]
    """The columns of the final schema, in its order, each of its type; generated columns that are
    not assigned are left out, since they are computed from the finished row.
    """
    unchanged: frozenset[str]
    """Columns that keep the target's value."""
    target_columns: frozenset[str]
    """Target columns that *assigned* values read, without the unchanged ones."""
    source_columns: frozenset[str]
    """Staged names of the source columns that values read."""
    trees: Mapping[str, ExpressionTree] = field(default_factory=dict, repr=False)
    """The expressions of columns that are assigned as a whole, where they are known."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """The columns that get a source column as it is, without any cast, and its staged name."""

    @property
    def reads_target(self) -> bool:
        """Whether the new row needs any value of the old one."""
        return bool(self.target_columns or self.unchanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedInsert:
    """``INSERT``: a row of source values only."""

    values: Mapping[str, Column]
    """The columns of the final schema, in its order, each of its type; generated and identity
    columns that are not assigned are left out.
    """
    source_columns: frozenset[str]
    """Staged names of the source columns that values read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDelete:
    """``DELETE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedClause:
    """``WHEN MATCHED``."""

    action: ResolvedUpdate | ResolvedDelete
    condition: ResolvedCondition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMatchedClause:
    """``WHEN NOT MATCHED``."""

    action: ResolvedInsert
    condition: ResolvedCondition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMatchedBySourceClause:
    """``WHEN NOT MATCHED BY SOURCE``."""

    action: ResolvedUpdate | ResolvedDelete
    condition: ResolvedCondition | None


ResolvedClause: TypeAlias = MatchedClause | NotMatchedClause | NotMatchedBySourceClause


class StatementKind(Enum):
    """Kinds of statements, as far as their rows do not show them."""

    MERGE = "MERGE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    REPLACE_WHERE = "replaceWhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStatement:
    """The whole statement, checked: only rows, files or concurrent commits can make it fail."""

    kind: StatementKind
    operation: Operation
    """The operation for the history."""
    config: TableConfig
    """The table after the statement; the same object as before unless the schema evolves."""
    schema_evolves: bool
    on: ResolvedCondition
    matched: tuple[MatchedClause, ...]
    not_matched: tuple[NotMatchedClause, ...]
    not_matched_by_source: tuple[NotMatchedBySourceClause, ...]
    target_columns: frozenset[str]
    """Target columns that ON or any clause condition reads."""
    source_columns: tuple[SourceColumn, ...]
    """All source columns that the statement reads, in the source's order."""
    has_subqueries: bool
    """Whether an assigned value reads other rows than its own."""
    pass_through: Callable[[], Mapping[str, Column]] = field(repr=False)
    """Makes every column of the final schema from an old row, over ``frames.target(rows)``."""
    frames: StatementFrames = field(repr=False)
    timestamp: StatementTimestamp = field(repr=False)
    """The statement's one timestamp (M-24): ``timestamp.bind(rows)`` for every executed frame."""

    @property
    def schema(self) -> StructType:
        """The table's schema after the statement."""
        return self.config.schema

    @property
    def clauses(self) -> tuple[ResolvedClause, ...]:
        """All clauses, kind by kind."""
        return (*self.matched, *self.not_matched, *self.not_matched_by_source)

    @property
    def computed_columns(self) -> frozenset[str]:
        """Generated columns that no clause assigns: they are computed in every row."""
        actions = [clause.action for clause in self.clauses]
        given = [a.values for a in actions if isinstance(a, ResolvedUpdate | ResolvedInsert)]
        return frozenset(self.config.generated_columns).difference(*given)

    @property
    def is_insert_only(self) -> bool:
        """Whether no target row can change."""
        return not self.matched and not self.not_matched_by_source

    @property
    def is_single_unconditional_delete(self) -> bool:
        """Whether several matches of one target row are harmless (M-71)."""
        return (
            len(self.matched) == 1
            and self.matched[0].condition is None
            and isinstance(self.matched[0].action, ResolvedDelete)
        )
