"""Actions as JSON: one line of a commit file, one row of a checkpoint (section "Actions").

The wire names stand in one table per action, used in both directions. Unknown kinds of
action and unknown keys are passed over, as the protocol asks of every reader; only
``commitInfo`` keeps what it does not know, because history shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    SetTransaction,
    Sidecar,
)

Json: TypeAlias = Mapping[str, Any]

_SHOWN_LENGTH = 200

# Made once: json.dumps with an option makes an encoder for every call.
_as_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def parse_action(line: str | bytes | Json) -> Action | None:
    """Read one action, or ``None`` where its kind is unknown to this library.

    Takes the text of a line, or the object itself: a row of a checkpoint, in which the
    other kinds are null and maps may be lists of pairs (as Arrow hands them over).

    Raises:
        CorruptTableError: not JSON, or a required key is missing or of the wrong type
            (DELTA_LOG_CORRUPTED).

    >>> parse_action('{"txn":{"appId":"stream-1","version":7}}')
    SetTransaction(app_id='stream-1', version=7, last_updated_ms=None)
    """
    content = _load(line) if isinstance(line, str | bytes) else line
    for kind, body in content.items():
        parse = _PARSERS.get(kind)
        if parse is None or body is None:
            continue
        try:
            return parse(body)
        except (ValueError, TypeError, AttributeError) as error:
            raise _corrupt(f"The log holds a broken {kind!r} action ({error})", line) from error
    return None


def encode_action(action: Action) -> str:
    """Write one action as a line without its line break; absent values are left out.

    >>> encode_action(SetTransaction(app_id="stream-1", version=7))
    '{"txn":{"appId":"stream-1","version":7}}'
    """
    kind, body = action_object(action)
    return _as_json({kind: body})


def action_object(action: Action) -> tuple[str, dict[str, Any]]:
    """Return the wire name of the action's kind and its JSON object."""
    match action:
        case Metadata():
            return "metaData", _encode_metadata(action)
        case CommitInfo():
            return "commitInfo", {**_encode(action, _COMMIT_INFO), **_unnamed(action)}
        case _:
            kind, fields = _TABLES[type(action)]
            return kind, _encode(action, fields)


# --- values ---------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a whole number, found {value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}")
    return value


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else value


def _nullable_texts(value: Any) -> dict[str, str | None]:
    """Read a map whose null is a value of its own: null and "" differ in partition values."""
    return {_text(k): None if v is None else _text(v) for k, v in _pairs(value)}


def _texts(value: Any) -> dict[str, str]:
    """Read a map of texts; null values, which some writers leave in, say nothing."""
    return {_text(k): _text(v) for k, v in _pairs(value) if v is not None}


def _text_tuple(value: Any) -> tuple[str, ...]:
    return tuple(_text(v) for v in value)


def _text_set(value: Any) -> frozenset[str]:
    return frozenset(_text_tuple(value))


def _metric_texts(value: Any) -> dict[str, str]:
    """Read operation metrics: text by rule, but some writers put numbers and objects."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in _pairs(value)}


def _json_object(value: Any) -> dict[str, Any]:
    return dict(_pairs(value))


def _vector(value: Any) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(**_parse(value, _VECTOR))


def _encode_vector(vector: DeletionVectorDescriptor) -> dict[str, Any]:
    return _encode(vector, _VECTOR)


# --- wire names -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Key:
    """One JSON key: the attribute it fills and how its value is read and written.

    A required key that is absent breaks the action; an optional one leaves the
    attribute's default in place (``otherwise`` where the class has none).
    """

    name: str
    attribute: str
    read: Callable[[Any], Any]
    required: bool = False
    otherwise: Any = None
    write: Callable[[Any], Any] | None = None


_VECTOR = (
    _Key("storageType", "storage_type", _text, required=True),
    _Key("pathOrInlineDv", "path_or_inline", _text, required=True),
    _Key("offset", "offset", _integer),
    _Key("sizeInBytes", "size_bytes", _integer, required=True),
    _Key("cardinality", "cardinality", _integer, required=True),
    _Key("maxRowIndex", "max_row_index", _integer),
)
_PATH = _Key("path", "path", _text, required=True)
_TAGS = _Key("tags", "tags", _nullable_texts, write=dict)
_FILE_IDENTITY = (
    _Key("deletionVector", "deletion_vector", _vector, write=_encode_vector),
    _Key("baseRowId", "base_row_id", _integer),
    _Key("defaultRowCommitVersion", "default_row_commit_version", _integer),
)
_PARTITION_VALUES = _Key(
    "partitionValues", "partition_values", _nullable_texts, otherwise={}, write=dict
)

_TABLES: Mapping[type, tuple[str, tuple[_Key, ...]]] = {
    Add: (
        "add",
        (
            _PATH,
            _PARTITION_VALUES,
            _Key("size", "size_bytes", _integer, required=True),
            _Key("modificationTime", "modified_ms", _integer, required=True),
            _Key("dataChange", "data_change", _flag, required=True),
            _Key("stats", "stats", _text),
            _TAGS,
            *_FILE_IDENTITY,
            _Key("clusteringProvider", "clustering_provider", _text),
        ),
    ),
    Remove: (
        "remove",
        (
            _PATH,
            _Key("deletionTimestamp", "deleted_ms", _integer),
            _Key("dataChange", "data_change", _flag, otherwise=True),
            _Key("extendedFileMetadata", "extended_file_metadata", _flag),
            _Key("partitionValues", "partition_values", _nullable_texts, write=dict),
            _Key("size", "size_bytes", _integer),
            _TAGS,
            *_FILE_IDENTITY,
            _Key("stats", "stats", _text),
        ),
    ),
    AddChangeFile: (
        "cdc",
        (
            _PATH,
            _PARTITION_VALUES,
            _Key("size", "size_bytes", _integer, required=True),
            _Key("dataChange", "data_change", _flag, otherwise=False),
            _TAGS,
        ),
    ),
    Protocol: (
        "protocol",
        (
            _Key("minReaderVersion", "min_reader_version", _integer, required=True),
            _Key("minWriterVersion", "min_writer_version", _integer, required=True),
            _Key("readerFeatures", "reader_features", _text_set, write=sorted),
            _Key("writerFeatures", "writer_features", _text_set, write=sorted),
        ),
    ),
    SetTransaction: (
        "txn",
        (
            _Key("appId", "app_id", _text, required=True),
            _Key("version", "version", _integer, required=True),
            _Key("lastUpdated", "last_updated_ms", _integer),
        ),
    ),
    DomainMetadata: (
        "domainMetadata",
        (
            _Key("domain", "domain", _text, required=True),
            _Key("configuration", "configuration", _text, required=True),
            _Key("removed", "removed", _flag, otherwise=False),
        ),
    ),
    CheckpointMetadata: (
        "checkpointMetadata",
        (
            _Key("version", "version", _integer, required=True),
            _Key("tags", "tags", _texts, write=dict),
        ),
    ),
    Sidecar: (
        "sidecar",
        (
            _PATH,
            _Key("sizeInBytes", "size_bytes", _integer, required=True),
            _Key("modificationTime", "modified_ms", _integer, required=True),
            _Key("tags", "tags", _texts, write=dict),
        ),
    ),
}

_COMMIT_INFO = (
    # First, so that a reader finds it without parsing the rest (section "In-Commit Timestamps").
    _Key("inCommitTimestamp", "in_commit_timestamp_ms", _integer),
    _Key("timestamp", "timestamp_ms", _integer),
    _Key("operation", "operation", _text),
    _Key("operationParameters", "operation_parameters", _json_object, otherwise={}, write=dict),
    _Key("readVersion", "read_version", _integer),
    _Key("isolationLevel", "isolation_level", _text),
    _Key("isBlindAppend", "is_blind_append", _flag),
    _Key("operationMetrics", "operation_metrics", _metric_texts, write=dict),
    _Key("userMetadata", "user_metadata", _text),
    _Key("tags", "tags", _texts, write=dict),
    _Key("engineInfo", "engine_info", _text),
    _Key("txnId", "txn_id", _text),
)

_METADATA = (
    _Key("id", "id", _text, required=True),
    _Key("name", "name", _text),
    _Key("description", "description", _text),
    # Old tests of the reference leave the schema out; "" is read as a table without columns.
    _Key("schemaString", "schema_string", _text, otherwise=""),
    _Key("partitionColumns", "partition_columns", _text_tuple, otherwise=(), write=list),
    _Key("configuration", "configuration", _texts, otherwise={}, write=dict),
    _Key("createdTime", "created_ms", _integer),
)


# --- reading and writing by table -----------------------------------------------------------


def _parse(body: Json, keys: tuple[_Key, ...]) -> dict[str, Any]:
    values = {}
    for key in keys:
        value = body.get(key.name)
        if value is not None:
            values[key.attribute] = key.read(value)
        elif key.required:
            raise ValueError(f"{key.name!r} is missing")
        else:
            values[key.attribute] = key.otherwise
    return values


def _encode(action: object, keys: tuple[_Key, ...]) -> dict[str, Any]:
    body = {}
    for key in keys:
        value = getattr(action, key.attribute)
        if value is not None:
            body[key.name] = value if key.write is None else key.write(value)
    return body


def _parse_metadata(body: Json) -> Metadata:
    storage = body.get("format") or {}
    return Metadata(
        **_parse(body, _METADATA),
        format_provider=_text(storage.get("provider") or "parquet"),
        format_options=_texts(storage.get("options") or {}),
    )


def _encode_metadata(metadata: Metadata) -> dict[str, Any]:
    storage = {"provider": metadata.format_provider, "options": dict(metadata.format_options)}
    body = {"id": metadata.id, "format": storage, **_encode(metadata, _METADATA)}
    if not metadata.schema_string:
        del body["schemaString"]
    return body


def _parse_commit_info(body: Json) -> CommitInfo:
    """Read provenance, which may hold any JSON: what does not fit is kept as it stands."""
    values: dict[str, Any] = {}
    extra = dict(body)
    for key in _COMMIT_INFO:
        value = extra.get(key.name)
        try:
            values[key.attribute] = key.otherwise if value is None else key.read(value)
        except (ValueError, TypeError):
            values[key.attribute] = key.otherwise
        else:
            extra.pop(key.name, None)
    return CommitInfo(**values, extra={k: v for k, v in extra.items() if v is not None})


def _unnamed(info: CommitInfo) -> dict[str, Any]:
    """Return the extra keys that no attribute of ``info`` speaks for."""
    named = {key.name for key in _COMMIT_INFO if getattr(info, key.attribute) not in (None, {})}
    return {k: v for k, v in info.extra.items() if k not in named}


T = TypeVar("T", bound=Action)


def _by_table(kind: type[T], keys: tuple[_Key, ...]) -> Callable[[Json], T]:
    return lambda body: kind(**_parse(body, keys))


_PARSERS: Mapping[str, Callable[[Json], Action]] = {
    **{name: _by_table(kind, keys) for kind, (name, keys) in _TABLES.items()},
    "metaData": _parse_metadata,
    "commitInfo": _parse_commit_info,
}


def _load(line: str | bytes) -> Json:
    try:
        content = json.loads(line.decode("utf-8") if isinstance(line, bytes) else line)
    except ValueError as error:
        raise _corrupt(f"The log holds a line that is not JSON ({error})", line) from error
    if not isinstance(content, dict):
        raise _corrupt("The log holds a line that is not a JSON object", line)
    return content


def _corrupt(problem: str, line: object) -> CorruptTableError:
    shown = line.decode("utf-8", "replace") if isinstance(line, bytes) else str(line)
    if len(shown) > _SHOWN_LENGTH:
        shown = shown[:_SHOWN_LENGTH] + "..."
    return CorruptTableError(f"{problem}: {shown}", code=ErrorCode.LOG_CORRUPTED, line=shown)
