"""What is known of one column in each of many files: bounds, and whether NULLs are there.

Partition values are exact, statistics only bound, and both come out in the same shape, so
that `puredelta.log.skipping.pruning` need not care which of them it evaluates.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.errors import DeltaError
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_json import StatsColumns
from puredelta.log.files.stats_text import find_timestamp_span
from puredelta.log.files.value_order import FLOATING, order_type, order_value, single_precision
from puredelta.protocol.schema.types import FLOAT, TIMESTAMP, DataType, StructField, StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.partition_values import parse_partition_value
from puredelta.protocol.values.predicates import Ref, Side

Mask: TypeAlias = npt.NDArray[np.bool_]

_COLLATIONS = "__COLLATIONS"
_ZONE_OFFSET_MICROS_MAX = 18 * 3600 * 1_000_000
"""No time zone is further from UTC than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """One column of the files, one element per file."""

    data_type: DataType
    low: pa.Array | None
    """A value not above any value of the file; null where unknown. In the column's order type
    (`puredelta.log.files.value_order`); ``None`` for a type without an order."""
    high: pa.Array | None
    """A value not below any value of the file but NaN."""
    may_be_null: Mask
    """Whether the file might hold a NULL."""
    may_have_value: Mask
    """Whether the file might hold a value that is not NULL."""
    may_be_nan: Mask
    """Whether the file might hold a NaN, which Spark puts above every number."""


class FileBounds:
    """Looks up `Bounds` for the columns that predicates refer to.

    The statistics of all columns that will be asked for are parsed together, at the first
    question that needs any.
    """

    def __init__(self, files: FileTable, config: TableConfig, refs: Iterable[Ref]) -> None:
        self._files = files
        self._partitions = dict(
            zip(config.partition_columns, config.physical_partition_columns, strict=True)
        )
        self._columns = {ref: found for ref in refs if (found := _find(ref, config)) is not None}
        self._stats: StatsColumns | None = None
        self._known: dict[Ref, Bounds] = {}

    def __len__(self) -> int:
        return len(self._files)

    def find(self, ref: Ref) -> Bounds | None:
        """Return what is known of a column, ``None`` if nothing is."""
        column = self._columns.get(ref)
        if column is None:
            return None
        if ref not in self._known:
            is_partition = ref.path[0] in self._partitions
            read = self._partition_bounds if is_partition else self._stats_bounds
            self._known[ref] = read(column)
        return self._known[ref]

    def read(self) -> StatsColumns:
        """Parse the statistics of all columns, unless that was done."""
        if self._stats is None:
            self._stats = self._files.statistics(self._leaves(self._columns))
        return self._stats

    def _partition_bounds(self, column: _Column) -> Bounds:
        (name,) = column.physical_path
        texts = pc.map_lookup(self._files.rows["partition_values"], name, "first")
        encoded = pc.dictionary_encode(texts).combine_chunks()
        spans = [_partition_span(text, column.data_type) for text in encoded.dictionary.to_pylist()]
        # One element more than the dictionary: the NULL that files without a text share.
        ordered = order_type(column.data_type)
        chosen = pc.fill_null(encoded.indices.cast(pa.int64()), len(spans))
        spans.append(_NULL)
        return Bounds(
            data_type=column.data_type,
            low=None if ordered is None else pa.array([s.low for s in spans], ordered).take(chosen),
            high=None
            if ordered is None
            else pa.array([s.high for s in spans], ordered).take(chosen),
            may_be_null=np.array([s.may_be_null for s in spans])[chosen.to_numpy()],
            may_have_value=np.array([s.may_have_value for s in spans])[chosen.to_numpy()],
            may_be_nan=np.array([s.may_be_nan for s in spans])[chosen.to_numpy()],
        )

    def _stats_bounds(self, column: _Column) -> Bounds:
        stats = self.read()
        leaf = stats.leaves[column.physical_path]
        all_null = pc.equal(leaf.null_count, stats.num_records)
        # With wide bounds the null count of a file means something only where it is none or
        # all of its rows; with tight ones nothing is lost by asking for no more.
        return Bounds(
            data_type=column.data_type,
            low=leaf.low,
            high=leaf.high,
            may_be_null=_mask(pc.not_equal(leaf.null_count, 0)),
            may_have_value=~_mask(all_null, unknown=False),
            may_be_nan=np.full(len(self), column.data_type in FLOATING),
        )

    def _leaves(self, columns: Mapping[Ref, _Column]) -> dict[tuple[str, ...], DataType]:
        return {
            column.physical_path: column.data_type
            for ref, column in columns.items()
            if ref.path[0] not in self._partitions
        }


def _mask(answers: pa.Array, *, unknown: bool = True) -> Mask:
    filled: Mask = pc.fill_null(answers, unknown).to_numpy(zero_copy_only=False)
    return filled


@dataclass(frozen=True, slots=True)
class _Column:
    physical_path: tuple[str, ...]
    data_type: DataType


def _find(ref: Ref, config: TableConfig) -> _Column | None:
    """Resolve a reference against the table; ``None`` if it must not be pruned with.

    A type that is not the table's means that somebody resolved against another schema, and
    a collation orders text in a way that no bound follows.
    """
    if ref.side is not Side.TARGET or ref.type is None:
        return None
    level: DataType = config.schema
    for name in ref.path:
        field: StructField | None = level.find(name) if isinstance(level, StructType) else None
        if field is None or _COLLATIONS in field.metadata:
            return None
        level = field.type
    if level != ref.type or isinstance(level, StructType):
        return None
    return _Column(config.physical_path(ref.path), level)


# --- partition values -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    low: Any = None
    high: Any = None
    may_be_null: bool = False
    may_have_value: bool = True
    may_be_nan: bool = False


_NULL = _Span(may_be_null=True, may_have_value=False)
_UNKNOWN = _Span(may_be_null=True, may_be_nan=True)


def _partition_span(text: str, data_type: DataType) -> _Span:
    if text == "":
        return _NULL
    if data_type == TIMESTAMP:
        return _timestamp_span(text)
    try:
        value = parse_partition_value(text, data_type, dt.timezone.utc)
    except DeltaError:
        return _UNKNOWN
    if isinstance(value, float) and math.isnan(value):
        return _Span(may_be_nan=True)
    exact = order_value(value, data_type)
    if exact is None:
        return _UNKNOWN
    if data_type == FLOAT:
        nearest = single_precision(exact)
        return _Span(low=min(exact, nearest), high=max(exact, nearest))
    return _Span(low=exact, high=exact)


def _timestamp_span(text: str) -> _Span:
    """Text without a zone is in the zone of whoever reads the table, and that is not known here."""
    slack = 0
    span = find_timestamp_span(text, zoned=True)
    if span is None:
        span = find_timestamp_span(text, zoned=False)
        slack = _ZONE_OFFSET_MICROS_MAX
    return _UNKNOWN if span is None else _Span(low=span[0] - slack, high=span[1] + slack)
