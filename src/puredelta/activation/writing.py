"""``df.write`` and ``spark.catalog.createTable`` as writes of puredelta."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.activation.captured_options import (
    CapturedOptions,
    clustered_otherwise,
    clustering_paths,
    is_clustered_otherwise,
    require_path,
)
from puredelta.commands.create.as_select import FirstRows, NewTable, create_table_as
from puredelta.commands.create.create_table import CreateMode, already_exists
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import create_registered, define_registered
from puredelta.commands.defined_columns import stored_columns
from puredelta.commands.write.insert import InsertRequest, insert_rows
from puredelta.commands.write.options import SaveMode, WriteOptions, effective_options
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import SAVED_OVER, Operation, overwrite_as_table
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.catalog_entries import find_table
from puredelta.spark.catalog.unity_entries import creation_name, is_made_as_delta, is_name_taken
from puredelta.spark.session.catalogs import find_identifier
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.spark.session.types import to_spark
from puredelta.spark.values.inserted_rows import stored_by_name
from puredelta.statements.execute.views import find_insert_location
from puredelta.statements.names.names import existing_location
from puredelta.statements.parse.table_name import TableName

_PROPERTY_PREFIX = "delta."


def save(rows: DataFrame, captured: CapturedOptions, path: Any) -> None:
    """Write the rows according to the options of the writer.

    Raises:
        InvalidRequestError: no path, an unknown mode, or an error of `write_table`.
        UnsupportedError: an option or a layout that is not implemented.
    """
    given = file_system_options(captured.options or {})
    log = open_log(rows.sparkSession, require_path(captured, path), storage_options=given)
    if not _wrote_clustered(rows, captured, log):
        _write(rows, captured, log, needs_partitions=True)


def save_as_table(
    rows: DataFrame, captured: CapturedOptions, name: TableName, *, is_delta: bool
) -> bool:
    """Write the rows into a table of the session catalog, which is created if it does not exist.

    ``is_delta`` tells whether the writer's format is Delta. Returns False if the table is of
    another format. Columns are matched by name.

    Raises:
        InvalidRequestError: the table exists and the mode is ``error``, or as `save`.
    """
    spark = rows.sparkSession
    mode = _mode(captured)
    location = existing_location(spark, name)
    appends = captured.format is None and mode is SaveMode.APPEND
    is_default = captured.format is None and find_identifier(spark, name.parts) is not None
    takes_rows = is_delta or is_default or (appends and name.path is None)
    if location is not None and takes_rows:
        log = open_log(spark, location)
        if name.path is None or log.exists():
            _write_known(rows, captured.without_option("path"), log, name)
        else:
            first = FirstRows(rows=rows, options=write_options(captured))
            create_table_as(first, log, _definition(captured), mode=_how(mode))
        return True
    is_made = name.path is None and is_made_as_delta(spark, name.parts, captured.format)
    entry = creation_name(spark, name.parts) if is_delta or is_made else None
    if entry is None:
        return False
    if is_name_taken(spark, entry):
        stored_name = TableName((entry.database, entry.name))
        if len(name.parts) > 1 or existing_location(spark, stored_name) is None:
            return False
        # A temporary view has the name, too, and nothing is saved into one.
        return save_as_table(rows, captured, stored_name, is_delta=is_delta)
    table = NewTable(
        name=entry,
        location=captured.option("path"),
        definition=_definition(captured),
        rows=rows,
        options=write_options(captured),
        recorded=SAVED_OVER if mode is SaveMode.OVERWRITE else {},
    )
    define_registered(spark, table, mode=_how(mode))
    return True


def _write_known(
    rows: DataFrame, captured: CapturedOptions, log: TableLog, name: TableName
) -> None:
    """Write into an existing table of the name; a full overwrite is a new definition."""
    mode = _mode(captured)
    if mode is SaveMode.ERROR:
        raise already_exists(str(name))
    options = WriteOptions.of(rows.sparkSession, write_options(captured))
    replaces = mode is SaveMode.OVERWRITE and not options.replaces_rows
    read = None if replaces else log.find_snapshot()
    if mode is SaveMode.APPEND and read is not None:
        rows = stored_by_name(rows, to_spark(read.config.schema))
    found = find_table(rows.sparkSession, name.parts)
    is_managed = found is not None and found.is_managed

    def operation(config: TableConfig) -> Operation:
        partitioned = bool(config.partition_columns)
        return overwrite_as_table(
            partition_by=config.partition_columns,
            description=config.metadata.description,
            properties=config.metadata.configuration,
            is_managed=is_managed,
            overwrites_schema=options.change.overwrite,
            overwrites_partitions=options.replaces_partitions and partitioned,
        )

    if _wrote_clustered(rows, captured, log, replaces=replaces):
        return
    if read is not None:
        captured = _unpartitioned(captured, read.config.partition_columns)
    _write(
        rows,
        captured,
        log,
        record=operation if replaces else None,
        needs_partitions=mode is not SaveMode.APPEND,
    )


def _unpartitioned(captured: CapturedOptions, known: Sequence[str]) -> CapturedOptions:
    """Drop partition columns that equal the table's: the history leaves them out."""
    same = [c.lower() for c in captured.partition_by] == [c.lower() for c in known]
    return captured.with_partitions(()) if same else captured


def _write(
    rows: DataFrame,
    captured: CapturedOptions,
    log: TableLog,
    *,
    record: Callable[[TableConfig], Operation] | None = None,
    needs_partitions: bool,
) -> None:
    request = WriteRequest(
        mode=_mode(captured),
        partition_by=captured.partition_by,
        options=write_options(captured),
        record=record,
        needs_partitions=needs_partitions,
    )
    write_table(rows, log, request)


def _mode(captured: CapturedOptions) -> SaveMode:
    return SaveMode.parse(captured.mode or SaveMode.ERROR.value)


def _how(mode: SaveMode) -> CreateMode:
    """Return the create mode for a writer's mode and a name without a table."""
    return CreateMode.CREATE_OR_REPLACE if mode is SaveMode.OVERWRITE else CreateMode.CREATE


def _definition(captured: CapturedOptions) -> TableDefinition:
    return TableDefinition(
        columns=StructType(()),
        partition_columns=captured.partition_by,
        clustering_columns=clustering_paths(captured) or None,
    )


def _wrote_clustered(
    rows: DataFrame, captured: CapturedOptions, log: TableLog, *, replaces: bool = False
) -> bool:
    """Create or replace a table with the clustering columns of the writer.

    Returns False if the writer has none, or the table has the same. ``replaces`` allows the
    replacement of an existing table; so does the option ``overwriteSchema``.

    Raises:
        InvalidRequestError: the table exists with other clustering columns.
    """
    if not captured.cluster_by:
        return False
    options, mode = write_options(captured), _mode(captured)
    if not is_clustered_otherwise(log, captured):
        return False
    if log.exists() and mode in (SaveMode.ERROR, SaveMode.IGNORE):
        return False
    chosen = WriteOptions.of(rows.sparkSession, options)
    overwrites = mode is SaveMode.OVERWRITE and not chosen.replaces_rows
    if log.exists() and not (overwrites and (replaces or chosen.change.overwrite)):
        raise clustered_otherwise(log, captured)
    first = FirstRows(rows=rows, options=options)
    how = CreateMode.CREATE_OR_REPLACE if log.exists() else CreateMode.CREATE
    create_table_as(first, log, _definition(captured), mode=how)
    return True


def insert_into(
    rows: DataFrame, captured: CapturedOptions, name: TableName, *, overwrite: bool
) -> bool:
    """Insert the rows by position; False if the table is no Delta table.

    Raises:
        pyspark.errors.AnalysisException: the values do not fit.
        UnsupportedError: an option or a layout that is not implemented.
    """
    location = find_insert_location(rows.sparkSession, name)
    if location is None:
        return False
    request = InsertRequest(overwrite=overwrite, options=write_options(captured))
    insert_rows(rows, open_log(rows.sparkSession, location), request)
    return True


def stored(rows: DataFrame, log: TableLog) -> DataFrame:
    """Return the rows for a write by name, with values cast to the types of the table's columns."""
    return stored_by_name(rows, to_spark(log.snapshot().config.schema))


def write_options(captured: CapturedOptions) -> dict[str, str]:
    """Return the options that have an effect; for others, which have none in delta-spark either,
    warn once.

    Raises:
        UnsupportedError: one that is not implemented and must not be ignored, or
            ``bucketBy`` or ``sortBy``.
    """
    if captured.layout is not None:
        raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_LAYOUT, layout=captured.layout)
    return effective_options(captured.options or {})


_PATH = "path"


def create_named(
    spark: SparkSession,
    name: TableName,
    schema: T.StructType | None,
    *,
    description: str | None,
    options: Mapping[str, str],
) -> bool:
    """Create a table, or name the table at the option ``path``; False if it is no Delta table.

    Raises:
        InvalidRequestError: the name is taken, neither columns nor an existing table are given, or
            the columns are not those of the existing table.
    """
    entry = None if name.path is not None else creation_name(spark, name.parts)
    if entry is None:
        return False
    by_name = {key.lower(): value for key, value in options.items()}
    if schema is None and _PATH not in by_name:
        raise InvalidRequestError(Message.SCHEMA_NOT_PROVIDED_NAME, name_shown=name, name=str(name))
    definition = TableDefinition(
        columns=stored_columns(schema or T.StructType([])),
        description=description or None,
        properties={k: v for k, v in options.items() if k.lower().startswith(_PROPERTY_PREFIX)},
    )
    table = NewTable(name=entry, location=by_name.get(_PATH), definition=definition)
    create_registered(spark, table)
    return True
