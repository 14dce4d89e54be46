"""Tables with a name in the session catalog: the table itself first, its entry with it.

A table with a location of its own is made before it gets its name. One without belongs to
Spark, which wants its directory empty: the name comes first, and goes again if the table
cannot be made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.run import CreateMode, create_table
from puredelta.commands.write import write_table
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.table_log import TableLog
from puredelta.spark.catalog_entries import (
    EntryName,
    default_location,
    is_taken,
    register,
    unregister,
)
from puredelta.spark.types import to_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table that is to have a name."""

    name: EntryName
    location: str | None
    """None: where the session keeps tables of the database."""
    definition: TableDefinition
    rows: DataFrame | None = None
    """Its first rows, which give it its columns, too."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Of the write of ``rows``."""


def create_registered(spark: SparkSession, table: NewTable) -> None:
    """Create a table under a name.

    A location that holds a table gives it a name; columns that are stated, too, must then be
    that table's.

    Raises:
        InvalidRequestError: the name is taken (TABLE_OR_VIEW_ALREADY_EXISTS), the definition
            cannot be a table's, the location holds something else.
        pyspark.errors.AnalysisException: there is no such database.
    """
    require_free(spark, table.name)
    if table.location is not None:
        log = TableLog.open(table.location)
        _create(spark, log, table)
        _register(spark, log, table)
        return
    log = TableLog.open(default_location(spark, table.name))
    rows, stated = table.rows, table.definition.columns
    schema = to_spark(stated) if rows is None else rows.schema
    register(spark, table.name, schema, location=None, comment=table.definition.description)
    try:
        _create(spark, log, table)
    except BaseException:
        unregister(spark, table.name)
        raise


def require_free(spark: SparkSession, name: EntryName) -> None:
    """Refuse a name that is taken.

    Raises:
        InvalidRequestError: there is a table or view of the name.
    """
    if is_taken(spark, name):
        raise InvalidRequestError(
            f"Cannot create table or view {name} because it already exists. Choose a different "
            "name, drop or replace the existing object, or add the IF NOT EXISTS clause to "
            "tolerate pre-existing objects.",
            code=ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS,
            name=str(name),
        )


def _create(spark: SparkSession, log: TableLog, table: NewTable) -> None:
    definition = table.definition
    if table.rows is None:
        if log.exists():
            if definition.columns.fields:
                create_table(spark, log, definition, mode=CreateMode.CREATE_OR_REPLACE)
            return
        create_table(spark, log, definition, mode=CreateMode.CREATE)
        return
    if definition.clustering_columns:
        raise UnsupportedError(
            "CLUSTER BY with a query is not supported: create the table first, then insert.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )
    write_table(
        table.rows,
        log,
        partition_by=definition.partition_columns,
        options=table.options,
        properties=definition.properties,
        description=definition.description,
    )


def _register(spark: SparkSession, log: TableLog, table: NewTable) -> None:
    schema = to_spark(log.snapshot().config.schema)
    comment = table.definition.description
    register(spark, table.name, schema, location=log.root_uri, comment=comment)
