"""Expressions of workers as short tuples, for tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from puredelta.worker.expressions import Call, Constant, Expression, InputColumn


def expression(short: Any) -> Expression:
    """Return what ``("equal", ("target", 0), ("value", 1, pa.int64()))`` is short for."""
    name, *rest = short
    if name in ("target", "source"):
        return InputColumn(name, *rest)
    if name == "value":
        return Constant(*rest)
    arguments = tuple(expression(one) for one in rest if isinstance(one, tuple))
    return Call(name, arguments, tuple(one for one in rest if not isinstance(one, tuple)))


def group_condition(short: Any) -> Expression:
    """Return a condition on row groups: ``("less", "n", 5)``, ``("and_kleene", (..., ...))``."""
    name, first, *rest = short
    if isinstance(first, tuple):
        return Call(name, tuple(map(group_condition, first)))
    constants = (Constant(value, pa.null()) for value in rest)
    return Call(name, (InputColumn("target", first), *constants))
