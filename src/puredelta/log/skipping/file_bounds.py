"""The bounds of one column in each of many files, and whether it might contain NULL or NaN.

Partition values are exact and statistics are bounds, but both become `Bounds`, so that predicates
are evaluated in one way.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.errors import DeltaError
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED, FileStatistics, find_timestamp_span
from puredelta.log.files.stats_json import StatisticsColumn, StatsColumns
from puredelta.log.files.value_order import FLOATING, order_type, order_value, single_precision
from puredelta.protocol.schema.partition_values import parse_partition_value
from puredelta.protocol.schema.predicates import Ref, Side
from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.schema.types import (
    COLLATIONS,
    FLOAT,
    STRING,
    TIMESTAMP,
    DataType,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

Mask: TypeAlias = npt.NDArray[np.bool_]

_ZONE_OFFSET_MICROS_MAX = 18 * 3600 * 1_000_000
"""The largest offset of a time zone from UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """One column of the files, one element per file."""

    data_type: DataType
    low: pa.Array | None
    """At most as great as every value of the file; null where unknown. In the order type of the
    column (`puredelta.log.files.value_order`); ``None`` for a type without an order."""
    high: pa.Array | None
    """At least as great as every value of the file except NaN."""
    might_be_null: Mask
    """Whether the file might contain a NULL."""
    might_have_value: Mask
    """Whether the file might contain a value that is not NULL."""
    might_be_nan: Mask
    """Whether the file might contain a NaN, which Spark orders above every number."""


class FileBounds:
    """Finds the `Bounds` of the columns that predicates refer to.

    The statistics of all columns that will be asked for are parsed together, at the first
    question that needs any; ``statistics`` are those that are parsed already.
    ``bounds_tell_nan`` takes it that a file with a NaN has no maximum, as files of delta-spark and
    of this library.
    """

    def __init__(
        self,
        files: FileTable,
        config: TableConfig,
        refs: Iterable[Ref],
        statistics: FileStatistics = NOTHING_PARSED,
        *,
        bounds_tell_nan: bool = False,
    ) -> None:
        self._files = files
        self._bounds_tell_nan = bounds_tell_nan
        self._partitions = dict(
            zip(config.partition_columns, config.physical_partition_columns, strict=True)
        )
        self._columns = {ref: found for ref in refs if (found := _find(ref, config)) is not None}
        self._leaves = {
            column.physical_path: column.data_type
            for ref, column in self._columns.items()
            if ref.path[0] not in self._partitions
        }
        self._statistics = statistics
        self._stats: StatsColumns | None = None
        self._bounds: dict[Ref, Bounds] = {}

    def __len__(self) -> int:
        return len(self._files)

    def find(self, ref: Ref) -> Bounds | None:
        """Return the bounds of a column, ``None`` if nothing is known about it."""
        column = self._columns.get(ref)
        if column is None:
            return None
        if ref not in self._bounds:
            is_partition = ref.path[0] in self._partitions
            read = self._partition_bounds if is_partition else self._stats_bounds
            self._bounds[ref] = read(column)
        return self._bounds[ref]

    @property
    def statistics(self) -> FileStatistics:
        """The statistics that are parsed so far."""
        return self._statistics

    def parse(self) -> FileStatistics:
        """Return the statistics of all columns, parsed at the first call."""
        self._statistics = self._statistics.parsed(self._files, self._leaves)
        return self._statistics

    def _partition_bounds(self, column: _Column) -> Bounds:
        (name,) = column.physical_path
        encoded = pc.dictionary_encode(self._files.partition_texts(name)).combine_chunks()
        spans = [_partition_span(text, column.data_type) for text in encoded.dictionary.to_pylist()]
        # One more element than the dictionary: NULL, for files without a text.
        ordered = order_type(column.data_type)
        chosen = pc.fill_null(encoded.indices.cast(pa.int64()), len(spans))
        spans.append(_NULL)
        return Bounds(
            data_type=column.data_type,
            low=None if ordered is None else pa.array([s.low for s in spans], ordered).take(chosen),
            high=None
            if ordered is None
            else pa.array([s.high for s in spans], ordered).take(chosen),
            might_be_null=np.array([s.might_be_null for s in spans])[chosen.to_numpy()],
            might_have_value=np.array([s.might_have_value for s in spans])[chosen.to_numpy()],
            might_be_nan=np.array([s.might_be_nan for s in spans])[chosen.to_numpy()],
        )

    def _stats_bounds(self, column: _Column) -> Bounds:
        if self._stats is None:
            self._stats = self.parse().of(self._leaves)
        stats = self._stats
        leaf = stats.leaves[column.physical_path]
        all_null = pc.equal(leaf.null_count, stats.num_records)
        # With loose bounds a null count is exact only if it is zero or the number of all rows;
        # with tight bounds nothing is lost by using only these two cases.
        return Bounds(
            data_type=column.data_type,
            low=leaf.low,
            high=leaf.high,
            might_be_null=_mask(pc.not_equal(leaf.null_count, 0)),
            might_have_value=~_mask(all_null, unknown=False),
            might_be_nan=self._might_be_nan(leaf, column.data_type),
        )

    def _might_be_nan(self, leaf: StatisticsColumn, data_type: DataType) -> Mask:
        if data_type not in FLOATING or not self._bounds_tell_nan or leaf.high is None:
            return np.full(len(self), data_type in FLOATING)
        return _mask(leaf.high.is_null())


def _mask(answers: pa.Array, *, unknown: bool = True) -> Mask:
    filled: Mask = pc.fill_null(answers, unknown).to_numpy(zero_copy_only=False)
    return filled


@dataclass(frozen=True, slots=True)
class _Column:
    physical_path: tuple[str, ...]
    data_type: DataType


def _find(ref: Ref, config: TableConfig) -> _Column | None:
    """Find a column in the table; ``None`` if files must not be pruned by it.

    A type other than that of the table means that delta-spark was resolved against another
    schema. A collation orders text in another way than bounds do.
    """
    if ref.side is not Side.TARGET or ref.type is None:
        return None
    fields = find_fields(config.schema, ref.path)
    if not fields or any(COLLATIONS in field.metadata for field in fields):
        return None
    data_type = fields[-1].type
    if data_type != ref.type or isinstance(data_type, StructType):
        return None
    return _Column(config.physical_path(ref.path), data_type)


# --- partition values -----------------------------------------------------------------------


def has_unreadable_partition_values(files: FileTable, config: TableConfig) -> bool:
    """Return whether any partition value of the files may be no value of its column's type."""
    names = zip(config.partition_schema.fields, config.physical_partition_columns, strict=True)
    return any(
        text is not None and _partition_span(text, field.type) == _UNKNOWN
        for field, name in names
        if field.type != STRING
        for text in pc.unique(files.partition_texts(name)).to_pylist()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    low: Any = None
    high: Any = None
    might_be_null: bool = False
    might_have_value: bool = True
    might_be_nan: bool = False


_NULL = _Span(might_be_null=True, might_have_value=False)
_UNKNOWN = _Span(might_be_null=True, might_be_nan=True)


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
        return _Span(might_be_nan=True)
    exact = order_value(value, data_type)
    if exact is None:
        return _UNKNOWN
    if data_type == FLOAT:
        nearest = single_precision(exact)
        return _Span(low=min(exact, nearest), high=max(exact, nearest))
    return _Span(low=exact, high=exact)


def _timestamp_span(text: str) -> _Span:
    """Return the range of a timestamp; text without a zone may be in any zone a reader has."""
    slack = 0
    span = find_timestamp_span(text, zoned=True)
    if span is None:
        span = find_timestamp_span(text, zoned=False)
        slack = _ZONE_OFFSET_MICROS_MAX
    return _UNKNOWN if span is None else _Span(low=span[0] - slack, high=span[1] + slack)
