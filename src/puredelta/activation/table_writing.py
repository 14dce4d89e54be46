"""``df.writeTo(name)``: the options of a table writer as one command of this package.

``append``, ``overwrite`` and ``overwritePartitions`` run here if the table is a Delta table;
``create``, ``replace`` and ``createOrReplace`` if the format is Delta. Columns are matched by
name, and values are cast to the types of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from puredelta.activation.captured_options import CapturedOptions, TableOptions
from puredelta.activation.writing import stored, write_options
from puredelta.commands.create.as_select import FirstRows, NewTable, create_table_as
from puredelta.commands.create.create_table import CreateMode
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import define_registered
from puredelta.commands.write.options import SaveMode, WriteOptions
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import StructType
from puredelta.spark.catalog.unity_entries import creation_name
from puredelta.spark.resolve.sql_text import column_name, sql_text
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.names import parse_name
from puredelta.spark.session.storage import open_log
from puredelta.statements.execute.tables import require_one_location
from puredelta.statements.names.names import find_location, require_table
from puredelta.statements.parse.table_name import TableName

# The property with which Spark gives the location of a table.
_LOCATION = "location"
_EVERY_ROW = "true"
_REPLACE_WHERE = "replaceWhere"
_REPLACEMENTS = frozenset({CreateMode.REPLACE, CreateMode.CREATE_OR_REPLACE})


def append(captured: CapturedOptions, table: TableOptions, name: TableName) -> bool:
    """Add the rows to the table; False if it is no Delta table.

    Raises:
        TableNotFoundError: there is no table at the path.
        InvalidRequestError: as `puredelta.commands.write.write_table`.
    """
    return _write(captured, table, name, SaveMode.APPEND, {})


def overwrite(
    captured: CapturedOptions, table: TableOptions, name: TableName, condition: str | Column
) -> bool:
    """Replace the rows for which the condition is true; False if the table is no Delta table.

    Raises:
        UnsupportedError: over Connect, where a Column does not show its expression.
        pyspark.errors.AnalysisException: the condition names columns that the table lacks.
        InvalidRequestError: the option ``replaceWhere`` is set, too (REPLACE_WHERE_IN_OVERWRITE).
    """
    log = _find_log(table, name)
    if log is None:
        return False
    spark = table.rows.sparkSession
    if captured.option(_REPLACE_WHERE) is not None:
        raise InvalidRequestError(Message.REPLACE_WHERE_IN_OVERWRITE)
    column = F.col(condition) if isinstance(condition, str) else condition
    where = sql_text(column, table_identity(spark, log.snapshot().config.schema))
    partial = {} if where.strip("()").lower() == _EVERY_ROW else {_REPLACE_WHERE: where}
    return _write(
        captured, table, name, SaveMode.OVERWRITE, {"partitionOverwriteMode": "static", **partial}
    )


def overwrite_partitions(captured: CapturedOptions, table: TableOptions, name: TableName) -> bool:
    """Replace every partition of the rows; False if the table is no Delta table."""
    dynamic = {"partitionOverwriteMode": "dynamic"}
    return _write(captured, table, name, SaveMode.OVERWRITE, dynamic, needs_partitions=True)


def define(
    captured: CapturedOptions, table: TableOptions, name: TableName, *, mode: CreateMode
) -> bool:
    """Create or replace the table with the rows; False if it is in another catalog.

    The writer's format is Delta.

    Raises:
        InvalidRequestError: the table exists, the definition is invalid, or a partition
            is no plain column.
        TableNotFoundError: there is nothing to replace.
        UnsupportedError: ``replaceWhere`` is set for a replacement.
    """
    if mode in _REPLACEMENTS and captured.option(_REPLACE_WHERE) is not None:
        raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_REPLACE_WHERE, option=_REPLACE_WHERE)
    spark = table.rows.sparkSession
    options = write_options(captured)
    if WriteOptions.of(spark, options).replace_by is not None:
        raise InvalidRequestError(Message.DEFINITION_WITH_REPLACE_BY)
    if name.path is not None:
        require_one_location(spark, name.path, table.properties.get(_LOCATION))
        definition = _definition(spark, table)
        log = open_log(spark, name.path)
        first = FirstRows(rows=table.rows, options=options)
        create_table_as(first, log, definition, mode=mode)
        return True
    entry = creation_name(spark, name.parts)
    if entry is None:
        return False
    made = NewTable(
        name=entry,
        location=captured.option("path") or table.properties.get(_LOCATION),
        definition=_definition(spark, table),
        rows=table.rows,
        options=options,
    )
    define_registered(spark, made, mode=mode)
    return True


def _write(
    captured: CapturedOptions,
    table: TableOptions,
    name: TableName,
    mode: SaveMode,
    extra: Mapping[str, str],
    *,
    needs_partitions: bool = False,
) -> bool:
    log = _find_log(table, name)
    if log is None:
        return False
    request = WriteRequest(
        mode=mode,
        options=write_options(captured.with_options(extra)),
        needs_partitions=needs_partitions,
    )
    write_table(stored(table.rows, log), log, request)
    return True


def _find_log(table: TableOptions, name: TableName) -> TableLog | None:
    """Return the table's log, None if the name is not that of a Delta table; a path must be one."""
    location = find_location(table.rows.sparkSession, name)
    return None if location is None else require_table(table.rows.sparkSession, location, name)


def _definition(spark: SparkSession, table: TableOptions) -> TableDefinition:
    clustered = table.cluster_by
    return TableDefinition(
        columns=StructType(()),
        partition_columns=_plain_names(spark, table.partition_by),
        clustering_columns=None if clustered is None else tuple(map(parse_name, clustered)),
        properties=table.properties,
    )


def _plain_names(spark: SparkSession, columns: Sequence[str | Column]) -> tuple[str, ...]:
    names: list[str] = []
    for column in columns:
        name = column_name(spark, F.col(column) if isinstance(column, str) else column)
        if name is None:
            raise InvalidRequestError(
                Message.OPERATION_NOT_ALLOWED_PARTITION_EXPRESSION, column=str(column)
            )
        names.append(name)
    return tuple(names)
