"""Conditions of a query as workers test them against the statistics of row groups.

What cannot be said so is left out: Spark tests all conditions once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from puredelta.log.files.value_order import compares_as_stored, order_type
from puredelta.protocol.schema.types import BINARY, STRING, DataType
from puredelta.protocol.values.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from puredelta.worker.scan.row_groups import Condition

_LISTED_MAX = 100


def row_group_condition(predicate: Predicate, stored: Mapping[str, str]) -> Condition | None:
    """Return what must hold of a row group that is read; ``None``: all of them are.

    ``stored`` has the names of columns in the scan, by their logical names.
    """
    match predicate:
        case And(parts):
            known = [row_group_condition(part, stored) for part in parts]
            some = tuple(part for part in known if part is not None)
            return ("all", some) if some else None
        case Or(parts):
            known = [row_group_condition(part, stored) for part in parts]
            every = tuple(part for part in known if part is not None)
            return ("any", every) if len(every) == len(known) else None
        case IsNull(ref):
            return _of("null", ref, stored)
        case Not(IsNull(ref)):
            return _of("value", ref, stored)
        case Ref():
            return _compared(CompareOp.EQUAL, predicate, True, stored)  # noqa: FBT003
        case Compare(op, Ref() as ref, Const(value)):
            return _compared(op, ref, value, stored)
        case StartsWith(ref, prefix) if ref.type == STRING:
            return _of("starts", ref, stored, prefix)
        case OneOf(ref, values):
            return _listed(ref, [value for value in values if value is not None], stored)
        case _:
            return None


def _compared(op: CompareOp, ref: Ref, value: Any, stored: Mapping[str, str]) -> Condition | None:
    if value is None:
        return _of("null", ref, stored) if op is CompareOp.NULL_SAFE_EQUAL else None
    if not _is_exact(ref.type, value):
        return None
    kind = CompareOp.EQUAL if op is CompareOp.NULL_SAFE_EQUAL else op
    return _of(kind.value, ref, stored, value)


def _listed(ref: Ref, values: list[Any], stored: Mapping[str, str]) -> Condition | None:
    if not values or not all(_is_exact(ref.type, value) for value in values):
        return None
    if len(values) <= _LISTED_MAX:
        return _of("in", ref, stored, tuple(values))
    ends = (
        _of(">=", ref, stored, min(values)),
        _of("<=", ref, stored, max(values)),
    )
    some = tuple(end for end in ends if end is not None)
    return ("all", some) if some else None


def _of(kind: str, ref: Ref, stored: Mapping[str, str], *values: Any) -> Condition | None:
    if len(ref.path) != 1 or ref.path[0] not in stored:
        return None
    return (kind, stored[ref.path[0]], *values)


def _is_exact(kind: DataType | None, value: Any) -> bool:
    """Return whether workers compare a constant with values of a type as Spark does."""
    is_compared = kind is not None and kind != BINARY and order_type(kind) is not None
    return is_compared and compares_as_stored(value, kind)
