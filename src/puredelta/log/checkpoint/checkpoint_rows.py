"""The state of a version as rows of a checkpoint, in Arrow (X-33..X-35).

File actions go from the snapshot's Arrow columns to the file without becoming objects.

Statistics are JSON; as typed columns, too, where the table asks for them (`parsed_columns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.checkpoint.parsed_columns import (
    StatisticsLayout,
    parsed_partition_values,
    parsed_statistics,
)
from puredelta.log.files.file_table import (
    DELETION_VECTOR_TYPE,
    DELETION_VECTOR_WIRE_NAMES,
    FILE_WIRE_NAMES,
    TEXT_MAP,
    TOMBSTONE_SCHEMA,
    TOMBSTONE_WIRE_NAMES,
    FileTable,
)
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.action_json import action_object
from puredelta.protocol.actions.actions import Action
from puredelta.quantities import in_milliseconds

_TEXT_LIST = pa.list_(pa.string())

_SMALL_ACTION_TYPES: Mapping[str, pa.DataType] = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _TEXT_LIST),
            ("writerFeatures", _TEXT_LIST),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _TEXT_LIST),
            ("configuration", TEXT_MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}


def checkpoint_table(snapshot: Snapshot, *, now_ms: int) -> pa.Table:
    """Build all rows of a checkpoint: one action a row, in the column of its kind (X-34, X-35).

    Provenance, change files, removed domains, expired tombstones and expired transactions are no
    part of the state.
    """
    small = small_actions(snapshot, now_ms=now_ms)
    kinds: Mapping[str, Sequence[pa.Array]] = {
        **{name: (_small_actions(name, some),) for name, some in small.items()},
        **_file_actions(snapshot, now_ms),
    }
    return _laid_out(kinds)


def file_action_table(snapshot: Snapshot, *, now_ms: int) -> pa.Table:
    """Build the rows of file actions alone, for a sidecar."""
    return _laid_out(_file_actions(snapshot, now_ms))


def file_rows(snapshot: Snapshot, files: FileTable) -> pa.Table:
    """Build the rows of further active files, to follow those of `checkpoint_table`."""
    nothing = {name: (_small_actions(name, ()),) for name in _SMALL_ACTION_TYPES}
    return _laid_out({**nothing, **_of_files(snapshot, files)})


def file_actions_of(snapshot: Snapshot, files: FileTable) -> pa.Table:
    """Build the rows of further active files, to follow those of `file_action_table`."""
    return _laid_out(_of_files(snapshot, files))


def _of_files(snapshot: Snapshot, files: FileTable) -> Mapping[str, Sequence[pa.Array]]:
    state = replace(snapshot.state, files=files)
    no_tombstones = _structs(TOMBSTONE_SCHEMA.empty_table(), TOMBSTONE_WIRE_NAMES)
    return {"add": _adds(replace(snapshot, state=state)), "remove": no_tombstones}


def small_actions(snapshot: Snapshot, *, now_ms: int) -> Mapping[str, Sequence[Action]]:
    """Return the actions that are not about files, by kind."""
    return {
        "protocol": (snapshot.protocol,),
        "metaData": (snapshot.metadata,),
        "txn": tuple(snapshot.unexpired_transactions(now_ms).values()),
        "domainMetadata": tuple(snapshot.domain_metadata.values()),
    }


def _file_actions(snapshot: Snapshot, now_ms: int) -> Mapping[str, Sequence[pa.Array]]:
    return {
        "add": _adds(snapshot),
        "remove": _structs(unexpired_tombstones(snapshot, now_ms), TOMBSTONE_WIRE_NAMES),
    }


def _adds(snapshot: Snapshot) -> Sequence[pa.Array]:
    rows, config = snapshot.files.rows, snapshot.config
    layout = StatisticsLayout.of(config)
    if not layout.as_struct:
        return _structs(rows, FILE_WIRE_NAMES)
    names = dict(FILE_WIRE_NAMES)
    parsed = [parsed_statistics(batch.column("stats"), config) for batch in rows.to_batches()]
    statistics = pa.chunked_array(parsed or [parsed_statistics(pa.array([], pa.string()), config)])
    if not layout.as_json:
        unparsed = pc.if_else(pc.is_null(statistics), rows["stats"], pa.scalar(None, pa.string()))
        rows = rows.set_column(rows.schema.get_field_index("stats"), "stats", unparsed)
    values = parsed_partition_values(rows["partition_values"], config)
    for name, column in (("partitionValues_parsed", values), ("stats_parsed", statistics)):
        if column is not None:
            rows = rows.append_column(name, column)
            names[name] = name
    return _structs(rows, names)


def _laid_out(kinds: Mapping[str, Sequence[pa.Array]]) -> pa.Table:
    """Put the actions of every kind into rows of their own."""
    lengths = {name: sum(map(len, chunks)) for name, chunks in kinds.items()}
    total = sum(lengths.values())
    columns = {}
    before = 0
    for name, chunks in kinds.items():
        kind = chunks[0].type
        after = total - before - lengths[name]
        columns[name] = pa.chunked_array([pa.nulls(before, kind), *chunks, pa.nulls(after, kind)])
        before += lengths[name]
    return pa.table(columns)


def unexpired_tombstones(snapshot: Snapshot, now_ms: int) -> pa.Table:
    """Return the removed files whose data a vacuum must keep.

    A tombstone without a time counts as older than any other.
    """
    retention = snapshot.config.properties.deleted_file_retention
    oldest_ms = now_ms - in_milliseconds(retention)
    young = pc.greater(snapshot.tombstones["deleted_ms"], oldest_ms)
    return snapshot.tombstones.filter(young)


def _small_actions(kind: str, actions: Iterable[Action]) -> pa.Array:
    rows = [action_object(action)[1] for action in actions]
    return pa.array([_with_pairs(row) for row in rows], type=_SMALL_ACTION_TYPES[kind])


_MAPS = frozenset({"configuration", "options"})


def _with_pairs(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn JSON objects that are maps into pairs, as Arrow takes maps."""
    return {
        key: list(value.items())
        if key in _MAPS and isinstance(value, Mapping)
        else _with_pairs(value)
        if isinstance(value, Mapping)
        else value
        for key, value in row.items()
    }


def _structs(rows: pa.Table, wire_names: Mapping[str, str]) -> Sequence[pa.StructArray]:
    """Turn the columns of file actions into one struct a row, under the names of the protocol."""
    chunks = [_struct(batch, wire_names) for batch in rows.to_batches()]
    return chunks or [_struct(pa.RecordBatch.from_pylist([], rows.schema), wire_names)]


def _struct(batch: pa.RecordBatch, wire_names: Mapping[str, str]) -> pa.StructArray:
    columns = []
    for name in wire_names:
        column = batch.column(name)
        if name == "data_change":
            # A checkpoint changes no data, whatever its commits did.
            column = pa.repeat(pa.scalar(False), len(column))  # noqa: FBT003
        elif column.type == DELETION_VECTOR_TYPE:
            column = _vectors(column)
        columns.append(column)
    return pa.StructArray.from_arrays(columns, names=list(wire_names.values()))


def _vectors(vectors: pa.StructArray) -> pa.StructArray:
    children = [pc.struct_field(vectors, [i]) for i in range(vectors.type.num_fields)]
    names = [DELETION_VECTOR_WIRE_NAMES[field.name] for field in vectors.type]
    return pa.StructArray.from_arrays(children, names=names, mask=pc.is_null(vectors))
