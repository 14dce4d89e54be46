"""Statistics of many files as typed Arrow columns, for the columns a predicate mentions.

The texts of many files are parsed in one Arrow pass with an explicit schema, so nothing but
what is asked for is materialised. Where Arrow refuses (one malformed text is enough), each of
these texts is parsed exactly in Python and an unreadable one counts as absent. Whatever cannot be
understood is null, that is unknown, and an unknown bound keeps its file (X-69, X-72).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pyarrow as pa

from puredelta.log.files.stats_json import (
    Path,
    StatisticsColumn,
    StatsColumns,
    concatenated,
    read_with_arrow,
    read_with_python,
)
from puredelta.log.files.stats_text import find_date, find_timestamp_span
from puredelta.log.files.value_order import FLOATING, single_precision
from puredelta.protocol.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, PrimitiveType

_TEXTS_AT_ONCE = 1 << 16
"""If Arrow refuses one of them, as many are parsed in Python."""
_WRITTEN_MILLISECOND_MICROS = 1000
"""Timestamps are written in milliseconds, cut down: the true maximum may be a millisecond
later (X-65)."""


def read_stats_columns(
    stats: pa.Array | pa.ChunkedArray, leaves: Mapping[Path, DataType]
) -> StatsColumns:
    """Parse the statistics texts of files for these leaf columns.

    ``leaves`` maps physical paths to the columns' *current* types: a bound that was written
    while the column had a narrower type is read as one of the wider type.
    """
    texts = pa.chunked_array([stats]) if isinstance(stats, pa.Array) else stats
    starts = range(0, max(1, len(texts)), _TEXTS_AT_ONCE)
    raw = concatenated([_raw(texts.slice(start, _TEXTS_AT_ONCE), leaves) for start in starts])
    return StatsColumns(
        raw.num_records,
        {path: _typed(raw.leaves[path], data_type) for path, data_type in leaves.items()},
    )


def _raw(texts: pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> StatsColumns:
    parsed = read_with_arrow(texts, leaves)
    return read_with_python(texts, leaves) if parsed is None else parsed


def _typed(raw: StatisticsColumn, data_type: DataType) -> StatisticsColumn:
    low, high = raw.low, raw.high
    if low is None or high is None:
        return raw
    match data_type:
        case PrimitiveType() if data_type in FLOATING:
            low, high = _widened_to_single(low, min), _widened_to_single(high, max)
        case PrimitiveType() if data_type == DATE:
            low, high = (
                pa.array([find_date(text) for text in bound.to_pylist()], pa.date32())
                for bound in (low, high)
            )
        case PrimitiveType() if data_type in {TIMESTAMP, TIMESTAMP_NTZ}:
            low, high = _instants(low, high, zoned=data_type == TIMESTAMP)
        case _:
            pass
    return StatisticsColumn(low, high, raw.null_count)


def _widened_to_single(bound: pa.Array, pick: Callable[[float, float], float]) -> pa.Array:
    """Move a bound outward to its 32-bit float.

    The text of a float is its shortest one: 0.1 stands for 0.100000001..., a bound that a
    column widened to double would otherwise overstep.
    """
    return pa.array(
        [
            None if v is None or math.isnan(v) else pick(v, single_precision(v))
            for v in bound.to_pylist()
        ],
        pa.float64(),
    )


def _instants(low: pa.Array, high: pa.Array, *, zoned: bool) -> tuple[pa.Array, pa.Array]:
    lows = [find_timestamp_span(text, zoned=zoned) for text in low.to_pylist()]
    highs = [find_timestamp_span(text, zoned=zoned) for text in high.to_pylist()]
    return (
        pa.array([None if span is None else span[0] for span in lows], pa.int64()),
        pa.array(
            [None if span is None else span[1] + _WRITTEN_MILLISECOND_MICROS for span in highs],
            pa.int64(),
        ),
    )
