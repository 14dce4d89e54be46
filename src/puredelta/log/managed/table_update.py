"""The changes of a commit that a catalog keeps a copy of.

Metadata, protocol and two domains travel in the request of their commit, so that the catalog never
shows the columns of one version beside the number of another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from puredelta.catalogs.catalog import MANAGED_FEATURE, TABLE_ID, TableUpdate
from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.actions.actions import Action, DomainMetadata, Protocol
from puredelta.protocol.table.iceberg_compat import ENABLED_FORMATS, ICEBERG
from puredelta.protocol.table.table_config import TableConfig

CATALOG_MANAGED = "catalogManaged"
"""The table feature."""
DEMANDED: Mapping[str, str] = {
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
}
"""Properties that catalogs demand: without one, they refuse each later change of the protocol."""
TIMESTAMP_PROPERTIES = frozenset(
    {
        "delta.enableInCommitTimestamps",
        "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
    }
)
"""Properties of in-commit timestamps, by which a catalog orders commits."""
_DOMAINS = frozenset({"delta.clustering", "delta.rowTracking"})
"""Domains that catalogs know."""


def table_update(
    before: TableConfig | None, after: TableConfig, actions: Sequence[Action]
) -> TableUpdate:
    """Return what a catalog learns of a commit; ``before`` is None for version 0.

    Properties that are equal before and after are left out, as is everything about data files.
    """
    domains = [a for a in actions if isinstance(a, DomainMetadata) and a.domain in _DOMAINS]
    kept = {a.domain: json.loads(a.configuration) for a in domains if not a.removed}
    removed = tuple(a.domain for a in domains if a.removed)
    old = None if before is None else before.metadata
    new = after.metadata
    known = {} if old is None else dict(old.configuration)
    properties = dict(new.configuration)
    changes_columns = old is None or old.schema_string != new.schema_string
    changes_partitions = old is None or old.partition_columns != new.partition_columns
    changes_comment = (None if old is None else old.description) != new.description
    changes_protocol = before is None or before.protocol != after.protocol
    return TableUpdate(
        columns=json.loads(new.schema_string) if changes_columns else None,
        partition_columns=new.partition_columns if changes_partitions else None,
        set_properties={k: v for k, v in properties.items() if known.get(k) != v},
        removed_properties=tuple(key for key in known if key not in properties),
        comment=(new.description or "") if changes_comment else None,
        protocol=_protocol(after.protocol) if changes_protocol else None,
        domains=kept,
        removed_domains=removed,
    )


def _protocol(protocol: Protocol) -> dict[str, Any]:
    return {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": sorted(protocol.reader_features or ()),
        "writerFeatures": sorted(protocol.writer_features or ()),
    }


def require_still_managed(before: TableConfig | None, after: TableConfig) -> None:
    """Refuse a commit after which the catalog could not find, order or change the table.

    Tables that keep the rules of Iceberg have no deletion vectors.

    Raises:
        UnsupportedError: as `require_no_iceberg`.
        UnsupportedError: the feature, the table's id, in-commit timestamps or another property that
            catalogs demand would be taken away
            (DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION).
    """
    known = {} if before is None else before.metadata.configuration
    kept = known.get(TABLE_ID)
    if not after.supports(CATALOG_MANAGED):
        lost = f"the table feature {MANAGED_FEATURE.rpartition('.')[2]}"
    elif kept is not None and after.metadata.configuration.get(TABLE_ID) != kept:
        lost = f"the property {TABLE_ID}"
    elif not after.properties.in_commit_timestamps:
        lost = "the property delta.enableInCommitTimestamps"
    else:
        _require_demanded(known, after)
        require_no_iceberg(after)
        return
    raise UnsupportedError(
        Message.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_TAKEN,
        subject=lost[0].upper() + lost[1:],
        lost=lost,
    )


def require_no_iceberg(config: TableConfig) -> None:
    """Refuse commits that would have to bring Iceberg metadata along: the catalog demands that.

    Raises:
        UnsupportedError: the table keeps such metadata
            (DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION).
    """
    if ICEBERG in config.properties.universal_formats:
        raise UnsupportedError(
            Message.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_ICEBERG, property=ENABLED_FORMATS
        )


def _require_demanded(known: Mapping[str, str], after: TableConfig) -> None:
    for key, text in DEMANDED.items():
        left = after.metadata.configuration.get(key, "")
        is_free = key == "delta.enableDeletionVectors" and after.iceberg_compat is not None
        if known.get(key, "").lower() == text and left.lower() != text and not is_free:
            raise UnsupportedError(
                Message.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_DEMANDED,
                property=key,
                demanded=text,
            )


def refuse_operation(operation: str, table: str) -> UnsupportedError:
    """Return the error for an operation that a client may not do to a catalog-managed table."""
    return UnsupportedError(
        Message.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION, table=table, operation=operation
    )
