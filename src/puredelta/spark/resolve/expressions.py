"""The user's expressions, resolved by Spark's own analyzer: names, types, and what is in them.

An expression is SQL text or a ``Column``, and sees one `Scope` of a target and a source. The
analyzer resolves it. The result says what came out in terms that need no Spark, and keeps
a ``Column`` that evaluates the expression over `Frames`. Spark's own errors (an ambiguous name,
an unknown function, mismatched types) pass as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import types as T

from puredelta.protocol.values.predicates import Predicate
from puredelta.spark.resolve.frames import Frames, Scope


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

    def check(self, values: Sequence[Column], scope: Scope) -> tuple[T.DataType, ...]:
        """Return the types of values that are evaluated over a scope.

        Raises:
            pyspark.errors.AnalysisException: Spark refuses one of them.
        """
        ...
