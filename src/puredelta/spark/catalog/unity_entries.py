"""Names of tables to be made: in the session catalog, or in a Unity catalog of the session."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.catalogs.catalog import (
    LoadedTable,
    TableCreation,
    TableIdentifier,
    TableKind,
    address_of,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.errors import CatalogError, Message, TableNotFoundError, UnsupportedError
from puredelta.log.managed.managed_store import NewManagedTable
from puredelta.log.managed.table_update import table_update
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import encode_uri
from puredelta.spark.catalog.catalog_entries import EntryName, entry_name, is_taken
from puredelta.spark.jvm.catalog import SESSION_CATALOG, CatalogTable
from puredelta.spark.session.catalogs import (
    describe_table,
    drop_catalog_table,
    find_identifier,
    find_loaded,
    open_external_log,
    open_new_log,
    require_catalog,
    session_catalog,
)
from puredelta.spark.session.names import display_name, is_delta, quote
from puredelta.spark.session.storage import as_spark_means, open_log, session_storage


def creation_name(spark: SparkSession, parts: tuple[str, ...]) -> EntryName | None:
    """Return where a table of a name is made; None for a catalog that this library cannot reach.

    Raises:
        UnsupportedError: see `puredelta.spark.catalog.catalog_entries.entry_name`.
    """
    identifier = find_identifier(spark, parts)
    if identifier is None:
        return entry_name(spark, parts)
    catalog, schema, table = identifier.parts
    return EntryName(database=schema, name=table, catalog=catalog)


def is_made_as_delta(spark: SparkSession, parts: tuple[str, ...], *formats: str | None) -> bool:
    """Return whether a new table of a name is a Delta table, by the format that is named first.

    Without a format it is one in a catalog of this library, whatever the session's default is.

    Raises:
        UnsupportedError: another format is named for a table of such a catalog.
    """
    stated = next((name for name in formats if name is not None), None)
    if is_delta(spark, stated) or find_identifier(spark, parts) is None:
        return is_delta(spark, stated)
    if stated is None:
        return True
    raise UnsupportedError(
        Message.OPERATION_NOT_ALLOWED_OTHER_FORMAT, name=display_name(parts), format=stated
    )


_READ_BY_SPARK = frozenset({"avro", "csv", "json", "orc", "parquet", "text"})


def other_format_rows(spark: SparkSession, name: TableIdentifier) -> DataFrame:
    """Return the rows of a table of another format, which Spark reads without keys of the catalog.

    Raises:
        UnsupportedError: the table is a view, or of a format that Spark does not read from files.
    """
    table = describe_table(spark, name)
    if table.format not in _READ_BY_SPARK or table.location is None:
        raise UnsupportedError(
            Message.OPERATION_NOT_ALLOWED_READ_IN_CATALOG,
            name=str(name),
            format=table.format or table.kind,
            formats=", ".join(sorted(_READ_BY_SPARK)),
        )
    reader = spark.read.format(table.format)
    if table.columns:
        reader = reader.schema(", ".join(f"{quote(name)} {kind}" for name, kind in table.columns))
    return reader.load(table.location)


def register_converted(spark: SparkSession, name: TableIdentifier, log: TableLog) -> None:
    """Let the entry of an external Parquet table become one of the Delta table that is there now.

    No catalog changes the format of an entry, so it is made again.

    Raises:
        CatalogError: the catalog refuses; the table at the location is converted.
    """
    drop_catalog_table(spark, name, if_exists=True)
    register_external(spark, name, log)


def is_in_session_catalog(name: EntryName) -> bool:
    """Return whether a name belongs to the session catalog."""
    return name.catalog == SESSION_CATALOG


def is_name_taken(spark: SparkSession, name: EntryName) -> bool:
    """Return whether there is a table or a view of the name, in whatever catalog."""
    if is_in_session_catalog(name):
        return is_taken(spark, name)
    try:
        return find_loaded(spark, identifier_of(name)) is not None
    except CatalogRequestError as failure:
        if failure.refusal is Refusal.OTHER_FORMAT:
            return True
        raise


def identifier_of(name: EntryName) -> TableIdentifier:
    """Return the name of a table of another catalog."""
    return TableIdentifier(name.catalog, name.database, name.name)


def shown_table(table: LoadedTable) -> CatalogTable:
    """Return a table of another catalog as statements show it."""
    return CatalogTable(
        catalog=table.name.catalog,
        database=table.name.schema,
        name=table.name.table,
        location=table.location,
        is_managed=table.kind is TableKind.MANAGED,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPlace:
    """The log of a table of a catalog, opened or to be created."""

    log: TableLog
    new: NewManagedTable | None = None
    known: LoadedTable | None = None


def existing_place(spark: SparkSession, name: TableIdentifier) -> CatalogPlace | None:
    """Return the place of a table that the catalog has, None if there is none."""
    known = find_loaded(spark, name)
    if known is None:
        return None
    return CatalogPlace(log=open_log(spark, address_of(name)), known=known)


def chosen_location(spark: SparkSession, name: TableIdentifier) -> str | None:
    """Return the location of a new table that names none; None for a managed one."""
    return require_catalog(spark, name.catalog).default_location(name)


def managed_place(spark: SparkSession, name: TableIdentifier) -> CatalogPlace:
    """Return the place that the catalog chooses for a new table.

    Raises:
        TableNotFoundError: there is no such schema (SCHEMA_NOT_FOUND).
    """
    configured = session_catalog(spark, name.catalog)
    assert configured is not None  # noqa: S101 - `creation_name` has found it
    try:
        staged = configured.catalog.stage(name)
    except CatalogRequestError as failure:
        if failure.refusal is not Refusal.NOT_FOUND:
            raise
        raise TableNotFoundError(
            Message.SCHEMA_NOT_FOUND, catalog=name.catalog, schema=name.schema
        ) from failure
    new = NewManagedTable(name=name, staged=staged)
    return CatalogPlace(log=open_new_log(spark, new, session_storage(spark)), new=new)


def external_place(spark: SparkSession, name: TableIdentifier, location: str) -> CatalogPlace:
    """Return the place of a new table whose location the user states."""
    text = as_spark_means(spark, location)
    return CatalogPlace(log=open_external_log(spark, name, text, session_storage(spark)))


def register_external(spark: SparkSession, name: TableIdentifier, log: TableLog) -> None:
    """Make a table known to the catalog that is at a location of its own.

    Raises:
        CatalogError: the catalog refuses; the table exists.
    """
    configured = session_catalog(spark, name.catalog)
    assert configured is not None  # noqa: S101 - `creation_name` has found it
    snapshot = log.snapshot()
    creation = TableCreation(
        name=name,
        kind=TableKind.EXTERNAL,
        location=encode_uri(log.root_uri),
        definition=table_update(None, snapshot.config, tuple(snapshot.domain_metadata.values())),
        timestamp_ms=snapshot.timestamp_ms,
    )
    try:
        configured.catalog.create(creation)
    except CatalogRequestError as refused:
        raise CatalogError(
            Message.CATALOG_ENTRY_NOT_UPDATED_UNITY,
            refused=refused.message,
            name=str(name),
            path=log.root_uri,
        ) from refused
