"""Checkpoints: one version in files of its own (X-32 to X-36).

If the policy of the table is V2, the checkpoint is a top file in JSON that names a sidecar with
the file actions (section "V2 Checkpoint Table Feature"). Otherwise it is one Parquet file after
the V1 spec, which every reader knows.

File actions go from the snapshot's Arrow columns to the file without becoming objects. Statistics
are JSON; as typed columns, too, where the table asks for them (`parsed_columns`).
``stats_parsed`` and ``partitionValues_parsed`` repeat what ``stats`` and ``partitionValues`` say as
text. A mistake in them would lose rows for their readers, so they are read back here: where the
columns would not say the same as the text, a file has none of them, and keeps its text.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.errors import DeltaError
from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.files.file_table import (
    DELETION_VECTOR_TYPE,
    DELETION_VECTOR_WIRE_NAMES,
    FILE_WIRE_NAMES,
    TEXT_MAP,
    TOMBSTONE_SCHEMA,
    TOMBSTONE_WIRE_NAMES,
    FileTable,
    map_texts,
)
from puredelta.log.files.stats_columns import (
    find_date,
    find_timestamp_span,
    read_raw_statistics,
    read_stats_columns,
    typed_statistics,
)
from puredelta.log.files.stats_json import Path, StatisticsColumn, StatsColumns
from puredelta.log.files.value_order import stored_type
from puredelta.log.replay.action_columns import stats_text
from puredelta.log.replay.checkpoint_read import checkpoint_hint_checksum
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.action_json import action_object, encode_action
from puredelta.protocol.actions.actions import Action, CheckpointMetadata, Sidecar
from puredelta.protocol.actions.log_paths import (
    LAST_CHECKPOINT,
    SIDECAR_DIRECTORY,
    classic_checkpoint_name,
    log_path,
    v2_checkpoint_name,
)
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.properties import PROPERTY_KEYS
from puredelta.protocol.schema.partition_values import parse_partition_value
from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.schema.types import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)
from puredelta.protocol.table.stats import indexed_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.quantities import in_milliseconds
from puredelta.store.base import PutOutcome, Store, put_parts_if_absent

_PART_BYTES = 8 * 1024 * 1024
_IN_MEMORY_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """A Parquet file that waits to be put."""

    num_rows: int
    size_bytes: int
    _file: IO[bytes]

    def parts(self) -> Iterator[bytes]:
        """Yield the content from its start."""
        self._file.seek(0)
        while part := self._file.read(_PART_BYTES):
            yield part


@contextlib.contextmanager
def encoded_rows(rows: pa.Table, more: Iterable[pa.Table] = ()) -> Iterator[EncodedRows]:
    """Encode rows, and those that follow them; a long file waits on the disk."""
    num_rows = rows.num_rows
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_MAX_BYTES) as file:
        with pq.ParquetWriter(
            file,
            rows.schema,
            compression="snappy",
            store_schema=False,
            write_page_checksum=True,
        ) as sink:
            sink.write_table(rows)
            for further in more:
                sink.write_table(further)
                num_rows += further.num_rows
        yield EncodedRows(num_rows, file.tell(), file)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSummary:
    """The facts about a checkpoint that ``_last_checkpoint`` has."""

    version: int
    num_actions: int
    size_bytes: int
    num_files: int


def write_checkpoint(
    store: Store,
    snapshot: Snapshot,
    *,
    now_ms: int,
    new_id: IdSource = random_id,
    more: Iterable[FileTable] = (),
) -> CheckpointSummary:
    """Write the checkpoint of a snapshot and point ``_last_checkpoint`` to it.

    An existing classic checkpoint is kept: it has the same content, and another process may be
    reading it. A version may have several V2 checkpoints. ``now_ms`` decides which tombstones
    have expired. ``more`` are files beside those of the snapshot, read once and not kept.
    """
    if snapshot.config.is_active("v2Checkpoint"):
        summary = _write_v2(store, snapshot, more, now_ms=now_ms, new_id=new_id)
        store.put(log_path(LAST_CHECKPOINT), _hint(summary))
        return summary
    table = checkpoint_table(snapshot, now_ms=now_ms)
    with encoded_rows(table, (file_rows(snapshot, files) for files in more)) as rows:
        summary = CheckpointSummary(
            version=snapshot.version,
            num_actions=rows.num_rows,
            size_bytes=rows.size_bytes,
            num_files=len(snapshot.files) + rows.num_rows - table.num_rows,
        )
        path = log_path(classic_checkpoint_name(snapshot.version))
        if put_parts_if_absent(store, path, rows.parts()) is PutOutcome.CREATED:
            store.put(log_path(LAST_CHECKPOINT), _hint(summary))
    return summary


def _write_v2(
    store: Store,
    snapshot: Snapshot,
    more: Iterable[FileTable],
    *,
    now_ms: int,
    new_id: IdSource,
) -> CheckpointSummary:
    """Write the sidecar before the top file, so that a top file never names a missing one."""
    table = file_action_table(snapshot, now_ms=now_ms)
    kinds = small_actions(snapshot, now_ms=now_ms).values()
    small = [action for some in kinds for action in some]
    lines = [encode_action(CheckpointMetadata(version=snapshot.version))]
    size_bytes = num_rows = 0
    with encoded_rows(table, (file_actions_of(snapshot, files) for files in more)) as rows:
        if num_rows := rows.num_rows:
            size_bytes = rows.size_bytes
            sidecar = Sidecar(path=f"{new_id()}.parquet", size_bytes=size_bytes, modified_ms=now_ms)
            put_parts_if_absent(store, f"{SIDECAR_DIRECTORY}/{sidecar.path}", rows.parts())
            lines.append(encode_action(sidecar))
    top = "\n".join([*lines, *map(encode_action, small)]).encode()
    store.put_if_absent(log_path(v2_checkpoint_name(snapshot.version, new_id())), top)
    return CheckpointSummary(
        version=snapshot.version,
        num_actions=num_rows + len(lines) + len(small),
        size_bytes=size_bytes + len(top),
        num_files=len(snapshot.files) + num_rows - table.num_rows,
    )


def _hint(summary: CheckpointSummary) -> bytes:
    content: dict[str, Any] = {
        "version": summary.version,
        "size": summary.num_actions,
        "sizeInBytes": summary.size_bytes,
        "numOfAddFiles": summary.num_files,
    }
    checksum = checkpoint_hint_checksum(content)
    return json.dumps({**content, "checksum": checksum}, separators=(",", ":")).encode()


_AS_STRUCT = PROPERTY_KEYS["write_stats_as_struct"]
_TIGHT_BOUNDS = r'"tightBounds"\s*:\s*(?P<tight>true|false)'
"""A quote within a text is escaped, and no other statistic is true or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsLayout:
    """The form of statistics in a table's checkpoints."""

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
