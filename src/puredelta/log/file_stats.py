"""Statistics of data files from their Parquet footers, without reading a row (X-60..X-72).

A bound that is wrong loses rows silently, for every reader and for MERGE's own skipping,
so whatever a footer does not prove is left out (X-72). What may be trusted depends on who
wrote the file (C-51b, `puredelta.log.leaf_values`). NULLs are counted by definition level,
which counts a field of a NULL struct as NULL, as Delta does; inside arrays and maps that
count is known only when it is zero.

Who asks is unknown here: the writer, CONVERT and MERGE use the same functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from puredelta.log.leaf_plan import LeafPlan, plan_leaves
from puredelta.log.leaf_values import Decode
from puredelta.log.parquet_footer import ParquetWriter, schema_message
from puredelta.protocol.stats import (
    LeafPath,
    LeafStatistics,
    encode_statistics,
    indexed_leaves,
)
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import StructType

__all__ = [
    "LeafPath",
    "LeafStatistics",
    "StatisticsReader",
    "TableStatistics",
    "combined",
]

_KINDS_REMEMBERED = 32
"""Plans kept: files of one table are nearly always of a few kinds (schema and writer)."""


_UNKNOWN = LeafStatistics(None, None, None)
_NO_ROWS = LeafStatistics(None, None, 0)


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
        num_rows = footer.num_rows
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        groups = [group for group in groups if group.num_rows]
        found = {}
        for plan in self._plan(footer):
            decode = plan.decode if _has_bounds(plan, nan_leaves) else None
            leaf = _read_leaf(plan, decode, groups, num_rows)
            if leaf != _UNKNOWN:
                found[plan.path] = leaf
        return found

    def _plan(self, footer: pq.FileMetaData) -> tuple[LeafPlan, ...]:
        """Return the plan for files of this schema and writer, made at the first of them."""
        writer, message = ParquetWriter.of(footer), schema_message(footer)
        for kind in reversed(self._kinds):
            if kind.writer == writer and kind.message == message:
                return kind.plans
        plans = tuple(
            plan
            for plan in plan_leaves(self._schema, footer.schema, writer)
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
            leaves,
            num_records=footer.num_rows,
            tight_bounds=self._tight_bounds,
            string_prefix_length=self._prefix_length,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileKind:
    """Files of one schema and writer, which one plan serves."""

    message: str
    writer: ParquetWriter
    plans: tuple[LeafPlan, ...]


# --- one leaf -------------------------------------------------------------------------------


def _has_bounds(plan: LeafPlan, nan_leaves: Collection[LeafPath] | None) -> bool:
    return not plan.hides_nan if nan_leaves is None else plan.path not in nan_leaves


def _read_leaf(
    plan: LeafPlan, decode: Decode | None, groups: Sequence[pq.RowGroupMetaData], num_rows: int
) -> LeafStatistics:
    """Return what the row groups of a file, those without rows left out, say of a leaf."""
    if plan.absent:
        return LeafStatistics(None, None, num_rows)
    total, total_rows = _NO_ROWS, 0
    for group in groups:
        part = _read_nested(plan, group) if plan.nested else _read_chunk(plan, decode, group)
        total = _both(total, total_rows, part, group.num_rows) if total_rows else part
        total_rows += group.num_rows
    return total


def _read_chunk(
    plan: LeafPlan, decode: Decode | None, group: pq.RowGroupMetaData
) -> LeafStatistics:
    statistics = group.column(plan.leaves.start).statistics
    if statistics is None:
        return _UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if decode is None or nulls == group.num_rows or not statistics.has_min_max:
        return LeafStatistics(None, None, nulls)
    low, high = decode(statistics.min_raw, statistics.max_raw)
    return LeafStatistics(low, high, nulls)


def _read_nested(plan: LeafPlan, group: pq.RowGroupMetaData) -> LeafStatistics:
    """A value inside an array or map is NULL whenever the array or map itself is."""
    inner = (group.column(i).statistics for i in plan.leaves)
    if any(s is not None and s.has_null_count and s.null_count == 0 for s in inner):
        return _NO_ROWS
    return _UNKNOWN
