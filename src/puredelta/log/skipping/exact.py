"""Exact answers from the log: row counts, and the smallest and largest value of a column.

Bounds of statistics are made for skipping files, where a superset is right. An answer to ``min`` or
``max`` has to be the exact value, so most types have none: text and timestamps are truncated,
a maximum of floating-point numbers may hide a NaN, some writers stored decimals as doubles. If
anything is unknown there is no answer (X-73).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.errors import DeltaError
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import find_date, read_raw_statistics
from puredelta.log.files.stats_json import StatisticsColumn
from puredelta.log.files.value_order import FLOATING, single_precision
from puredelta.log.skipping.evaluate import might_match
from puredelta.log.skipping.file_bounds import FileBounds
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.schema.partition_values import parse_partition_value
from puredelta.protocol.schema.predicates import And, Not, Or, Predicate, references
from puredelta.protocol.schema.types import (
    BOOLEAN,
    COLLATIONS,
    DATE,
    FLOAT,
    INTEGRAL,
    STRING,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
)
from puredelta.protocol.table.table_config import TableConfig

Value: TypeAlias = int | float | str | bool | Decimal | dt.date | None

_LOOSE = r'"tightBounds"\s*:\s*false'
_DAY_LENGTH = len("2020-01-31")
_FROM_STATISTICS = INTEGRAL | FLOATING | {DATE}
_FROM_PARTITIONS = INTEGRAL | {DATE, STRING, BOOLEAN}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactColumn:
    """What is known of one column of all rows; a bound is None where every row is NULL."""

    low: Value
    high: Value
    num_values: int
    """Rows that are not NULL."""
    has_low: bool
    """Whether ``low`` is certain."""
    has_high: bool


class ExactAnswers:
    """What ``count``, ``min`` and ``max`` give over all rows of files, where certain."""

    def __init__(self, files: FileTable, config: TableConfig) -> None:
        self._files = files
        self._config = config
        self._known: dict[str, ExactColumn | None] = {}

    def answer(self, function: str, column: str | None) -> tuple[Value] | None:
        """Return the value in a tuple; None if it is not certain.

        ``function`` is ``count``, ``min`` or ``max``; a column is named by its exact logical name,
        and for None all rows are counted.
        """
        if column is None:
            counts = rows_per_file(self._files)
            return None if counts is None else (pc.sum(counts).as_py() or 0,)
        if column not in self._known:
            self._known[column] = exact_column(self._files, self._config, column)
        known = self._known[column]
        match function:
            case "count" if known is not None:
                return (known.num_values,)
            case "min" if known is not None and known.has_low:
                return (known.low,)
            case "max" if known is not None and known.has_high:
                return (known.high,)
            case _:
                return None


def rows_per_file(files: FileTable) -> pa.Array | None:
    """Return how many rows each file has for a reader (int64); None if one does not say."""
    counts = pc.subtract(files.record_counts(), files.deleted_counts())
    if counts.null_count or pc.any(pc.less(counts, 0)).as_py():
        return None
    return counts.combine_chunks()


def decided(
    files: FileTable, config: TableConfig, conditions: Sequence[Predicate]
) -> pa.Array | None:
    """Return for each file whether all conditions are true of its rows (bool, without nulls).

    None if that is not certain of every file, as it is only of conditions over partition columns:
    then a file is in or out as a whole.
    """
    if not conditions:
        return pa.array(np.ones(len(files), np.bool_))
    every = And(tuple(conditions))
    refs = references(every)
    columns = frozenset(config.partition_columns) - config.padded_columns
    if any(ref.path[0] not in columns for ref in refs):
        return None
    bounds = FileBounds(files, config, refs)
    for leaf in _leaves(every):
        answer = might_match(leaf, bounds)
        if (answer.true & answer.false).any():
            return None
    # Where every part of a condition is decided, what might be true is.
    return pa.array(might_match(every, bounds).true)


def _leaves(predicate: Predicate) -> Iterable[Predicate]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _leaves(part)
        case Not(child):
            yield from _leaves(child)
        case _:
            yield predicate


def exact_column(files: FileTable, config: TableConfig, name: str) -> ExactColumn | None:
    """Return what is known of a top-level column, by its exact logical name.

    None if it has no answer at all: not even how many of its values are NULL.
    """
    field = config.schema.find(name)
    rows = rows_per_file(files)
    if field is None or rows is None or name in config.padded_columns:
        return None
    if COLLATIONS in field.metadata or not isinstance(field.type, PrimitiveType | DecimalType):
        return None
    filled = files.select(pc.greater(rows, 0))
    if name in config.partition_columns:
        return _partition_column(filled, rows.filter(pc.greater(rows, 0)), config, field)
    return _data_column(filled, config, field)


# --- partition values -----------------------------------------------------------------------


def _partition_column(
    files: FileTable, rows: pa.Array, config: TableConfig, field: StructField
) -> ExactColumn | None:
    physical = physical_name(field, config.column_mapping)
    texts = files.partition_texts(physical).combine_chunks()
    try:
        known = {
            text: parse_partition_value(text, field.type, dt.timezone.utc)
            for text in pc.unique(texts).to_pylist()
        }
    except DeltaError:
        return None
    values = [value for value in known.values() if value is not None]
    is_null = pa.array([known[text] is None for text in texts.to_pylist()], pa.bool_())
    num_values = pc.sum(rows.filter(pc.invert(is_null))).as_py() or 0
    has_order = field.type in _FROM_PARTITIONS or isinstance(field.type, DecimalType)
    return ExactColumn(
        low=min(values) if values and has_order else None,
        high=max(values) if values and has_order else None,
        num_values=num_values,
        has_low=has_order,
        has_high=has_order,
    )


# --- statistics -----------------------------------------------------------------------------


def _data_column(files: FileTable, config: TableConfig, field: StructField) -> ExactColumn | None:
    """Deletion vectors make statistics bounds of more rows than there are."""
    stats = files.rows["stats"]
    if files.rows["deletion_vector"].null_count < len(files):
        return None
    if pc.any(pc.match_substring_regex(stats, _LOOSE)).as_py():
        return None
    path = (physical_name(field, config.column_mapping),)
    raw = read_raw_statistics(stats, {path: field.type})
    leaf = raw.leaves[path]
    if raw.num_records.null_count or leaf.null_count.null_count:
        return None
    num_values = pc.subtract(raw.num_records, leaf.null_count)
    if pc.any(pc.or_(pc.less(num_values, 0), pc.less(leaf.null_count, 0))).as_py():
        return None
    lows, highs = _bounds(leaf, pc.greater(num_values, 0), field)
    low = None if None in lows or not lows else min(lows)
    high = None if None in highs or not highs else max(highs)
    return ExactColumn(
        low=low,
        high=high,
        num_values=pc.sum(num_values).as_py() or 0,
        has_low=None not in lows and not _is_zero(low),
        # NaN is above every number, and no bound tells of it.
        has_high=None not in highs and (field.type not in FLOATING or high is None),
    )


_UNKNOWN: tuple[list[Any], list[Any]] = ([None], [None])


def _bounds(
    leaf: StatisticsColumn, has_values: pa.Array, field: StructField
) -> tuple[list[Any], list[Any]]:
    """Return the least and the greatest value of each file with values, None where unknown."""
    if field.type not in _FROM_STATISTICS or leaf.low is None or leaf.high is None:
        return _UNKNOWN
    if field.type in FLOATING and TYPE_CHANGES in field.metadata:
        return _UNKNOWN  # 0.1 of a float is another number in a double
    lows = _values(leaf.low.filter(has_values), field.type)
    highs = _values(leaf.high.filter(has_values), field.type)
    known = ((a, b) for a, b in zip(lows, highs, strict=True) if a is not None and b is not None)
    return _UNKNOWN if any(low > high for low, high in known) else (lows, highs)


def _values(bounds: pa.Array, data_type: DataType) -> list[Any]:
    values: list[Any] = bounds.to_pylist()
    if data_type == DATE:
        return [find_date(text) if len(text or "") == _DAY_LENGTH else None for text in values]
    if data_type == FLOAT:
        return [None if value is None else single_precision(value) for value in values]
    return values


def _is_zero(value: Value) -> bool:
    """A zero among floating-point numbers may have either sign."""
    return isinstance(value, float) and (value == 0 or not math.isfinite(value))


def fewest_files(rows: pa.Array, chosen: pa.Array, num_rows: int) -> list[int] | None:
    """Return the places of the first chosen files with so many rows together; None for all."""
    counts = np.where(chosen.to_numpy(zero_copy_only=False), rows.to_numpy(zero_copy_only=False), 0)
    filled = np.flatnonzero(counts > 0)
    enough = int(np.searchsorted(np.cumsum(counts[filled]), num_rows, "left")) + 1
    return [int(place) for place in filled[:enough]] if enough < len(filled) else None
