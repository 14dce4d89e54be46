"""Reading of checkpoints, V1 and V2, and of the hint ``_last_checkpoint``.

It is only a hint: readers list the log and decide by the files that are there (X-36).

File actions stay columns all the way from the Parquet file to the `FileTable`; only the few
other actions become objects. Columns that are not needed are not read (X-33 to X-35).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.errors import CorruptTableError, Message
from puredelta.log.files.file_table import (
    FILE_SCHEMA,
    FILE_WIRE_NAMES,
    TOMBSTONE_SCHEMA,
    TOMBSTONE_WIRE_NAMES,
    FileTable,
)
from puredelta.log.replay.action_columns import (
    NEVER_NULL_IN_VECTORS,
    map_struct_field,
    partition_values_maps,
    stats_text,
    struct_columns,
    with_zone,
)
from puredelta.log.replay.commit_files import log_file_not_found, read_actions
from puredelta.log.replay.replay import EMPTY_STATE, LogState, replay
from puredelta.log.replay.segment import CheckpointFiles
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import Action, Sidecar
from puredelta.protocol.actions.log_paths import (
    LAST_CHECKPOINT,
    SIDECAR_DIRECTORY,
    VERSION_MAX,
    log_path,
)
from puredelta.protocol.actions.paths import decode_path
from puredelta.store.base import StorageError, Store, StoredFile
from puredelta.worker.sound_kinds import sound_parquet


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHint:
    """What ``_last_checkpoint`` says of the newest checkpoint."""

    version: int
    num_actions: int | None = None
    """``size``; None where no checksum vouches for it: writers do not count alike."""
    num_files: int | None = None
    """``numOfAddFiles``."""


def read_checkpoint_hint(store: Store) -> CheckpointHint | None:
    """Return what ``_last_checkpoint`` says; None if it is missing or unusable.

    A wrong checksum, broken JSON or an unreadable file all mean "list everything" (X-36).
    """
    try:
        pairs = json.loads(store.read(log_path(LAST_CHECKPOINT)), object_pairs_hook=_unique_keys)
        if not isinstance(pairs, dict):
            return None
        checksum = pairs.get("checksum")
        if checksum is not None and checksum != checkpoint_hint_checksum(pairs):
            return None
    except (OSError, ValueError, RecursionError):
        return None
    version = _whole_number(pairs, "version")
    if version is None or version > VERSION_MAX:
        return None
    return CheckpointHint(
        version=version,
        num_actions=None if checksum is None else _whole_number(pairs, "size"),
        num_files=_whole_number(pairs, "numOfAddFiles"),
    )


def _whole_number(content: Mapping[str, Any], key: str) -> int | None:
    value = content.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if value >= 0 else None


def checkpoint_hint_checksum(content: Mapping[str, Any]) -> str:
    """Return the MD5 of the canonical form without ``checksum`` (section "JSON checksum")."""
    leaves = sorted(
        (path.encode(), f"{path}={value}")
        for key, child in content.items()
        if key != "checksum"
        for path, value in _canonical_leaves(_canonical_text(key), child)
    )
    joined = ",".join(leaf for _, leaf in leaves)
    return hashlib.md5(joined.encode(), usedforsecurity=False).hexdigest()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a JSON object names a key twice")
    return content


def _canonical_leaves(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from _canonical_leaves(f"{path}+{_canonical_text(key)}", child)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _canonical_leaves(f"{path}+{index}", child)
    else:
        yield path, _canonical_text(value) if isinstance(value, str) else json.dumps(value)


def _canonical_text(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'


# Kind of action: a field that is never null in it, which marks the rows of that kind.
_SMALL_ACTIONS: Mapping[str, str] = {
    "metaData": "id",
    "protocol": "minReaderVersion",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The content of one file of a checkpoint."""

    num_rows: int
    actions: list[Action]
    files: pa.Table
    tombstones: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCheckpoint:
    """The state that a checkpoint holds."""

    state: LogState
    misses_actions: bool
    """Whether the hint says another number of actions than there are."""


def read_checkpoint(
    store: Store, checkpoint: CheckpointFiles, hint: CheckpointHint | None = None
) -> ReadCheckpoint:
    """Read the state that a checkpoint holds, and compare it with what the hint says of it.

    Pages with a checksum are checked. The number of files is the same in every checkpoint of a
    version, the number of actions is not: how many tombstones there are depends on the time.

    Raises:
        CorruptTableError: a file, part or sidecar is missing, unreadable or damaged, or it holds
            other files than the hint says, named (DELTA_LOG_FILE_NOT_FOUND, DELTA_LOG_CORRUPTED).
    """
    top = [_read_part(store, file.path) for file in checkpoint.files]
    actions = [action for part in top for action in part.actions]
    sidecars = [
        StoredFile(path=_sidecar_path(a), size_bytes=a.size_bytes, modified_ms=a.modified_ms)
        for a in actions
        if isinstance(a, Sidecar)
    ]
    ahead = store.read_ahead(sidecars) if sidecars else store
    parts = top + [_read_part(ahead, sidecar.path) for sidecar in sidecars]
    files = FileTable(pa.concat_tables([part.files for part in parts]))
    says = hint if hint is not None and hint.version == checkpoint.version else None
    if says is not None and says.num_files not in {None, len(files)}:
        raise _damaged(
            store,
            checkpoint.files[0].path,
            f"it names {len(files)} files, and _last_checkpoint says {says.num_files}",
        )
    num_actions = None if says is None else says.num_actions
    return ReadCheckpoint(
        state=replace(
            replay(EMPTY_STATE, actions),
            files=files,
            tombstones=pa.concat_tables([part.tombstones for part in parts]),
        ),
        misses_actions=num_actions not in {None, sum(part.num_rows for part in parts)},
    )


def sidecar_names(store: Store, paths: Iterable[str]) -> frozenset[str]:
    """Return the names of the sidecars that these checkpoint files refer to."""
    return frozenset(
        _sidecar_path(action).rsplit("/", 1)[-1]
        for path in paths
        for action in _read_part(store, path).actions
        if isinstance(action, Sidecar)
    )


def _sidecar_path(sidecar: Sidecar) -> str:
    """Return the path of a sidecar: all lie in one directory, whatever path a writer gave."""
    return f"{SIDECAR_DIRECTORY}/{decode_path(sidecar.path).rsplit('/', 1)[-1]}"


def _read_part(store: Store, path: str) -> _Part:
    if path.endswith(".json"):
        return _json_part(read_actions(store, path))
    try:
        with store.open(path) as stream:
            reader = sound_parquet(
                stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True
            )
            part = _Part(
                num_rows=reader.metadata.num_rows,
                actions=_small_actions(reader),
                files=_file_rows(reader),
                tombstones=_tombstone_rows(reader),
            )
            _require_one_schema(reader.metadata)
            for rows in (part.files, part.tombstones):
                rows.validate(full=True)  # texts that are no UTF-8
            return part
    except FileNotFoundError as error:
        raise log_file_not_found(store, path) from error
    except (StorageError, PermissionError):
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        # Beside Arrow's own: columns of other types, names that are there twice or no text.
        raise _damaged(store, path, str(error)) from error


def _require_one_schema(footer: pq.FileMetaData) -> None:
    """Compare the names of the schema with those that the first column chunks repeat.

    A footer has no checksum, and a field of another name would be an unknown field.
    """
    if footer.num_row_groups == 0:
        return
    group = footer.row_group(0)
    for index in range(footer.num_columns):
        name, repeated = footer.schema.column(index).path, group.column(index).path_in_schema
        if name != repeated:
            raise ValueError(f"its schema has a column {name!r}, and its rows {repeated!r}")


def _damaged(store: Store, path: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        Message.LOG_CORRUPTED_FILE,
        root_uri=store.root_uri,
        path_shown=path,
        why=why,
        path=f"{store.root_uri}/{path}",
    )


def _json_part(actions: list[Action]) -> _Part:
    """Split the actions of a V2 checkpoint's JSON file; most file actions are in its sidecars."""
    state = replay(EMPTY_STATE, actions)
    return _Part(
        num_rows=len(actions),
        actions=actions,
        files=state.files.rows,
        tombstones=state.tombstones,
    )


def _small_actions(reader: pq.ParquetFile) -> list[Action]:
    present = [kind for kind in _SMALL_ACTIONS if _child_names(reader, kind)]
    if not present:
        return []
    table = reader.read(columns=present)
    actions = (
        parse_action({kind: row})
        for kind in present
        for row in _rows_with(table[kind], _SMALL_ACTIONS[kind]).to_pylist()
    )
    return [action for action in actions if action is not None]


def _file_rows(reader: pq.ParquetFile) -> pa.Table:
    adds = _read_structs(reader, "add", FILE_WIRE_NAMES.values())
    if adds is None:
        return FILE_SCHEMA.empty_table()
    present = _child_names(reader, "add")
    columns = struct_columns(adds, FILE_SCHEMA, FILE_WIRE_NAMES)
    _require_whole_vectors(columns["deletion_vector"])
    if "stats_parsed" in present and columns["stats"].null_count:
        text = _text_of(reader, "stats_parsed", stats_text, pa.string())
        columns["stats"] = pc.coalesce(columns["stats"], text)
    if "partitionValues" not in present and "partitionValues_parsed" in present:
        columns["partition_values"] = _text_of(
            reader,
            "partitionValues_parsed",
            partition_values_maps,
            FILE_SCHEMA.field("partition_values").type,
        )
    columns["partition_values"] = _never_null(columns["partition_values"])
    columns["data_change"] = pc.fill_null(columns["data_change"], fill_value=False)
    return pa.table(columns, schema=FILE_SCHEMA)


def _text_of(
    reader: pq.ParquetFile,
    name: str,
    text: Callable[[pa.StructArray], pa.Array],
    kind: pa.DataType,
) -> pa.ChunkedArray:
    """Return typed columns of the adds as the text that the log has elsewhere.

    INT96 is always an instant, which its Arrow type does not say.
    """
    columns = map(reader.metadata.schema.column, range(reader.metadata.num_columns))
    instants = frozenset(c.path for c in columns if c.physical_type == "INT96")

    def zoned_text(parsed: pa.StructArray) -> pa.Array:
        return text(with_zone(parsed, f"add.{name}", instants) if instants else parsed)

    parsed = _read_structs(reader, "add", ("path", name))
    return map_struct_field(parsed, name, zoned_text, kind)


def _tombstone_rows(reader: pq.ParquetFile) -> pa.Table:
    removes = _read_structs(reader, "remove", TOMBSTONE_WIRE_NAMES.values())
    if removes is None:
        return TOMBSTONE_SCHEMA.empty_table()
    columns = struct_columns(removes, TOMBSTONE_SCHEMA, TOMBSTONE_WIRE_NAMES)
    _require_whole_vectors(columns["deletion_vector"])
    columns["data_change"] = pc.fill_null(columns["data_change"], fill_value=False)
    return pa.table(columns, schema=TOMBSTONE_SCHEMA)


def _require_whole_vectors(vectors: pa.ChunkedArray) -> None:
    """Refuse deletion vectors of which a field is missing that none can be without."""
    are_there = pc.is_valid(pc.struct_field(vectors, "storage_type"))
    for name in NEVER_NULL_IN_VECTORS:
        is_missing = pc.and_(are_there, pc.is_null(pc.struct_field(vectors, name)))
        if pc.any(is_missing, min_count=0).as_py():
            raise ValueError(f"a deletion vector without {name}")


def _child_names(reader: pq.ParquetFile, kind: str) -> list[str]:
    if kind not in reader.schema_arrow.names:
        return []
    kind_type = reader.schema_arrow.field(kind).type
    return [] if pa.types.is_null(kind_type) else [field.name for field in kind_type]


def _read_structs(
    reader: pq.ParquetFile, kind: str, names: Iterable[str]
) -> pa.ChunkedArray | None:
    """Read some fields of one kind of action, from the rows of this kind."""
    present = _child_names(reader, kind)
    if "path" not in present:
        return None
    column = reader.read(columns=[f"{kind}.{name}" for name in names if name in present])[kind]
    return _rows_with(column, "path")


def _rows_with(column: pa.ChunkedArray, required: str) -> pa.ChunkedArray:
    """Keep the rows in which a field is set: in the others writers leave null or empty structs.

    Rows of one kind mostly follow each other, as a part of the column that need not be copied.
    """
    is_set = pc.is_valid(pc.struct_field(column, required))
    num_set = pc.sum(is_set, min_count=0).as_py()
    first = pc.index(is_set, True).as_py()
    run = slice(max(first, 0), max(first, 0) + num_set)
    if pc.all(is_set[run], min_count=0).as_py():
        return column[run]
    return column.filter(is_set)


def _never_null(maps: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace missing maps by empty ones: files of an unpartitioned table have no values."""
    if maps.null_count == 0:
        return maps
    return pa.chunked_array([pa.array([m or [] for m in maps.to_pylist()], maps.type)])
