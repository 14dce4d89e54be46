"""SHOW and DESCRIBE of a Delta table, read from its log."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.read.described_table import (
    DescribedTable,
    column_rows,
    describe_column,
    describe_rows,
    partition_value_rows,
    property_rows,
)
from puredelta.commands.read.detail import detail_rows, other_detail_rows
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.catalog.catalog_tables import find_table
from puredelta.sql.parse.statement import (
    DescribeDetail,
    DescribeTable,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    ShowStatement,
)
from puredelta.sql.relations.names import (
    find_catalog_name,
    find_location,
    find_other_table,
    open_table,
    require_table,
    resolve_name,
)
from puredelta.sql.text.table_name import QuotedPath, TableName


def describe_detail(spark: SparkSession, statement: DescribeDetail) -> DataFrame:
    """Execute ``DESCRIBE DETAIL``."""
    table, name = statement.table, None
    if not isinstance(table, QuotedPath):
        table = resolve_name(spark, table)
        name = find_catalog_name(spark, table)
        other = None if name is not None else find_other_table(spark, table)
        if other is not None:
            return other_detail_rows(spark, other)
    return detail_rows(spark, open_table(spark, table).snapshot(), catalog_name=name)


def show(spark: SparkSession, statement: ShowStatement) -> DataFrame | None:
    """Execute a statement that shows a Delta table; None for any other table.

    Raises:
        TableNotFoundError: there is no Delta table at a path.
        InvalidRequestError: there is no such column, or there are no partitions.
        UnsupportedError: ``SHOW CREATE TABLE``, as in delta-spark.
    """
    name = resolve_name(spark, statement.table)
    if isinstance(statement, ShowColumns) and statement.database:
        name = TableName((*statement.database, name.parts[-1]))
    location = find_location(spark, name)
    if location is None:
        return None
    known = None if name.path is not None else find_table(spark, name.parts)
    snapshot = require_table(spark, location, name).snapshot()
    described = DescribedTable(snapshot=snapshot, location=location, known=known)
    return _rows(spark, statement, described)


def _rows(spark: SparkSession, statement: ShowStatement, table: DescribedTable) -> DataFrame:
    match statement:
        case ShowProperties():
            return property_rows(spark, table, statement.key)
        case ShowColumns():
            return column_rows(spark, table)
        case ShowPartitions():
            return partition_value_rows(spark, table)
        case ShowCreate():
            raise UnsupportedError(
                "Operation not allowed: `SHOW CREATE TABLE` is not supported for Delta tables. "
                "DESCRIBE TABLE EXTENDED and SHOW TBLPROPERTIES say what the table is.",
                code=ErrorCode.OPERATION_NOT_ALLOWED,
            )
        case DescribeTable():
            if statement.column is not None:
                return describe_column(spark, table, statement.column)
            return describe_rows(spark, table, extended=statement.extended)
        case _:
            assert_never(statement)
