"""A predicate as a small tree that files can be pruned with.

Predicates of users (an analyzed plan of Catalyst, or SQL text) are translated into this tree. A
part that cannot be translated becomes `Opaque`, which costs speed but never rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from typing_extensions import assert_never

from puredelta.protocol.schema.types import DataType


class Side(Enum):
    """Which relation a column belongs to; a predicate over one table uses ``TARGET``."""

    TARGET = "target"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Ref:
    """A column or a struct field of it, by logical names, with its type.

    ``type`` is ``None`` if it could not be determined; files are not pruned by such a reference.
    """

    side: Side
    path: tuple[str, ...]
    type: DataType | None


@dataclass(frozen=True, slots=True)
class Const:
    """A literal: int, float, str, bool, bytes, Decimal, date, datetime (aware for
    ``timestamp``, naive for ``timestamp_ntz``) or ``None`` for NULL.
    """

    value: Any


class CompareOp(Enum):
    """The comparison operators; ``NULL_SAFE_EQUAL`` is ``<=>``."""

    EQUAL = "="
    NULL_SAFE_EQUAL = "<=>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="

    @property
    def flipped(self) -> CompareOp:
        """The operator that means the same with its sides swapped."""
        return _FLIPPED.get(self, self)


_FLIPPED = {
    CompareOp.LESS: CompareOp.GREATER,
    CompareOp.LESS_OR_EQUAL: CompareOp.GREATER_OR_EQUAL,
    CompareOp.GREATER: CompareOp.LESS,
    CompareOp.GREATER_OR_EQUAL: CompareOp.LESS_OR_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right``; a literal is on the right."""

    op: CompareOp
    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class OneOf:
    """``ref IN (values)``; many whole numbers may be an ``array("q")``."""

    ref: Ref
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class IsNull:
    """``ref IS NULL``."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``ref LIKE 'prefix%'`` on a binary-collated string."""

    ref: Ref
    prefix: str


@dataclass(frozen=True, slots=True)
class Not:
    """``NOT child`` (three-valued)."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class And:
    """All of ``parts``; with no part, TRUE."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of ``parts``; with no part, FALSE."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other expression; only the columns that it uses are known."""

    refs: frozenset[Ref]


Predicate: TypeAlias = Ref | Const | Compare | OneOf | IsNull | StartsWith | Not | And | Or | Opaque
"""Closed union: ``match`` over it ends in ``assert_never``. A bare `Ref` is a boolean column."""

TRUE = And(())
FALSE = Or(())


def references(predicate: Predicate) -> frozenset[Ref]:
    """Return every column that the predicate uses."""
    match predicate:
        case Ref():
            return frozenset({predicate})
        case Const():
            return frozenset()
        case Compare(_, left, right):
            return references(left) | references(right)
        case OneOf(ref) | IsNull(ref) | StartsWith(ref):
            return frozenset({ref})
        case Not(child):
            return references(child)
        case And(parts) | Or(parts):
            return frozenset().union(*map(references, parts))
        case Opaque(refs):
            return refs
        case _:
            assert_never(predicate)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Split nested ANDs into their parts; anything else is one part."""
    if isinstance(predicate, And):
        return tuple(c for part in predicate.parts for c in conjuncts(part))
    return (predicate,)
