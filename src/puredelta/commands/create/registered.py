"""Tables of a catalog, created and replaced together with their entries.

A table of the session catalog without a location belongs to Spark: its entry is made first, because
Spark requires an empty directory for it, and reserves the name. The entry is removed if the
creation fails. The directory is removed only if empty: a writer with another catalog may use it.

A table with its own location is created first and gets its entry afterwards. A replaced table
keeps its location.

The catalog gives a managed table of Unity Catalog its location, required features and properties,
and suggested ones. The statement may overrule suggestions, but not requirements. An external table
is made at its location and registered afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from puredelta.catalogs.catalog import (
    MANAGED_FEATURE,
    TABLE_ID,
    StagedTable,
    TableIdentifier,
    TableKind,
)
from puredelta.commands.create.as_select import NewTable, define_table_at, require_same_location
from puredelta.commands.create.create_table import (
    CreateMode,
    Entry,
    already_exists,
    nothing_to_replace,
)
from puredelta.commands.create.definition import TableDefinition
from puredelta.errors import (
    CommitUnknownError,
    InvalidRequestError,
    Message,
    UnsupportedError,
)
from puredelta.log.managed.table_update import DEMANDED
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY
from puredelta.protocol.features.properties import FEATURE_PREFIX
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.spark.catalog.catalog_entries import (
    EntryName,
    default_location,
    entry_mark,
    find_table,
    follow_columns,
    is_taken,
    register,
    register_written,
    require_possible,
    stated_location,
    unregister,
)
from puredelta.spark.catalog.unity_entries import (
    CatalogPlace,
    chosen_location,
    existing_place,
    external_place,
    identifier_of,
    is_in_session_catalog,
    managed_place,
    register_external,
)
from puredelta.spark.jvm.catalog import CatalogTable
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.types import to_spark

logger = logging.getLogger(__name__)


@contextmanager
def managed_entry(
    spark: SparkSession, name: EntryName, columns: T.StructType, *, comment: str | None = None
) -> Iterator[TableLog]:
    """Make an entry, and yield the location of its table; remove the entry if the block fails.

    It stays if the commit may have succeeded: the outcome is unknown, or the call was interrupted
    when the log existed.

    Raises:
        pyspark.errors.AnalysisException: there is such a table, no such database, or the
            directory is not empty.
    """
    log = open_log(spark, default_location(spark, name))
    register(spark, name, columns, location=None, comment=comment)
    mark = None
    try:
        mark = entry_mark(spark, name)
        yield log
    except CommitUnknownError:
        raise
    except BaseException as failure:
        if isinstance(failure, Exception) or not log.exists():
            _take_back(spark, name, log, mark=mark)
        raise


def _take_back(spark: SparkSession, name: EntryName, log: TableLog, *, mark: str | None) -> None:
    """Remove the entry unless another writer has replaced it, and the directory if it is empty.

    Without a mark the entry has only been made: the answer about it was lost.
    """
    try:
        is_own = not log.exists() if mark is None else entry_mark(spark, name) == mark
        if is_own:
            unregister(spark, name)
        log.store.delete_directory(LOG_DIRECTORY)
        parent, _, directory = log.root_uri.rpartition("/")
        log.store.at(f"{parent}/").delete_directory(directory)
    except Exception:
        logger.warning("The catalog entry of %s could not be removed", name, exc_info=True)


def create_registered(spark: SparkSession, table: NewTable) -> None:
    """Create a table under a name; errors as `define_registered`."""
    define_registered(spark, table, mode=CreateMode.CREATE)


def define_registered(spark: SparkSession, table: NewTable, *, mode: CreateMode) -> str | None:
    """Create or replace a table under a name; return its location.

    If the location holds a table, that table gets the name; stated columns must then equal
    its columns. Returns None where CREATE IF NOT EXISTS finds the name taken by another
    format.

    Raises:
        InvalidRequestError: the name is taken (TABLE_OR_VIEW_ALREADY_EXISTS) or another
            table's (NOT_A_DELTA_TABLE, TABLE_LOCATION_MISMATCH), the definition is invalid, or
            the location holds something else.
        TableNotFoundError: there is no table of the name to replace, or no such database.
        CatalogError: the table at the location is written, and the catalog refuses its entry.
    """
    if not is_in_session_catalog(table.name):
        return define_in_catalog(spark, table, mode=mode)
    if is_taken(spark, table.name):
        if mode is CreateMode.CREATE_IF_NOT_EXISTS:
            known = find_table(spark, table.name.parts)
            return None if known is None else known.location
        if mode is CreateMode.CREATE:
            raise already_exists(str(table.name))
        return _replace(spark, table, mode)
    if mode is CreateMode.REPLACE:
        raise nothing_to_replace(str(table.name))
    require_possible(spark, table.name)
    if table.location is not None:
        return _create_at(spark, table, table.location, mode)
    return _create_managed(spark, table, mode)


def _create_managed(spark: SparkSession, table: NewTable, mode: CreateMode) -> str:
    schema, comment = _declared(table), table.definition.description
    with managed_entry(spark, table.name, schema, comment=comment) as log:
        define_table_at(spark, log, table, mode, _entry(table, is_known=False, is_managed=True))
    return log.root_uri


def _create_at(spark: SparkSession, table: NewTable, location: str, mode: CreateMode) -> str:
    log = open_log(spark, stated_location(spark, table.name, location))
    entry = _entry(table, is_known=False, is_managed=False)
    is_new, wrote = False, True
    if table.rows is not None or not log.exists():
        define_table_at(spark, log, table, mode, entry)
        is_new = mode is CreateMode.CREATE
    elif table.definition.columns.fields or mode is CreateMode.CREATE_OR_REPLACE:
        define_table_at(spark, log, table, CreateMode.CREATE_OR_REPLACE, entry)
    else:
        wrote = False
    # The commit of a new table has succeeded: an unreadable log must not prevent its entry.
    schema = _declared(table) if is_new else to_spark(log.snapshot().config.schema)
    comment = table.definition.description
    make = register_written if wrote else register
    make(spark, table.name, schema, location=log.root_uri, comment=comment)
    return log.root_uri


def _replace(spark: SparkSession, table: NewTable, mode: CreateMode) -> str:
    known = require_replaceable(spark, table.name)
    log = open_log(spark, known.location)
    wanted = table.location
    stated = None if wanted is None else stated_location(spark, table.name, wanted)
    require_same_location(table, log, known=known.location, stated=stated)
    entry = _entry(table, is_known=True, is_managed=known.is_managed)
    define_table_at(spark, log, table, mode, entry)
    follow_columns(spark, table.name, to_spark(log.snapshot().config.schema))
    return log.root_uri


def require_replaceable(spark: SparkSession, name: EntryName) -> CatalogTable:
    """Return the Delta table of a name that is taken.

    Raises:
        InvalidRequestError: it is no Delta table (NOT_A_DELTA_TABLE).
    """
    known = find_table(spark, name.parts)
    if known is None:
        raise InvalidRequestError(Message.NOT_A_DELTA_TABLE, name=str(name))
    return known


def _declared(table: NewTable) -> StructType:
    """Return the columns of a new table."""
    return to_spark(table.definition.columns) if table.rows is None else table.rows.schema


def _entry(table: NewTable, *, is_known: bool, is_managed: bool) -> Entry:
    return Entry(name=str(table.name), is_known=is_known, is_managed=is_managed)


_KEPT_FEATURES = frozenset({"catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"})
_KEPT_PROPERTIES = (TABLE_ID, *DEMANDED, "delta.columnMapping.mode", "delta.enableRowTracking")
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
    location = table.location or chosen_location(spark, name)
    if location is not None:
        return _create_external(spark, replace(table, location=location), name, mode)
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
    """Return the definition with the required and suggested properties of the catalog."""
    _require_demanded(definition, staged.required_properties)
    names = dict.fromkeys((*staged.required_features, *staged.suggested_features))
    features = {f"{FEATURE_PREFIX}{name}": "supported" for name in names}
    properties = {
        **features,
        **staged.suggested_properties,
        **definition.properties,
        **staged.required_properties,
    }
    return replace(definition, properties=properties)


def _require_demanded(definition: TableDefinition, demands: Mapping[str, str]) -> None:
    given = {key.lower(): text for key, text in definition.properties.items()}
    status = given.get(MANAGED_FEATURE.lower(), "supported")
    if status.lower() != "supported":
        name = MANAGED_FEATURE.rpartition(".")[2]
        raise InvalidRequestError(Message.UNSUPPORTED_FEATURE_STATUS, feature=name, status=status)
    for key, text in demands.items():
        stated = given.get(key.lower())
        if stated is not None and stated.lower() != text.lower():
            raise InvalidRequestError(
                Message.INVALID_TABLE_PROPERTY_DEMANDED, demanded=text, key=key, value=stated
            )


def _kept(table: NewTable, known: CatalogPlace) -> NewTable:
    """Return the replacement with the properties that tie the table to its catalog."""
    if known.log.managed is None:
        return table
    snapshot = known.log.snapshot()
    _require_demanded(table.definition, _fixed(snapshot))
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
    """Return the demands of the catalog that the table fulfils."""
    kept = snapshot.metadata.configuration
    fixed = {key: text for key, text in DEMANDED.items() if kept.get(key, "").lower() == text}
    return {**fixed, **({TABLE_ID: kept[TABLE_ID]} if TABLE_ID in kept else {})}


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
        raise UnsupportedError(Message.UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION_LOCATION)
    entry = Entry(name=str(table.name), is_known=is_known, is_managed=is_managed)
    define_table_at(spark, log, table, mode, entry)


def _asks_for_catalog(table: NewTable) -> bool:
    return f"{FEATURE_PREFIX}catalogManaged" in table.definition.properties
