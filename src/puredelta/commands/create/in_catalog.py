"""Tables of a Unity catalog, created and replaced together with their entries.

A managed table gets its place from the catalog, and its demands: features and properties that every
table has there, and others that are suggested. What the statement says wins over suggestions, never
over demands. An external table is made at its location and registered afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from puredelta.catalogs.catalog import TABLE_ID, StagedTable, TableIdentifier, TableKind
from puredelta.commands.create.as_select import NewTable, define_table_at, require_same_location
from puredelta.commands.create.create_table import (
    CreateMode,
    Entry,
    already_exists,
    nothing_to_replace,
)
from puredelta.commands.create.definition import TableDefinition
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.properties import FEATURE_PREFIX
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.spark.catalog.unity_entries import (
    CatalogPlace,
    existing_place,
    external_place,
    identifier_of,
    managed_place,
    register_external,
)

_KEPT_FEATURES = frozenset({"catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"})
_KEPT_PROPERTIES = (
    TABLE_ID,
    "delta.enableInCommitTimestamps",
    "delta.checkpointPolicy",
    "delta.enableDeletionVectors",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
    "delta.columnMapping.mode",
    "delta.enableRowTracking",
)
"""Properties that a replacement of a catalog-managed table does not lose."""


def define_in_catalog(spark: SparkSession, table: NewTable, *, mode: CreateMode) -> str:
    """Create or replace a table under a name of a Unity catalog; return its address.

    Raises:
        InvalidRequestError: the name is taken, the definition is invalid, or it contradicts what
            the catalog demands.
        TableNotFoundError: there is no table to replace, or no such schema.
        CatalogRequestError: the catalog refuses, or has a table of another format.
    """
    name = identifier_of(table.name)
    known = existing_place(spark, name)
    if known is not None:
        if mode is CreateMode.CREATE_IF_NOT_EXISTS:
            return known.log.address
        if mode is CreateMode.CREATE:
            raise already_exists(str(name))
        require_same_location(table, known.log, known=known.log.root_uri, stated=table.location)
        _define(spark, known.log, _kept(table, known), mode, is_known=True, place=known)
        return known.log.address
    if mode is CreateMode.REPLACE:
        raise nothing_to_replace(str(name))
    if table.location is not None:
        return _create_external(spark, table, name, mode)
    place = managed_place(spark, name)
    assert place.new is not None  # noqa: S101 - the catalog has chosen it
    wanted = _demanded(table.definition, place.new.staged)
    whole = replace(table, definition=wanted)
    _define(spark, place.log, whole, mode, is_known=False, place=place)
    return place.log.address


def _create_external(
    spark: SparkSession, table: NewTable, name: TableIdentifier, mode: CreateMode
) -> str:
    assert table.location is not None  # noqa: S101 - the caller has seen it
    place = external_place(spark, name, table.location)
    has_table = place.log.exists()
    if table.rows is not None or not has_table:
        _define(spark, place.log, table, mode, is_known=False, place=place)
    elif table.definition.columns.fields or mode is CreateMode.CREATE_OR_REPLACE:
        compares = CreateMode.CREATE_OR_REPLACE
        _define(spark, place.log, table, compares, is_known=False, place=place)
    register_external(spark, name, place.log)
    found = existing_place(spark, name)
    return place.log.address if found is None else found.log.address


def _demanded(definition: TableDefinition, staged: StagedTable) -> TableDefinition:
    """Return a definition with what the catalog demands and suggests."""
    for key, text in staged.required_properties.items():
        stated = definition.properties.get(key)
        if stated is not None and stated.lower() != text.lower():
            raise InvalidRequestError(
                f"The catalog demands {key} = {text} of its managed tables, and the statement says "
                f"{stated}. Leave the property out, or give the table a LOCATION of its own.",
                code=ErrorCode.INVALID_TABLE_PROPERTY,
                key=key,
                value=stated,
            )
    names = dict.fromkeys((*staged.required_features, *staged.suggested_features))
    features = {f"{FEATURE_PREFIX}{name}": "supported" for name in names}
    properties = {
        **features,
        **staged.suggested_properties,
        **definition.properties,
        **staged.required_properties,
    }
    return replace(definition, properties=properties)


def _kept(table: NewTable, known: CatalogPlace) -> NewTable:
    """Return a replacement with what ties the table to its catalog."""
    if known.log.managed is None:
        return table
    snapshot = known.log.snapshot()
    properties = {**_tied(snapshot), **table.definition.properties, **_fixed(snapshot)}
    return replace(table, definition=replace(table.definition, properties=properties))


def _tied(snapshot: Snapshot) -> Mapping[str, str]:
    kept = snapshot.metadata.configuration
    features = supported_features(snapshot.protocol) & _KEPT_FEATURES
    return {
        **{f"{FEATURE_PREFIX}{name}": "supported" for name in sorted(features)},
        **{key: kept[key] for key in _KEPT_PROPERTIES if key in kept},
    }


def _fixed(snapshot: Snapshot) -> Mapping[str, str]:
    kept = snapshot.metadata.configuration
    return {key: kept[key] for key in _KEPT_PROPERTIES[:2] if key in kept}


def _define(
    spark: SparkSession,
    log: TableLog,
    table: NewTable,
    mode: CreateMode,
    *,
    is_known: bool,
    place: CatalogPlace,
) -> None:
    kind = None if place.known is None else place.known.kind
    is_managed = place.new is not None or kind is TableKind.MANAGED
    if not is_known and not is_managed and _asks_for_catalog(table):
        raise UnsupportedError(
            "Only a table whose location the catalog chooses can be catalog-managed: leave the "
            "LOCATION out, or the property delta.feature.catalogManaged.",
            code=ErrorCode.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION,
        )
    entry = Entry(name=str(table.name), is_known=is_known, is_managed=is_managed)
    define_table_at(spark, log, table, mode, entry)


def _asks_for_catalog(table: NewTable) -> bool:
    return f"{FEATURE_PREFIX}catalogManaged" in table.definition.properties
