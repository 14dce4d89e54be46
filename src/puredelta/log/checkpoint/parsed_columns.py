"""Statistics and partition values of a checkpoint as typed columns (X-34).

``stats_parsed`` and ``partitionValues_parsed`` repeat what ``stats`` and ``partitionValues`` say as
text. A mistake in them would lose rows for those who read them, so they are read back here: where
the columns would not say the same as the text, a file has none of them, and keeps its text.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.errors import DeltaError
from puredelta.log.files.map_texts import map_texts
from puredelta.log.files.stats_columns import (
    find_date,
    find_timestamp_span,
    read_raw_statistics,
    read_stats_columns,
    typed_statistics,
)
from puredelta.log.files.stats_json import Path, StatisticsColumn, StatsColumns
from puredelta.log.files.stored_types import stored_type
from puredelta.log.replay.action_columns import stats_text
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.properties import PROPERTY_KEYS
from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.schema.types import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)
from puredelta.protocol.table.stats import indexed_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.partition_values import parse_partition_value

_AS_STRUCT = PROPERTY_KEYS["write_stats_as_struct"]
_TIGHT_BOUNDS = r'"tightBounds"\s*:\s*(?P<tight>true|false)'
"""A quote within a text is escaped, and no other statistic is true or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsLayout:
    """How a table wants the statistics of its checkpoints."""

    as_json: bool
    as_struct: bool

    @classmethod
    def of(cls, config: TableConfig) -> StatisticsLayout:
        """Read ``delta.checkpoint.writeStatsAsJson`` and ``writeStatsAsStruct``.

        The columns are written where the table asks for them, or for no text. A table that wants
        neither keeps the text: no statistics are lost.
        """
        properties = config.properties
        is_asked = _AS_STRUCT in properties.configuration or not properties.write_stats_as_json
        as_struct = is_asked and properties.write_stats_as_struct
        return cls(as_json=properties.write_stats_as_json or not as_struct, as_struct=as_struct)


# --- statistics -----------------------------------------------------------------------------


def parsed_statistics(texts: pa.Array, config: TableConfig) -> pa.StructArray:
    """Return ``stats_parsed`` for the texts of some files, null where it would not say the same."""
    leaves = _indexed_leaves(config)
    raw = read_raw_statistics(texts, leaves)
    columns = {path: _typed(raw.leaves[path], kind) for path, kind in leaves.items()}
    bounded = {path: column for path, column in columns.items() if column.low is not None}
    sections: dict[str, pa.Array] = {"numRecords": raw.num_records}
    for name, arrays in (
        ("minValues", {path: column.low for path, column in bounded.items()}),
        ("maxValues", {path: column.high for path, column in bounded.items()}),
        ("nullCount", {path: column.null_count for path, column in columns.items()}),
    ):
        if arrays:
            sections[name] = _nested(arrays)
    if config.supports("deletionVectors"):
        found = pc.struct_field(pc.extract_regex(texts, _TIGHT_BOUNDS), "tight")
        sections["tightBounds"] = pc.cast(found, pa.bool_())
    parsed = pa.StructArray.from_arrays(list(sections.values()), names=list(sections))
    said = typed_statistics(raw, leaves)
    read_back = read_stats_columns(stats_text(parsed), leaves)
    wrong = pc.or_(pc.is_null(texts), pc.invert(_agree(said, read_back)))
    return pa.StructArray.from_arrays(parsed.flatten(), names=list(sections), mask=wrong)


def _indexed_leaves(config: TableConfig) -> Mapping[Path, DataType]:
    leaves = {}
    for path in indexed_columns(config.data_schema, config.properties):
        fields = find_fields(config.data_schema, path)
        if fields is not None:
            leaves[config.physical_path(path)] = fields[-1].type
    return leaves


def _typed(raw: StatisticsColumn, data_type: DataType) -> StatisticsColumn:
    kind = stored_type(data_type)
    if raw.low is None or raw.high is None or kind is None:
        return StatisticsColumn(None, None, raw.null_count)
    low, high = (_bound(bound, data_type, kind) for bound in (raw.low, raw.high))
    return StatisticsColumn(low, high, raw.null_count)


def _bound(raw: pa.Array, data_type: DataType, kind: pa.DataType) -> pa.Array:
    """Return a bound in the type of its column, null where it does not fit."""
    if data_type == DATE:
        return pa.array([find_date(text) for text in raw.to_pylist()], kind)
    if data_type in {TIMESTAMP, TIMESTAMP_NTZ}:
        zoned = data_type == TIMESTAMP
        spans = [find_timestamp_span(text, zoned=zoned) for text in raw.to_pylist()]
        exact = [span[0] if span and span[0] == span[1] else None for span in spans]
        return pa.array(exact, pa.int64()).cast(kind)
    try:
        return pc.cast(raw, kind)
    except pa.ArrowInvalid:
        return pa.nulls(len(raw), kind)


def _nested(arrays: Mapping[Path, pa.Array]) -> pa.StructArray:
    """Nest the arrays of leaves as their columns are nested; what holds nothing is null."""
    members: dict[str, dict[Path, pa.Array]] = {}
    for path, array in arrays.items():
        members.setdefault(path[0], {})[path[1:]] = array
    children = [inner[()] if () in inner else _nested(inner) for inner in members.values()]
    empty = functools.reduce(pc.and_, map(pc.is_null, children))
    return pa.StructArray.from_arrays(children, names=list(members), mask=empty)


def _agree(one: StatsColumns, other: StatsColumns) -> pa.Array:
    """Return for each file whether both say the same of everything."""
    agree = _same(one.num_records, other.num_records)
    for path, column in one.leaves.items():
        twin = other.leaves[path]
        pairs: Sequence[tuple[pa.Array | None, pa.Array | None]] = (
            (column.low, twin.low),
            (column.high, twin.high),
            (column.null_count, twin.null_count),
        )
        for left, right in pairs:
            if left is not None and right is not None:
                agree = pc.and_(agree, _same(left, right))
    return agree


def _same(left: pa.Array, right: pa.Array) -> pa.Array:
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both_null, pc.fill_null(pc.equal(left, right), fill_value=False))


# --- partition values -----------------------------------------------------------------------


def parsed_partition_values(values: pa.ChunkedArray, config: TableConfig) -> pa.ChunkedArray | None:
    """Return ``partitionValues_parsed`` of some files, ``None`` if one value has no certain type.

    A null there would mean a partition value that is null, so there is no column at all if a
    text is damaged, or is a timestamp whose zone the log does not say. A table without
    partitions has none, either.
    """
    fields = [
        (physical_name(f, config.column_mapping), f.type) for f in config.partition_schema.fields
    ]
    if not fields:
        return None
    columns = []
    for name, data_type in fields:
        column = _partition_column(map_texts(values, name), data_type)
        if column is None:
            return None
        columns.append(column)
    names = [name for name, _ in fields]
    return pa.chunked_array([pa.StructArray.from_arrays(columns, names=names)])


def _partition_column(texts: pa.ChunkedArray, data_type: DataType) -> pa.Array | None:
    kind = stored_type(data_type)
    if kind is None:
        return None
    encoded = pa.chunked_array(texts, pa.string()).combine_chunks().dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    if data_type == TIMESTAMP and any(t and not t.endswith("Z") for t in distinct):
        return None
    try:
        typed = [parse_partition_value(text, data_type, dt.timezone.utc) for text in distinct]
    except DeltaError:
        return None
    return pa.array(typed, kind).take(encoded.indices)
