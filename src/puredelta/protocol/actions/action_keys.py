"""The JSON keys of every action, as a table that serves both reading and writing.

A row says which attribute of the action a key fills, and how its value is read and written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from puredelta.protocol.actions.actions import (
    Add,
    AddChangeFile,
    CheckpointMetadata,
    DeletionVectorDescriptor,
    DomainMetadata,
    Protocol,
    Remove,
    SetTransaction,
    Sidecar,
)

Json: TypeAlias = Mapping[str, Any]

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_WHOLE = re.compile("-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Key:
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


def parse_keys(body: Json, keys: tuple[Key, ...]) -> dict[str, Any]:
    """Return the attributes that a JSON object gives an action.

    Raises:
        ValueError, TypeError: a required key is missing, or a value is of the wrong type.
    """
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


def encode_keys(action: object, keys: tuple[Key, ...]) -> dict[str, Any]:
    """Return the JSON object of an action; attributes that are None are left out."""
    body = {}
    for key in keys:
        value = getattr(action, key.attribute)
        if value is not None:
            body[key.name] = value if key.write is None else key.write(value)
    return body


def wire_names(attributes: Iterable[str], keys: Iterable[Key]) -> dict[str, str]:
    """Return the JSON key of each of some attributes, in their order."""
    names = {key.attribute: key.name for key in keys}
    return {attribute: names[attribute] for attribute in attributes}


# --- values ---------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    if not value.isascii():
        value.encode()  # raises where half of a surrogate pair stands alone
    return value


def _integer(value: Any) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    number: int = value if is_whole else _coerced(value)
    if not _LONG_MIN <= number <= _LONG_MAX:
        raise ValueError(f"{number} does not fit into 64 bits")
    return number


def _int32(value: Any) -> int:
    number = _integer(value)
    if not _INT_MIN <= number <= _INT_MAX:
        raise ValueError(f"{number} does not fit into 32 bits")
    return number


def _coerced(value: Any) -> int:
    """Read what delta-spark takes for a whole number, too: ``5.0`` and ``"5"``."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise TypeError(f"expected a whole number, found {value!r}")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}")
    return value


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else value


def _nullable_texts(value: Any) -> dict[str, str | None]:
    """Read a map that may have null values: null and "" differ in partition values."""
    return {_text(k): None if v is None else _text(v) for k, v in _pairs(value)}


def _texts(value: Any) -> dict[str, str]:
    """Read a map of texts; null values, which some writers produce, are left out."""
    return {_text(k): _text(v) for k, v in _pairs(value) if v is not None}


def _text_tuple(value: Any) -> tuple[str, ...]:
    return tuple(_text(v) for v in value)


def _text_set(value: Any) -> frozenset[str]:
    return frozenset(_text_tuple(value))


def _metric_texts(value: Any) -> dict[str, str]:
    """Read operation metrics: they should be text, but some writers use numbers and objects."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in _pairs(value)}


def _json_object(value: Any) -> dict[str, Any]:
    return dict(_pairs(value))


def _vector(value: Any) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(**parse_keys(value, VECTOR_KEYS))


# --- the table ------------------------------------------------------------------------------

VECTOR_KEYS = (
    Key("storageType", "storage_type", _text, required=True),
    Key("pathOrInlineDv", "path_or_inline", _text, required=True),
    Key("offset", "offset", _int32),
    Key("sizeInBytes", "size_bytes", _int32, required=True),
    Key("cardinality", "cardinality", _integer, required=True),
    Key("maxRowIndex", "max_row_index", _integer),
)
_PATH = Key("path", "path", _text, required=True)
_TAGS = Key("tags", "tags", _nullable_texts, write=dict)
_FILE_IDENTITY = (
    Key("deletionVector", "deletion_vector", _vector, write=lambda v: encode_keys(v, VECTOR_KEYS)),
    Key("baseRowId", "base_row_id", _integer),
    Key("defaultRowCommitVersion", "default_row_commit_version", _integer),
)
_PARTITION_VALUES = Key(
    "partitionValues", "partition_values", _nullable_texts, otherwise={}, write=dict
)

ACTION_KEYS: Mapping[type, tuple[str, tuple[Key, ...]]] = {
    # action: (its kind, the keys of its object)
    Add: (
        "add",
        (
            _PATH,
            _PARTITION_VALUES,
            Key("size", "size_bytes", _integer, required=True),
            Key("modificationTime", "modified_ms", _integer, required=True),
            Key("dataChange", "data_change", _flag, required=True),
            Key("stats", "stats", _text),
            _TAGS,
            *_FILE_IDENTITY,
            Key("clusteringProvider", "clustering_provider", _text),
        ),
    ),
    Remove: (
        "remove",
        (
            _PATH,
            Key("deletionTimestamp", "deleted_ms", _integer),
            Key("dataChange", "data_change", _flag, otherwise=True),
            Key("extendedFileMetadata", "extended_file_metadata", _flag),
            Key("partitionValues", "partition_values", _nullable_texts, write=dict),
            Key("size", "size_bytes", _integer),
            _TAGS,
            *_FILE_IDENTITY,
            Key("stats", "stats", _text),
        ),
    ),
    AddChangeFile: (
        "cdc",
        (
            _PATH,
            _PARTITION_VALUES,
            Key("size", "size_bytes", _integer, required=True),
            Key("dataChange", "data_change", _flag, otherwise=False),
            _TAGS,
        ),
    ),
    Protocol: (
        "protocol",
        (
            Key("minReaderVersion", "min_reader_version", _int32, required=True),
            Key("minWriterVersion", "min_writer_version", _int32, required=True),
            Key("readerFeatures", "reader_features", _text_set, write=sorted),
            Key("writerFeatures", "writer_features", _text_set, write=sorted),
        ),
    ),
    SetTransaction: (
        "txn",
        (
            Key("appId", "app_id", _text, required=True),
            Key("version", "version", _integer, required=True),
            Key("lastUpdated", "last_updated_ms", _integer),
        ),
    ),
    DomainMetadata: (
        "domainMetadata",
        (
            Key("domain", "domain", _text, required=True),
            Key("configuration", "configuration", _text, required=True),
            Key("removed", "removed", _flag, otherwise=False),
        ),
    ),
    CheckpointMetadata: (
        "checkpointMetadata",
        (
            Key("version", "version", _integer, required=True),
            Key("tags", "tags", _texts, write=dict),
        ),
    ),
    Sidecar: (
        "sidecar",
        (
            _PATH,
            Key("sizeInBytes", "size_bytes", _integer, required=True),
            Key("modificationTime", "modified_ms", _integer, required=True),
            Key("tags", "tags", _texts, write=dict),
        ),
    ),
}

COMMIT_INFO_KEYS = (
    # First, so that a reader finds it without parsing the rest (section "In-Commit Timestamps").
    Key("inCommitTimestamp", "in_commit_timestamp_ms", _integer),
    Key("timestamp", "timestamp_ms", _integer),
    Key("operation", "operation", _text),
    Key("operationParameters", "operation_parameters", _json_object, otherwise={}, write=dict),
    Key("readVersion", "read_version", _integer),
    Key("isolationLevel", "isolation_level", _text),
    Key("isBlindAppend", "is_blind_append", _flag),
    Key("operationMetrics", "operation_metrics", _metric_texts, write=dict),
    Key("userMetadata", "user_metadata", _text),
    Key("tags", "tags", _texts, write=dict),
    Key("engineInfo", "engine_info", _text),
    Key("txnId", "txn_id", _text),
)

FORMAT_KEYS = (
    Key("provider", "format_provider", _text, otherwise="parquet"),
    Key("options", "format_options", _texts, otherwise={}, write=dict),
)
METADATA_KEYS = (
    Key("id", "id", _text, required=True),
    Key("name", "name", _text),
    Key("description", "description", _text),
    # Old tests of delta-spark leave the schema out; "" is read as a table without columns.
    Key("schemaString", "schema_string", _text, otherwise=""),
    Key("partitionColumns", "partition_columns", _text_tuple, otherwise=(), write=list),
    Key("configuration", "configuration", _texts, otherwise={}, write=dict),
    Key("createdTime", "created_ms", _integer),
)
