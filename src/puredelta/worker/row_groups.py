"""Row groups of a data file that a query can skip, by the statistics in its footer.

A condition is an `Expression` over columns by their names in the scan. Known are ``and_kleene``,
``or_kleene``, ``is_null`` and ``is_valid`` of a column, comparisons of a column with a constant,
``starts_with``, and `IS_IN`. A row group is kept where the condition is anything else. Spark tests
conditions once more, so a doubtful row group is kept, too.

Traps this module knows:

* NaN is the greatest value to Spark, and in no statistics: the maximum of a floating-point column
  is unknown.
* Nanoseconds are cut to microseconds when they are read: such columns are not compared.
* Bounds of strings may be cut inside a character, so they are compared as bytes, not as UTF-8.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from puredelta.worker.expressions import Call, Constant, Expression, InputColumn
from puredelta.worker.read_rows import (
    LEGACY_INT96,
    SPARK_VERSION,
    OpenFile,
    names_no_calendar,
)

IS_IN = "is_in"
"""The function of a column and of the constants that it may equal."""
_EXACT = (bool, int, Decimal, float, str, bytes, dt.date, dt.datetime)
_NUMBERS = frozenset({int, Decimal, float})
_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_FIRST_OF_CALENDAR = 3
"""The version of Spark that knows the proleptic Gregorian calendar."""


def has_hybrid_calendar(file: OpenFile, only_spark: Collection[str]) -> bool:
    """Return whether old days of a file may be those of the hybrid calendar, its bounds too."""
    marks = file.metadata.metadata or {}
    version = marks.get(SPARK_VERSION, b"").partition(b".")[0]
    is_old = version.isdigit() and int(version) < _FIRST_OF_CALENDAR
    is_legacy = is_old or _LEGACY_DATES in marks or LEGACY_INT96 in marks
    return is_legacy or names_no_calendar(file, only_spark)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """The statistics of one file."""

    file: OpenFile
    leaves: Mapping[str, int | None]
    """Where the columns of the scan are, by name; ``None``: the file lacks the column, so that it
    is NULL. Columns of which nothing can be said are left out."""

    @classmethod
    def of(cls, file: OpenFile, names: Mapping[str, str | None]) -> GroupStatistics:
        """Look columns up; ``names`` are those in the file, by those of the scan."""
        leaves: dict[str, int | None] = {}
        described = file.leaves()
        for name, stored in names.items():
            if stored is None:
                leaves[name] = None
                continue
            places = file.leaves_of([stored])
            if len(places) == 1 and _is_plain(described[places[0]], stored):
                leaves[name] = places[0]
        return cls(file=file, leaves=leaves)

    def may_hold(self, group: int, condition: Expression) -> bool:
        """Return whether the condition may be true of a row of a row group."""
        match condition:
            case Call("and_kleene", parts):
                return all(self.may_hold(group, part) for part in parts)
            case Call("or_kleene", parts):
                return any(self.may_hold(group, part) for part in parts)
            case Call(function, (InputColumn(_, str() as name), *constants)):
                values = [one.value for one in constants if isinstance(one, Constant)]
                return self._may_hold(group, name, function, values)
            case _:
                return True

    def _may_hold(self, group: int, name: str, function: str, values: Sequence[Any]) -> bool:
        """Return whether a function of a column and some constants may be true of a row."""
        if name not in self.leaves:
            return True
        leaf = self.leaves[name]
        if leaf is None:
            return function == "is_null"
        described = self.file.metadata.row_group(group)
        try:
            return _may_hold(
                described.column(leaf).statistics, described.num_rows, function, values
            )
        # The writer of the file decides the content of statistics.
        except (TypeError, ValueError, OverflowError, ArithmeticError, pa.ArrowException):
            return True


def _is_plain(leaf: Any, name: str) -> bool:
    """Return whether a leaf is a column, whose statistics are of the values that are read."""
    if leaf.path != name or leaf.max_repetition_level or leaf.physical_type == "INT96":
        return False
    logical = str(leaf.logical_type)
    return "nanoseconds" not in logical and leaf.logical_type.type not in ("FLOAT16", "INTERVAL")


def _may_hold(statistics: Any, num_rows: int, function: str, values: Sequence[Any]) -> bool:
    if statistics is None:
        return True
    nulls = statistics.null_count if statistics.has_null_count else None
    if function == "is_null":
        return nulls != 0
    if nulls == num_rows:
        return False
    if function == "is_valid" or not statistics.has_min_max:
        return True
    if function == IS_IN:
        return any(_between(statistics, "equal", one) for one in values)
    (value,) = values
    return _between(statistics, function, value)


def _between(statistics: Any, function: str, value: Any) -> bool:
    """Return whether some value between the bounds may compare so with a constant."""
    low: Any
    high: Any
    if isinstance(value, str):
        if statistics.physical_type != "BYTE_ARRAY":
            return True
        value = value.encode()
        low, high = _bytes_of(statistics.min_raw), _bytes_of(statistics.max_raw)
    else:
        low, high = statistics.min, statistics.max
    if not _comparable(low, value) or not _comparable(high, value):
        return True
    if function == "starts_with":
        return bool(high >= value and (low <= value or low.startswith(value)))
    if isinstance(low, float) and function in ("greater", "greater_equal"):
        return True
    return _TESTS[function](low, high, value)


_TESTS: Mapping[str, Callable[[Any, Any, Any], bool]] = {
    "equal": lambda low, high, value: low <= value <= high,
    "less": lambda low, _, value: low < value,
    "less_equal": lambda low, _, value: low <= value,
    "greater": lambda _, high, value: high > value,
    "greater_equal": lambda _, high, value: high >= value,
}


def _bytes_of(bound: Any) -> bytes:
    return bound.encode() if isinstance(bound, str) else bytes(bound)


def _comparable(bound: Any, value: Any) -> bool:
    """Return whether Python orders both as Spark does; NaN has no order here."""
    one: Any = type(bound)
    other: Any = type(value)
    if one not in _EXACT or (one is not other and not {one, other} <= _NUMBERS):
        return False
    if bound != bound or value != value:  # noqa: PLR0124 - NaN
        return False
    return not isinstance(bound, dt.datetime) or (bound.tzinfo is None) == (value.tzinfo is None)
