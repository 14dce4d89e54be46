"""Resolved expressions of a user, and the frames that they refer to.

A command resolves the user's expressions once, over what the user knows as target and
source, and evaluates them later over other frames: a scan of some files and some columns,
a staged copy of the source. `Frames` gives such rows the identity the expressions expect.

Column names may repeat in a source and may be the same on both sides, so each column has a
name of its own here: target columns the table's, source columns ``__puredelta_s<n>``.

An expression is SQL text or a ``Column``, and sees one `Scope` of a target and a source. The
analyzer resolves it. The result says what came out in terms that need no Spark, and keeps
a ``Column`` that evaluates the expression over `Frames`. Spark's own errors (an ambiguous name,
an unknown function, mismatched types) pass as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from puredelta.protocol.schema.predicates import CompareOp, Predicate, Ref, Side
from puredelta.spark.resolve.predicate_from_json import Node, SideColumn
from puredelta.spark.session.names import source_column_name

_COLUMN_NODES = 2
"""Of a column alone: the alias that the analyzer gives it, and its attribute."""


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
    def staged_columns(self) -> tuple[SourceColumn, ...]:
        """The columns of `staged`: those of the source, and more that expressions read."""
        ...

    @property
    def target_qualifier(self) -> tuple[str, ...]:
        """The alias of the target; empty if it has none."""
        ...

    def staged(self, source_rows: DataFrame) -> DataFrame:
        """Return the user's source with its columns under their staged names."""
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

    def before_join(self, rows: DataFrame, name: str, value: Column) -> tuple[DataFrame, Column]:
        """Return rows of ``target(...)`` to be joined with ``source(...)``, and a value of them.

        The value is one of the rows before they are joined; ``name`` is free for it.
        """
        ...

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``, also after a join with ``source(...)``."""
        ...

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``, also after a join with ``target(...)``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One expression and what it may see."""

    expression: str | Column
    scope: Scope


class ResolutionProblem(Enum):
    """Why an expression cannot be used, before its type is looked at."""

    UNRESOLVED = "unresolved"
    """It names columns that do not exist in its scope."""
    FOREIGN = "foreign"
    """It has a column taken from a DataFrame that is not part of its scope."""
    AGGREGATE = "aggregate"
    """It has an aggregate or window function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionError:
    """A request that cannot be resolved."""

    position: int
    """Which of the requests."""
    problem: ResolutionProblem
    names: tuple[str, ...]
    """The columns at fault, as Spark writes them; empty for aggregates."""
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpressionTree:
    """An expression as the nodes of Catalyst's JSON, in preorder."""

    nodes: Sequence[Node]
    """With constants folded and replaceable functions replaced."""
    written_classes: frozenset[str]
    """The classes of its nodes before that."""
    columns: Mapping[int, SideColumn]
    """The columns that expression ids mean."""
    time_zone: str
    """In which timestamps are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceValue:
    """A conjunct that reads columns of the source alone, or compares the target with what reads
    these alone. Predicates cannot describe it; rows of the source may hold it.
    """

    compared: tuple[Ref | ExpressionTree, CompareOp] | None
    """A column of the target, or an expression of its columns that must be equal, and how it
    compares with the value; ``None``: the conjunct itself is the value."""
    type: T.DataType
    value: Column
    """Over `Frames.source`; NULL where Spark raises an error."""
    failed: Column
    """Whether Spark raises an error."""


ConditionPart: TypeAlias = Predicate | SourceValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExpression:
    """A request that Spark understands."""

    request: Request
    column: Column
    """Evaluates it over `Frames`."""
    type: T.DataType
    is_deterministic: bool
    has_subquery: bool
    predicate: Predicate
    """What is known of its form; ``Opaque`` with every column it uses where nothing is."""
    target_columns: frozenset[str]
    source_columns: frozenset[str]
    """Staged names."""
    sql: str
    """As Spark writes it."""
    tree: ExpressionTree | None = field(default=None, repr=False)
    """``None`` over Spark Connect, and for what has another value each time."""
    parts: Callable[[], Sequence[ConditionPart]] = field(default=tuple, repr=False)
    """Returns the conjuncts of a condition, if the source can hold values of some; else nothing."""

    @property
    def source_column(self) -> str | None:
        """The staged name of the source column that this is, where its tree is known."""
        if self.tree is None or len(self.tree.nodes) != _COLUMN_NODES:
            return None
        node = self.tree.nodes[-1]
        known = self.tree.columns.get(node.get("exprId", {}).get("id"))
        return known.name if known is not None and known.side is Side.SOURCE else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Every request resolved; or, where some cannot be, the errors of those and nothing else."""

    expressions: tuple[ResolvedExpression, ...] = ()
    """One per request, in order."""
    errors: tuple[ResolutionError, ...] = ()
    """In the order of the requests."""

    @property
    def has_subqueries(self) -> bool:
        """Whether any expression has one."""
        return any(expression.has_subquery for expression in self.expressions)


class Resolver(Protocol):
    """Resolves expressions over one target and one source; runs no job."""

    @property
    def frames(self) -> Frames:
        """The target and the source, and other rows in their place."""
        ...

    def resolve(self, requests: Sequence[Request]) -> Resolution:
        """Resolve all requests, or say what is wrong with some.

        Raises:
            pyspark.errors.PySparkException: what Spark itself refuses.
        """
        ...

    def check_all(self, values: Mapping[Scope, Sequence[Column]]) -> None:
        """Do `check` for several scopes, one at least."""
        ...

    def check(self, values: Sequence[Column], scope: Scope) -> tuple[T.DataType, ...]:
        """Return the types of values that are evaluated over a scope.

        Raises:
            pyspark.errors.AnalysisException: Spark refuses one of them.
        """
        ...
