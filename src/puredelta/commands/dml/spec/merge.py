"""What the user asked a MERGE to do, before any schema is known.

The fluent builder and the SQL parser both end in a `MergeSpec`; everything after it is
shared. Expressions are what the user gave: SQL text or a Spark ``Column``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pyspark.sql import Column
from typing_extensions import assert_never

from puredelta.errors import ErrorCode, InvalidRequestError

Expression: TypeAlias = str | Column
"""SQL text, or a Column as the user built it."""


class Star(Enum):
    """``UPDATE SET *`` and ``INSERT *``: every column, resolved later by name."""

    STAR = "*"


@dataclass(frozen=True, slots=True)
class Assignment:
    """``column = value``; ``column`` is SQL text: qualified, nested, back-ticked (M-25)."""

    column: str
    value: Expression


Assignments: TypeAlias = tuple[Assignment, ...] | Star
"""In the user's order. A tuple, not a mapping: a column named twice is an error to report."""


@dataclass(frozen=True, slots=True)
class Update:
    """``THEN UPDATE SET``."""

    assignments: Assignments


@dataclass(frozen=True, slots=True)
class Delete:
    """``THEN DELETE``."""


@dataclass(frozen=True, slots=True)
class Insert:
    """``THEN INSERT``."""

    assignments: Assignments


@dataclass(frozen=True, slots=True)
class Matched:
    """``WHEN MATCHED [AND condition]``."""

    action: Update | Delete
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class NotMatched:
    """``WHEN NOT MATCHED [BY TARGET] [AND condition]``."""

    action: Insert
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class NotMatchedBySource:
    """``WHEN NOT MATCHED BY SOURCE [AND condition]``; never a star (M-06)."""

    action: Update | Delete
    condition: Expression | None = None


Clause: TypeAlias = Matched | NotMatched | NotMatchedBySource
"""Closed union: ``match`` over it ends in ``assert_never``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec:
    """One MERGE statement. Within a kind, the order of clauses decides which fires (M-07)."""

    on: Expression
    clauses: tuple[Clause, ...]
    evolve_schema: bool = False

    @property
    def matched(self) -> tuple[Matched, ...]:
        """The MATCHED clauses in order."""
        return tuple(c for c in self.clauses if isinstance(c, Matched))

    @property
    def not_matched(self) -> tuple[NotMatched, ...]:
        """The NOT MATCHED clauses in order."""
        return tuple(c for c in self.clauses if isinstance(c, NotMatched))

    @property
    def not_matched_by_source(self) -> tuple[NotMatchedBySource, ...]:
        """The NOT MATCHED BY SOURCE clauses in order."""
        return tuple(c for c in self.clauses if isinstance(c, NotMatchedBySource))


_OMITTED: dict[type[Clause], tuple[str, ErrorCode]] = {
    Matched: ("MATCHED", ErrorCode.NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION),
    NotMatched: ("NOT MATCHED", ErrorCode.NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION),
    NotMatchedBySource: (
        "NOT MATCHED BY SOURCE",
        ErrorCode.NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
    ),
}


def require_clauses(spec: MergeSpec) -> None:
    """Refuse a MERGE without a clause, or with an unreachable one.

    Raises:
        InvalidRequestError: no clause (M-09), or a clause that is not the last of its
            kind has no condition, so that later ones could never fire (M-08).
    """
    if not spec.clauses:
        raise InvalidRequestError(
            "There must be at least one WHEN clause in a MERGE statement.",
            code=ErrorCode.MERGE_MISSING_WHEN,
        )
    for some in (spec.matched, spec.not_matched, spec.not_matched_by_source):
        if any(clause.condition is None for clause in some[:-1]):
            kind, code = _OMITTED[type(some[0])]
            raise InvalidRequestError(
                f"When there are more than one {kind} clauses in a MERGE statement, "
                f"only the last {kind} clause can omit the condition.",
                code=code,
            )


def action_word(clause: Clause) -> str:
    """Return ``update``, ``delete`` or ``insert``, as messages and history name the action."""
    match clause.action:
        case Update():
            return "update"
        case Delete():
            return "delete"
        case Insert():
            return "insert"
        case _:
            assert_never(clause.action)
