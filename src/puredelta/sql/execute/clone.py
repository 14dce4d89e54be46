"""Tables made after other tables: ``SHALLOW CLONE`` and ``LIKE``."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.clone.clone_table import CloneRequest, clone_row, clone_table
from puredelta.commands.clone.registered import clone_registered, nothing_to_replace
from puredelta.commands.create.create_table import CreateMode, create_table
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.like import definition_like
from puredelta.commands.create.registered import NewTable, define_registered
from puredelta.commands.definition.columns import stored_columns
from puredelta.commands.read.read_table import find_snapshot
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError, UnsupportedError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.spark.catalog.catalog_entries import entry_name
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.formats import FORMAT
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.small_frames import no_rows
from puredelta.spark.session.types import struct_as_nullable, without_table_metadata
from puredelta.sql.execute.tables import not_on_connect
from puredelta.sql.parse.statement import CloneStatement, LikeStatement
from puredelta.sql.relations.names import (
    find_catalog_name,
    find_location,
    find_log,
    find_other_format,
    require_table,
    resolve_name,
)
from puredelta.sql.text.table_name import TableName
from puredelta.sql.text.time_travel import TimeTravel

_CONVERTED = frozenset({"parquet", "iceberg"})
"""Formats of tables that `CONVERT TO DELTA` takes."""


def clone(spark: SparkSession, statement: CloneStatement) -> DataFrame:
    """Execute ``SHALLOW CLONE`` and return its counts.

    Raises:
        TableNotFoundError: there is no Delta table to clone, or none to replace.
        InvalidRequestError: the target exists.
        UnsupportedError: the clone is a deep one, or its source is of another format.
    """
    name = resolve_name(spark, statement.source)
    source = _source(spark, name, statement.state)
    target = resolve_name(spark, statement.target)
    request = CloneRequest(
        shallow=statement.shallow,
        replace=statement.replaces,
        properties=statement.properties,
        source_name=find_catalog_name(spark, name),
    )
    mode = CreateMode.of(
        creates=statement.creates,
        replaces=statement.replaces,
        if_not_exists=statement.if_not_exists,
    )
    if target.path is None:
        entry = None if is_connect(spark) else entry_name(spark, target.parts)
        if entry is None:
            raise not_on_connect("CLONE into a table of a catalog")
        location = statement.location
        done = clone_registered(spark, source, entry, request, mode=mode, location=location)
    else:
        done = _clone_to_path(spark, source, target.path, statement, request)
    return clone_row(spark, source if done else None)


def _clone_to_path(
    spark: SparkSession,
    source: Snapshot,
    path: str,
    statement: CloneStatement,
    request: CloneRequest,
) -> bool:
    log = open_log(spark, path)
    location = statement.location
    if location is not None and not log.is_at(location):
        raise InvalidRequestError(
            "Two paths were provided as the CLONE target so it is ambiguous which to use. An "
            f"external location for CLONE was provided at {location} at the same time as the path "
            f"{path}.",
            code=ErrorCode.CLONE_AMBIGUOUS_TARGET,
            location=location,
            path=path,
        )
    exists = log.exists()
    if exists and statement.if_not_exists:
        return False
    if not exists and not statement.creates:
        raise nothing_to_replace(f"delta.`{path}`")
    clone_table(spark, source, log, request)
    return True


def _source(spark: SparkSession, name: TableName, state: TimeTravel | None) -> Snapshot:
    try:
        log = find_log(spark, name)
    except TableNotFoundError as missing:
        if (provider := find_other_format(spark, name)) is None:
            raise
        raise _unsupported_source(name, provider) from missing
    if state is None:
        return log.snapshot()
    return find_snapshot(spark, log.root_uri, version=state.version, timestamp=state.timestamp)


def _unsupported_source(name: TableName, provider: str) -> UnsupportedError:
    converts = provider in _CONVERTED
    way_out = f", or make it a Delta table where it is: CONVERT TO DELTA {name}" if converts else ""
    return UnsupportedError(
        f"Unsupported clone source {name}, whose format is {provider}: only Delta tables are "
        f"cloned. Write its rows to a new table{way_out}.",
        code=ErrorCode.CLONE_UNSUPPORTED_SOURCE,
        name=str(name),
        format=provider,
    )


def create_like(spark: SparkSession, statement: LikeStatement, *, text: str) -> DataFrame | None:
    """Execute ``LIKE`` where the new table is a Delta table; None otherwise.

    Raises:
        pyspark.errors.ParseException: the text is wrong; says where.
        TableNotFoundError: there is no Delta table at the source's path.
        InvalidRequestError: the target exists, or the definition is no table's.
    """
    if statement.provider is not None and statement.provider.lower() != FORMAT:
        return None
    name = resolve_name(spark, statement.source)
    location = find_location(spark, name)
    if location is None and statement.provider is None:
        return None
    require_parsable(spark, text)
    if location is not None:
        source = require_table(spark, location, name).snapshot()
        definition = definition_like(source, statement.properties)
    else:
        definition = _definition_of(spark, name, statement.properties)
    target = resolve_name(spark, statement.target)
    exists = CreateMode.CREATE_IF_NOT_EXISTS if statement.if_not_exists else CreateMode.CREATE
    if target.path is not None:
        create_table(spark, open_log(spark, target.path), definition, mode=exists)
        return no_rows(spark)
    entry = None if is_connect(spark) else entry_name(spark, target.parts)
    if entry is None:
        raise not_on_connect("CREATE TABLE ... LIKE")
    table = NewTable(name=entry, location=statement.location, definition=definition)
    define_registered(spark, table, mode=exists)
    return no_rows(spark)


def _definition_of(
    spark: SparkSession, name: TableName, properties: Mapping[str, str]
) -> TableDefinition:
    """Return the definition of a table of another format: columns and partitioning."""
    quoted = quote_name(name.parts)
    columns = stored_columns(without_table_metadata(struct_as_nullable(spark.table(quoted).schema)))
    listed = spark.catalog.listColumns(quoted)
    return TableDefinition(
        columns=columns,
        partition_columns=tuple(column.name for column in listed if column.isPartition),
        properties=properties,
    )
