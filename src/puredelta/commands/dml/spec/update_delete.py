"""What the user asked an UPDATE or a DELETE to do, before any schema is known.

`DeltaTable.update`, `DeltaTable.delete` and the SQL parser end in these; everything after
is shared. Expressions are what the user gave: SQL text or a Spark ``Column``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from puredelta.commands.dml.spec.merge import Assignment, Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSpec:
    """``UPDATE ... SET column = value, ... [WHERE condition]``; without one, every row."""

    assignments: tuple[Assignment, ...]
    """In the user's order. A tuple: a column named twice is an error to report."""
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSpec:
    """``DELETE FROM ... [WHERE condition]``; without one, every row."""

    condition: Expression | None = None


RowSpec: TypeAlias = UpdateSpec | DeleteSpec
"""Closed union: ``match`` over it ends in ``assert_never``."""


def operation_name(spec: RowSpec) -> str:
    """Return what the history and messages call the statement."""
    return "UPDATE" if isinstance(spec, UpdateSpec) else "DELETE"
