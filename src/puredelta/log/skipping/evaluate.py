"""Evaluate a predicate on the bounds of files: might a row make it TRUE, might a row make it FALSE.

Every node of a predicate answers both questions for each file. NOT swaps the answers. NULL is
neither TRUE nor FALSE, so a column of NULLs satisfies neither a comparison nor its negation. Where
a bound is unknown, both answers are yes.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import assert_never

from puredelta.log.files.value_order import (
    LONG_MAX,
    LONG_MIN,
    Thresholds,
    order_value,
    thresholds,
)
from puredelta.log.skipping.file_bounds import Bounds, FileBounds, Mask
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Opaque,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from puredelta.protocol.schema.types import INTEGRAL

_AT_MOST = frozenset({CompareOp.LESS, CompareOp.LESS_OR_EQUAL})
_AT_LEAST = frozenset({CompareOp.GREATER, CompareOp.GREATER_OR_EQUAL})


@dataclass(frozen=True, slots=True, eq=False)
class MightMatch:
    """Per file: might the predicate be TRUE for some row, might it be FALSE for some row."""

    true: Mask
    false: Mask


def might_match(predicate: Predicate, files: FileBounds) -> MightMatch:
    """Return for every file whether the predicate might be TRUE, and whether it might be FALSE."""
    match predicate:
        case And(parts):
            some = [might_match(p, files) for p in parts]
            true = [p.true for p in some]
            if numbers := columns_of_numbers(parts):
                true = [might_be_true(p, files, numbers) for p in parts]
            return MightMatch(_all(true, files), _any([p.false for p in some], files))
        case Or(parts):
            some = [might_match(p, files) for p in parts]
            return MightMatch(
                _any([p.true for p in some], files), _all([p.false for p in some], files)
            )
        case Not(child):
            inner = might_match(child, files)
            return MightMatch(inner.false, inner.true)
        case _:
            return _leaf_might_match(predicate, files)


def _leaf_might_match(
    predicate: Ref | Const | Compare | OneOf | IsNull | StartsWith | Opaque, files: FileBounds
) -> MightMatch:
    match predicate:
        case Const(value):
            return MightMatch(_always(files, value is True), _always(files, value is False))
        case Ref():
            return _compare(Compare(CompareOp.EQUAL, predicate, Const(value=True)), files)
        case Compare():
            return _compare(predicate, files)
        case OneOf(_, ()):  # nothing equals none of the values, not even NULL
            return MightMatch(_always(files, answer=False), _always(files, answer=True))
        case OneOf(ref, values):
            return _one_of(files.find(ref), values, files)
        case IsNull(ref):
            return _is_null(files.find(ref), files)
        case StartsWith(ref, prefix):
            return _starts_with(files.find(ref), prefix, files)
        case Opaque():
            return _unknown(files)
        case _:
            assert_never(predicate)


def _always(files: FileBounds, answer: bool) -> Mask:  # noqa: FBT001 - the answer itself
    return np.full(len(files), answer)


def _unknown(files: FileBounds) -> MightMatch:
    return MightMatch(_always(files, True), _always(files, True))  # noqa: FBT003


def _all(masks: list[Mask], files: FileBounds) -> Mask:
    united: Mask = np.logical_and.reduce([_always(files, True), *masks])  # noqa: FBT003
    return united


def _any(masks: list[Mask], files: FileBounds) -> Mask:
    united: Mask = np.logical_or.reduce([_always(files, False), *masks])  # noqa: FBT003
    return united


def _is_null(column: Bounds | None, files: FileBounds) -> MightMatch:
    if column is None:
        return _unknown(files)
    return MightMatch(column.might_be_null, column.might_have_value)


# --- comparisons ------------------------------------------------------------------------------


def _compare(predicate: Compare, files: FileBounds) -> MightMatch:
    match predicate:
        case Compare(op, Ref() as ref, Const(None)):
            if op is not CompareOp.NULL_SAFE_EQUAL:
                return MightMatch(_always(files, False), _always(files, False))  # noqa: FBT003
            return _is_null(files.find(ref), files)
        case Compare(op, Ref() as ref, Const(value)):
            column = files.find(ref)
            if column is None:
                return _unknown(files)
            limits = thresholds(value, column.data_type)
            return _compare_bounds(op, column, limits)
        case _:
            return _unknown(files)


def columns_of_numbers(conjuncts: Sequence[Predicate]) -> frozenset[Ref]:
    """Return the columns that are not NaN in a row for which all conjuncts are TRUE.

    NaN is above every number: ``x >= 1 AND x <= 2`` is TRUE for none, though its first part is.
    """
    return frozenset(
        part.left
        for part in conjuncts
        if isinstance(part, Compare)
        and part.op in _AT_MOST
        and isinstance(part.left, Ref)
        and isinstance(part.right, Const)
        and _is_number(part.right.value)
    )


def might_be_true(conjunct: Predicate, files: FileBounds, numbers: frozenset[Ref]) -> Mask:
    """Return for every file whether a row that has no NaN in ``numbers`` might fulfil this."""
    match conjunct:
        case Compare(op, Ref() as ref, Const(value)) if op in _AT_LEAST and ref in numbers:
            column = files.find(ref)
            if column is not None:
                only = replace(column, might_be_nan=_always(files, answer=False))
                return _compare_bounds(op, only, thresholds(value, column.data_type)).true
        case _:
            pass
    return might_match(conjunct, files).true


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


def _any_value(column: Bounds) -> MightMatch:
    """Return the answer if nothing is known about the values."""
    return MightMatch(column.might_have_value, column.might_have_value)


def _compare_bounds(op: CompareOp, column: Bounds, limits: Thresholds | None) -> MightMatch:
    if limits is None or column.low is None or column.high is None:
        if op is CompareOp.NULL_SAFE_EQUAL:
            return MightMatch(
                column.might_have_value, column.might_have_value | column.might_be_null
            )
        return _any_value(column)
    known, value = _Known(column, limits), column.might_have_value
    match op:
        case CompareOp.LESS:
            return MightMatch(value & known.less(), value & known.at_least())
        case CompareOp.LESS_OR_EQUAL:
            return MightMatch(value & known.at_most(), value & known.greater())
        case CompareOp.GREATER:
            return MightMatch(value & known.greater(), value & known.at_most())
        case CompareOp.GREATER_OR_EQUAL:
            return MightMatch(value & known.at_least(), value & known.less())
        case CompareOp.EQUAL | CompareOp.NULL_SAFE_EQUAL:
            # No constant is NaN here, so for an equal value the upper bound does hold.
            upper = _holds(pc.greater_equal, column.high, limits.at_least)
            equal = value & known.at_most() & upper & _is_interval(limits)
            different = value & (known.less() | known.greater())
            if op is CompareOp.NULL_SAFE_EQUAL:
                different = different | column.might_be_null
            return MightMatch(equal, different)
        case _:
            assert_never(op)


@dataclass(frozen=True, slots=True)
class _Known:
    """How values between known bounds may compare with a constant; NaN lies above every bound."""

    column: Bounds
    limits: Thresholds

    def less(self) -> Mask:
        return _holds(pc.less, self.column.low, self.limits.below)

    def at_most(self) -> Mask:
        return _holds(pc.less_equal, self.column.low, self.limits.at_most)

    def greater(self) -> Mask:
        found = _holds(pc.greater, self.column.high, self.limits.above)
        return found | self.column.might_be_nan

    def at_least(self) -> Mask:
        found = _holds(pc.greater_equal, self.column.high, self.limits.at_least)
        return found | self.column.might_be_nan


def _holds(compare: Callable[[Any, Any], Any], bound: pa.Array, threshold: Any) -> Mask:
    """Compare bounds with a threshold; an unknown bound might compare in any way."""
    if isinstance(threshold, bool):
        unknown: Mask = bound.is_null().to_numpy(zero_copy_only=False)
        return np.ones_like(unknown) if threshold else unknown
    answers = compare(bound, pa.scalar(threshold, bound.type))
    if answers.null_count:
        answers = pc.fill_null(answers, True)  # noqa: FBT003
    mask: Mask = answers.to_numpy(zero_copy_only=False)
    return mask


def _one_of(column: Bounds | None, values: Sequence[Any], files: FileBounds) -> MightMatch:
    """Evaluate ``column IN (values)`` by one binary search per file."""
    if column is None:
        return _unknown(files)
    if column.low is None or column.high is None:
        return _any_value(column)
    if column.data_type in INTEGRAL and (isinstance(values, array) or all(map(_is_long, values))):
        return _one_of_longs(column, column.low, column.high, np.array(values, np.int64))
    limits = [thresholds(v, column.data_type) for v in values if v is not None]
    intervals = [(t.at_least, t.at_most) for t in limits if t is not None and _is_interval(t)]
    if any(t is None for t in limits):
        return _any_value(column)
    intervals.sort()
    starts, ends = [i[0] for i in intervals], [i[1] for i in intervals]

    def might_hold(low: Any, high: Any) -> bool:
        first = 0 if low is None else bisect_left(ends, low)
        return first < len(starts) and (high is None or starts[first] <= high)

    def might_lack(low: Any, high: Any) -> bool:
        if low is None or low != high:
            return True
        first = bisect_left(ends, low)
        return not (first < len(starts) and starts[first] == ends[first] == low)

    pairs = list(zip(_comparable(column.low), _comparable(column.high), strict=True))
    found = np.array([might_hold(*pair) for pair in pairs], bool)
    if None in values:  # a value that is not in the list gives NULL, not FALSE
        return MightMatch(column.might_have_value & found, _always(files, False))  # noqa: FBT003
    lacking = np.array([might_lack(*pair) for pair in pairs], bool) | column.might_be_nan
    return MightMatch(column.might_have_value & found, column.might_have_value & lacking)


def _one_of_longs(
    column: Bounds, low: pa.Array, high: pa.Array, values: npt.NDArray[np.int64]
) -> MightMatch:
    """Evaluate ``IN`` for whole numbers, which most keys are, without a Python loop."""
    values = np.sort(values)
    known = (pc.is_valid(bound).to_numpy(zero_copy_only=False) for bound in (low, high))
    lows = pc.fill_null(low, LONG_MIN).to_numpy(zero_copy_only=False)
    highs = pc.fill_null(high, LONG_MAX).to_numpy(zero_copy_only=False)
    found = np.searchsorted(values, lows, "left") < np.searchsorted(values, highs, "right")
    lacking = ~(np.logical_and(*known) & (lows == highs) & found)
    return MightMatch(column.might_have_value & found, column.might_have_value & lacking)


def _is_long(value: Any) -> bool:
    return type(value) is int and LONG_MIN <= value <= LONG_MAX


def _is_interval(limits: Thresholds) -> bool:
    """Return whether any value of the column might equal the constant (2.5 is no integer)."""
    if isinstance(limits.at_least, bool) or isinstance(limits.at_most, bool):
        return False
    return bool(limits.at_least <= limits.at_most)


def _comparable(bound: pa.Array) -> list[Any]:
    """Return Python values that compare as the array does: code points order text as bytes do."""
    values: list[Any] = bound.to_pylist()
    return values


def _starts_with(column: Bounds | None, prefix: str, files: FileBounds) -> MightMatch:
    if column is None:
        return _unknown(files)
    if column.low is None or column.high is None or order_value(prefix, column.data_type) is None:
        return _any_value(column)
    if not prefix:
        return MightMatch(column.might_have_value, _always(files, False))  # noqa: FBT003
    low_start = pc.utf8_slice_codeunits(column.low, 0, len(prefix))
    high_start = pc.utf8_slice_codeunits(column.high, 0, len(prefix))
    reached = _holds(pc.greater_equal, column.high, prefix)
    begun = _holds(pc.less_equal, low_start, prefix)
    lacking = _holds(pc.not_equal, low_start, prefix) | _holds(pc.not_equal, high_start, prefix)
    return MightMatch(
        column.might_have_value & reached & begun,
        column.might_have_value & lacking,
    )
