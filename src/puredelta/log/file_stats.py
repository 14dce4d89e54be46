"""Statistics of data files from their Parquet footers, without reading a row (X-60..X-72).

A bound that is wrong loses rows silently, for every reader and for MERGE's own skipping,
so whatever a footer does not prove is left out (X-72). What may be trusted depends on who
wrote the file (C-51b, `puredelta.log.leaf_values`). NULLs are counted by definition level,
which counts a field of a NULL struct as NULL, as Delta does; inside arrays and maps that
count is known only when it is zero.

Who asks is unknown here: the writer, CONVERT and MERGE use the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.leaf_values import Decode, may_hide_nan, plan_decode
from puredelta.log.parquet_footer import ParquetWriter, schema_message
from puredelta.protocol.stats import (
    Bound,
    FileStatistics,
    LeafPath,
    encode_statistics,
    indexed_leaves,
)
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import ArrayType, DataType, MapType, StructType

__all__ = [
    "LeafPath",
    "LeafStatistics",
    "StatisticsReader",
    "TableStatistics",
    "combined",
    "file_statistics",
]

_COUNTS_NULLS_OF_LISTS = frozenset({"parquet-mr", "parquet-cpp", "parquet-cpp-arrow"})
"""Writers known to count a NULL array or map among the NULLs of the values inside it."""
_KINDS_REMEMBERED = 32
"""Plans kept: files of one table are nearly always of a few kinds (schema and writer)."""


class LeafStatistics(NamedTuple):
    """What a footer proves about one leaf; ``None`` is "not known", never "none".

    Bounds are never narrower than the values; those of long text may be wider. A leaf
    that is all NULL has no bounds and a ``null_count`` of the file's rows.
    """

    minimum: Bound | None = None
    maximum: Bound | None = None
    null_count: int | None = None


def file_statistics(
    leaves: Mapping[LeafPath, LeafStatistics],
    num_records: int,
    *,
    tight_bounds: bool | None = None,
) -> FileStatistics:
    """Return the statistics of one file as the log keeps them.

    Infinite bounds are left out: JSON has no number for them, and not every reader takes
    the text that the reference writes instead (X-67).
    """
    return FileStatistics(
        num_records=num_records,
        minimum={p: s.minimum for p, s in leaves.items() if _has_number(s.minimum)},
        maximum={p: s.maximum for p, s in leaves.items() if _has_number(s.maximum)},
        null_count={p: s.null_count for p, s in leaves.items() if s.null_count is not None},
        tight_bounds=tight_bounds,
    )


def _has_number(bound: Bound | None) -> TypeGuard[Bound]:
    return bound is not None and not (isinstance(bound, float) and math.isinf(bound))


def combined(
    files: Iterable[tuple[int, Mapping[LeafPath, LeafStatistics]]],
) -> dict[LeafPath, LeafStatistics]:
    """Return what is known of each leaf over several files, given as (rows, leaves).

    What one of them does not know is not known; where a leaf is all NULL it has no say in
    the bounds.
    """
    total: dict[LeafPath, LeafStatistics] = {}
    total_rows = 0
    for num_rows, leaves in files:
        if num_rows and total_rows:
            total = {
                path: _both(total[path], total_rows, leaves[path], num_rows)
                for path in total
                if path in leaves
            }
        elif num_rows:
            total = dict(leaves)
        total_rows += num_rows
    return total


def _both(
    one: LeafStatistics, one_rows: int, other: LeafStatistics, other_rows: int
) -> LeafStatistics:
    nulls = None
    if one.null_count is not None and other.null_count is not None:
        nulls = one.null_count + other.null_count
    if one.null_count == one_rows:
        return LeafStatistics(other.minimum, other.maximum, nulls)
    if other.null_count == other_rows:
        return LeafStatistics(one.minimum, one.maximum, nulls)
    return LeafStatistics(
        _least(one.minimum, other.minimum), _greatest(one.maximum, other.maximum), nulls
    )


def _least(one: Any, other: Any) -> Any:
    return None if one is None or other is None else min(one, other)


def _greatest(one: Any, other: Any) -> Any:
    return None if one is None or other is None else max(one, other)


class StatisticsReader:
    """Reads the footers of many files of one table; safe for use by several threads.

    ``schema`` holds the columns of the files under their physical names and the table's
    types, partition columns left out; ``indexed`` the leaves to describe, all if ``None``.
    Columns are found by name, where only case differs too; a file that lacks a column
    holds NULLs. Plans are made once per kind of file, so the cost of a file is its leaves.
    """

    def __init__(self, schema: StructType, *, indexed: Collection[LeafPath] | None = None) -> None:
        self._schema = schema
        self._indexed = None if indexed is None else frozenset(indexed)
        self._kinds: list[_FileKind] = []

    def leaves(
        self, footer: pq.FileMetaData, *, nan_leaves: Collection[LeafPath] | None = None
    ) -> dict[LeafPath, LeafStatistics]:
        """Return what the footer proves, by leaf in schema order; unknown leaves are absent.

        ``nan_leaves`` is for callers that have looked at every value: the float leaves with a
        NaN, so that the bounds of all others count. Without it, who wrote the file decides.
        """
        totals = [
            _Totals(plan, bounded=[_has_bounds(plan, nan_leaves)] * 2)
            for plan in self._plan(footer)
        ]
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            if group.num_rows:
                for total in totals:
                    total.add(group)
        results = ((total.plan.path, total.result(footer.num_rows)) for total in totals)
        return {path: leaf for path, leaf in results if leaf is not None}

    def _plan(self, footer: pq.FileMetaData) -> tuple[_LeafPlan, ...]:
        """Return the plan for files of this schema and writer, made at the first of them."""
        writer, message = ParquetWriter.of(footer), schema_message(footer)
        for kind in reversed(self._kinds):
            if kind.writer == writer and kind.message == message:
                return kind.plans
        plans = tuple(
            plan
            for plan in _plan_struct(self._schema, _file_columns(footer.schema), writer, ())
            if self._indexed is None or plan.path in self._indexed
        )
        kind = _FileKind(message=message, writer=writer, plans=plans)
        self._kinds = [*self._kinds[-_KINDS_REMEMBERED:], kind]
        return plans


class TableStatistics:
    """Describes data files of one table as the log does: ``add.stats`` from a footer.

    Safe for use by several threads.
    """

    def __init__(self, config: TableConfig) -> None:
        self._reader = StatisticsReader(
            config.physical_data_schema(), indexed=indexed_leaves(config)
        )
        # Bounds of a new file are tight; said only where a deletion vector may end that.
        self._tight_bounds = True if config.supports("deletionVectors") else None
        self._prefix_length = config.properties.data_skipping_string_prefix_length

    def encode(
        self, footer: pq.FileMetaData, *, nan_leaves: Collection[LeafPath] | None = None
    ) -> str:
        """Return the JSON text; ``nan_leaves`` as for `StatisticsReader.leaves`."""
        leaves = self._reader.leaves(footer, nan_leaves=nan_leaves)
        return encode_statistics(
            file_statistics(leaves, footer.num_rows, tight_bounds=self._tight_bounds),
            string_prefix_length=self._prefix_length,
        )


# --- finding the leaves of a file -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FileColumn:
    """A field of a file: either a leaf, a struct of fields, or something with leaves inside."""

    leaf: Any | None = None
    """pyarrow's column descriptor."""
    fields: Mapping[str, _FileColumn] | None = None
    leaves: range = range(0)
    """Positions of its leaves among those of the file."""

    def find(self, name: str) -> _FileColumn | None:
        """Return the field of this name, or the only one that differs in case."""
        fields = self.fields or {}
        if name in fields:
            return fields[name]
        lowered = name.lower()
        same = [column for other, column in fields.items() if other.lower() == lowered]
        return same[0] if len(same) == 1 else _AMBIGUOUS if same else None


_AMBIGUOUS = _FileColumn()


def _file_columns(schema: pq.ParquetSchema) -> _FileColumn:
    """Return the tree of a file's fields.

    Names may hold dots, so pyarrow's dotted paths do not tell the tree; its Arrow schema
    does, and walks the leaves in the same order.
    """
    try:
        arrow = schema.to_arrow_schema()
    except pa.ArrowException:
        return _AMBIGUOUS  # types that pyarrow does not know: nothing is proven
    position = 0

    def build(data_type: pa.DataType) -> _FileColumn:
        nonlocal position
        start = position
        storage = (
            data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
        )
        if pa.types.is_nested(storage):
            inner = [storage.field(i) for i in range(storage.num_fields)]
            built = [(f.name, build(f.type)) for f in inner]
            is_struct = pa.types.is_struct(storage) and len({name for name, _ in built}) == len(
                built
            )
            return _FileColumn(
                fields=dict(built) if is_struct else None, leaves=range(start, position)
            )
        position += 1
        return _FileColumn(leaf=schema.column(start), leaves=range(start, position))

    columns = {f.name: build(f.type) for f in arrow}
    complete = position == len(schema) and len(columns) == len(arrow)
    return _FileColumn(fields=columns, leaves=range(position)) if complete else _AMBIGUOUS


@dataclass(frozen=True, slots=True)
class _LeafPlan:
    """How one leaf of the table is read from files of one kind."""

    path: LeafPath
    leaves: range
    """The leaves of the file it is made of: one, several inside an array or map."""
    decode: Decode | None = None
    absent: bool = False
    nested: bool = False
    hides_nan: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileKind:
    """Files of one schema and writer, which one plan serves."""

    message: str
    writer: ParquetWriter
    plans: tuple[_LeafPlan, ...]


def _plan_struct(
    schema: StructType, columns: _FileColumn, writer: ParquetWriter, prefix: LeafPath
) -> Iterator[_LeafPlan]:
    """Yield a plan per leaf of the table, in schema order."""
    if columns.fields is None:
        return
    for part in schema.fields:
        column = columns.find(part.name)
        yield from _plan_field(
            part.type, _ABSENT if column is None else column, writer, (*prefix, part.name)
        )


def _plan_field(
    data_type: DataType, column: _FileColumn, writer: ParquetWriter, path: LeafPath
) -> Iterator[_LeafPlan]:
    match data_type:
        case StructType():
            yield from _plan_struct(data_type, column, writer, path)
        case _ if column is _ABSENT:
            yield _LeafPlan(path, range(0), absent=True)
        case ArrayType() | MapType():
            if column.leaf is None and writer.name in _COUNTS_NULLS_OF_LISTS:
                yield _LeafPlan(path, column.leaves, nested=True)
        case _ if column.leaf is not None and column.leaf.max_repetition_level == 0:
            leaf = column.leaf
            decode = plan_decode(leaf.physical_type, leaf.logical_type.to_json(), data_type, writer)
            hides_nan = may_hide_nan(leaf.physical_type, writer)
            yield _LeafPlan(path, column.leaves, decode=decode, hides_nan=hides_nan)
        case _:
            return


_ABSENT = _FileColumn(fields={})
"""A column the file lacks: all NULL, and so are the fields of it."""


# --- adding up row groups -------------------------------------------------------------------


def _has_bounds(plan: _LeafPlan, nan_leaves: Collection[LeafPath] | None) -> bool:
    return not plan.hides_nan if nan_leaves is None else plan.path not in nan_leaves


@dataclass(slots=True)
class _Totals:
    """One leaf over the row groups of a file."""

    plan: _LeafPlan
    bounded: list[bool]
    """Whether the minimum and the maximum cover all row groups so far."""
    minimum: Any = None
    maximum: Any = None
    null_count: int | None = 0

    def add(self, group: pq.RowGroupMetaData) -> None:
        if self.plan.absent:
            return
        if self.plan.nested:
            self._add_nested(group)
            return
        column = group.column(self.plan.leaves.start)
        statistics = column.statistics
        if statistics is None:
            self._forget()
            return
        nulls = statistics.null_count if statistics.has_null_count else None
        self._count(nulls)
        if nulls is not None and nulls == column.num_values:
            return
        if self.plan.decode is None or not statistics.has_min_max:
            self.bounded = [False, False]
            return
        low, high = self.plan.decode(statistics.min_raw, statistics.max_raw)
        self._widen(low, high)

    def _add_nested(self, group: pq.RowGroupMetaData) -> None:
        """A value inside an array or map is NULL whenever the array or map itself is."""
        inner = (group.column(i).statistics for i in self.plan.leaves)
        if not any(s is not None and s.has_null_count and s.null_count == 0 for s in inner):
            self.null_count = None

    def _forget(self) -> None:
        self.null_count = None
        self.bounded = [False, False]

    def _count(self, nulls: int | None) -> None:
        if self.null_count is not None:
            self.null_count = None if nulls is None else self.null_count + nulls

    def _widen(self, low: Any, high: Any) -> None:
        if low is None:
            self.bounded[0] = False
        elif self.minimum is None or low < self.minimum:
            self.minimum = low
        if high is None:
            self.bounded[1] = False
        elif self.maximum is None or high > self.maximum:
            self.maximum = high

    def result(self, num_rows: int) -> LeafStatistics | None:
        """Return what is known, ``None`` if nothing is."""
        minimum = self.minimum if self.bounded[0] else None
        maximum = self.maximum if self.bounded[1] else None
        null_count = num_rows if self.plan.absent else self.null_count
        if null_count is None and minimum is None and maximum is None:
            return None
        return LeafStatistics(minimum, maximum, null_count)
