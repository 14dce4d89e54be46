"""Where the leaves of a table lie in files of one kind, and how each is read.

Columns are found by name, or by the only name that differs in case. A file may lack a column,
hold it in another shape, or have dots in its name. A leaf that is not found with certainty gets
no plan, and so no statistics (X-72).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.footers.leaf_values import Decode, might_contain_nan, plan_decode
from puredelta.log.footers.parquet_footer import ParquetWriter
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructType
from puredelta.protocol.table.stats import LeafPath

_COUNTS_NULLS_OF_LISTS = frozenset({"parquet-mr", "parquet-cpp", "parquet-cpp-arrow"})
"""Writers that count a NULL array or map among the NULLs of the values inside it."""
_ARROW = frozenset({"parquet-cpp", "parquet-cpp-arrow"})
_ARROW_COUNTS_INSIDE_STRUCTS = (26,)
"""Arrow 17, for one, does not count a NULL array where what it holds are structs."""


def plan_leaves(
    schema: StructType,
    file_schema: pq.ParquetSchema,
    writer: ParquetWriter,
    *,
    case_sensitive: bool = False,
) -> Iterator[LeafPlan]:
    """Yield a plan for each leaf of ``schema`` that such a file has statistics of, in order.

    With ``case_sensitive`` a column that differs in case has none: it is NULL to a session that
    heeds the case, and has values to others.
    """
    rules = _Rules(writer, case_sensitive)
    yield from _plan_struct(schema, _file_columns(file_schema), rules, ())


@dataclass(frozen=True, slots=True)
class _Rules:
    """What decides which statistics of a file are those of a column."""

    writer: ParquetWriter
    case_sensitive: bool


@dataclass(frozen=True, slots=True)
class _FileColumn:
    """A field of a file: either a leaf, a struct of fields, or something with leaves inside."""

    leaf: Any | None = None
    """pyarrow's column descriptor."""
    fields: Mapping[str, _FileColumn] | None = None
    leaves: range = range(0)
    """Positions of its leaves among those of the file."""

    def find(self, name: str, *, case_sensitive: bool) -> _FileColumn | None:
        """Return the field of this name, or the only one that differs in case if that may be."""
        fields = self.fields or {}
        if name in fields:
            return fields[name]
        lowered = name.lower()
        same = [column for other, column in fields.items() if other.lower() == lowered]
        if not same:
            return None
        return same[0] if len(same) == 1 and not case_sensitive else _AMBIGUOUS


_AMBIGUOUS = _FileColumn()
"""A column of which nothing is known, as several may be it."""


def _file_columns(schema: pq.ParquetSchema) -> _FileColumn:
    """Return the tree of a file's fields.

    Names may have dots, so the tree cannot be read off pyarrow's dotted paths. The Arrow
    schema shows the tree, with the leaves in the same order.
    """
    try:
        arrow = schema.to_arrow_schema()
    except pa.ArrowException:
        return _AMBIGUOUS  # types that pyarrow does not know prove nothing
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
class LeafPlan:
    """How one leaf of the table is read from files of one kind."""

    path: LeafPath
    leaves: range
    """The leaves of the file that belong to it: one, or several inside an array or map."""
    decode: Decode | None = None
    absent: bool = False
    nested: bool = False
    might_contain_nan: bool = False


def _plan_struct(
    schema: StructType, columns: _FileColumn, rules: _Rules, prefix: LeafPath
) -> Iterator[LeafPlan]:
    """Yield a plan per leaf of the table, in schema order."""
    if columns.fields is None:
        return
    for part in schema.fields:
        column = columns.find(part.name, case_sensitive=rules.case_sensitive)
        yield from _plan_field(
            part.type, _ABSENT if column is None else column, rules, (*prefix, part.name)
        )


def _plan_field(
    data_type: DataType, column: _FileColumn, rules: _Rules, path: LeafPath
) -> Iterator[LeafPlan]:
    match data_type:
        case StructType():
            yield from _plan_struct(data_type, column, rules, path)
        case _ if column is _ABSENT:
            yield LeafPlan(path, range(0), absent=True)
        case ArrayType() | MapType():
            if column.leaf is None and _counts_nulls(data_type, rules.writer):
                yield LeafPlan(path, column.leaves, nested=True)
        case _ if column.leaf is not None and column.leaf.max_repetition_level == 0:
            leaf, writer = column.leaf, rules.writer
            decode = plan_decode(leaf.physical_type, leaf.logical_type.to_json(), data_type, writer)
            nan = might_contain_nan(leaf.physical_type, writer)
            yield LeafPlan(path, column.leaves, decode=decode, might_contain_nan=nan)
        case _:
            return


_ABSENT = _FileColumn(fields={})
"""A column that the file lacks: it is NULL in every row, and so are its fields."""


def _counts_nulls(data_type: ArrayType | MapType, writer: ParquetWriter) -> bool:
    if writer.name in _ARROW and writer.version < _ARROW_COUNTS_INSIDE_STRUCTS:
        return not _holds_struct(data_type)
    return writer.name in _COUNTS_NULLS_OF_LISTS


def _holds_struct(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _holds_struct(element)
        case MapType(key=key, value=value):
            return _holds_struct(key) or _holds_struct(value)
        case _:
            return isinstance(data_type, StructType)
