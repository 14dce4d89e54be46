"""Changes of a table as Unity Catalog's Delta API takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from puredelta.catalogs.catalog import TableCreation, TableUpdate

DERIVED_PROPERTIES = (
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.lastUpdateVersion",
    "delta.lastCommitTimestamp",
    "delta.rowTracking.rowIdHighWaterMark",
    "clusteringColumns",
)
"""Properties that the server makes of other parts of a request, beside ``delta.feature.*``."""
FEATURE_PROPERTIES = "delta.feature."
_HYPHENATED = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}


def is_derived(key: str) -> bool:
    """Return whether the server makes a property itself: no request and no log may hold it.

    >>> is_derived("delta.feature.catalogManaged"), is_derived("io.unitycatalog.tableId")
    (True, False)
    """
    return key in DERIVED_PROPERTIES or key.startswith(FEATURE_PROPERTIES)


def type_json(value: Any) -> Any:
    """Return a type of a log's schema with the names that the server has inside of types.

    Metadata of fields stays as it is.

    >>> type_json({"type": "array", "elementType": "long", "containsNull": True})
    {'type': 'array', 'element-type': 'long', 'contains-null': True}
    """
    if isinstance(value, list):
        return [type_json(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        _HYPHENATED.get(key, key): part if key == "metadata" else type_json(part)
        for key, part in value.items()
    }


def protocol_json(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Return a protocol action of a log as the server takes it."""
    return {
        "min-reader-version": protocol.get("minReaderVersion"),
        "min-writer-version": protocol.get("minWriterVersion"),
        "reader-features": list(protocol.get("readerFeatures") or ()),
        "writer-features": list(protocol.get("writerFeatures") or ()),
    }


def update_json(update: TableUpdate) -> Iterator[dict[str, Any]]:
    """Yield one action for each kind of change."""
    if update.columns is not None:
        yield {"action": "set-columns", "columns": type_json(update.columns)}
    if update.partition_columns is not None:
        columns = list(update.partition_columns)
        yield {"action": "set-partition-columns", "partition-columns": columns}
    changed = {key: text for key, text in update.set_properties.items() if not is_derived(key)}
    if changed:
        yield {"action": "set-properties", "updates": changed}
    removed = [key for key in update.removed_properties if not is_derived(key)]
    if removed:
        yield {"action": "remove-properties", "removals": removed}
    if update.comment is not None:
        yield {"action": "set-table-comment", "comment": update.comment}
    if update.protocol is not None:
        yield {"action": "set-protocol", "protocol": protocol_json(update.protocol)}
    if update.domains:
        yield {"action": "set-domain-metadata", "updates": dict(update.domains)}
    if update.removed_domains:
        domains = list(update.removed_domains)
        yield {"action": "remove-domain-metadata", "domains": domains}


def creation_json(creation: TableCreation) -> dict[str, Any]:
    """Return the body of the request that makes a table known."""
    given = creation.definition
    properties = {key: text for key, text in given.set_properties.items() if not is_derived(key)}
    return {
        "name": creation.name.table,
        "table-type": creation.kind.value,
        "location": creation.location,
        "columns": type_json(given.columns or {"type": "struct", "fields": []}),
        "partition-columns": list(given.partition_columns or ()),
        "properties": properties,
        "protocol": protocol_json(given.protocol or {}),
        "last-commit-timestamp-ms": creation.timestamp_ms,
        **({"comment": given.comment} if given.comment else {}),
        **({"domain-metadata": dict(given.domains)} if given.domains else {}),
    }
