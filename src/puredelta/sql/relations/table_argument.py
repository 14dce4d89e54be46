"""The Delta tables that statements name, which must be there."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.open_log import open_log
from puredelta.sql.relations.names import find_location, resolve_name
from puredelta.sql.text.table_name import QuotedPath, TableArgument, TableName


def open_table(spark: SparkSession, table: TableArgument) -> TableLog:
    """Return the log of the Delta table that a statement of Delta's own names.

    Raises:
        TableNotFoundError: see `find_log`.
    """
    if isinstance(table, QuotedPath):
        return require_table(spark, table.path, table.path)
    return find_log(spark, resolve_name(spark, table))


def find_log(spark: SparkSession, name: TableName) -> TableLog:
    """Return the log of the Delta table of a name.

    Raises:
        TableNotFoundError: there is no table of the name (TABLE_OR_VIEW_NOT_FOUND), or it is
            no Delta table (DELTA_MISSING_DELTA_TABLE).
    """
    location = find_location(spark, name)
    if location is None and not spark.catalog.tableExists(quote_name(name.parts)):
        raise not_found(name)
    return require_table(spark, location, name)


def not_found(name: TableName) -> TableNotFoundError:
    """Return the error for a name that stands for nothing."""
    return TableNotFoundError(
        f"The table or view {name} cannot be found. Verify the spelling and correctness of the "
        "schema and catalog.",
        code=ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        table=str(name),
    )


def require_table(spark: SparkSession, location: str | None, name: object) -> TableLog:
    """Return the log of the table at a location; ``name`` is what the statement calls it.

    Raises:
        TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
    """
    log = open_log(spark, location) if location else None
    if log is None or not log.exists():
        raise TableNotFoundError(
            f"{name} is not a Delta table.", code=ErrorCode.MISSING_DELTA_TABLE, table=str(name)
        )
    return log
