"""Table references resolved to names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.spark.catalog.catalog_tables import find_table
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import (
    ComputedName,
    TableName,
    TableReference,
    parse_table_name,
)


def resolve_name(spark: SparkSession, reference: TableReference) -> TableName:
    """Return the name; ``IDENTIFIER(...)`` is computed by Spark.

    Raises:
        SqlSyntaxError: what was computed is no name.
        pyspark.errors.PySparkException: it cannot be computed.
    """
    if not isinstance(reference, ComputedName):
        return reference
    [row] = spark.sql(f"SELECT string({reference.expression}) AS name").collect()
    return parse_table_name(str(row["name"]))


def find_location(spark: SparkSession, name: TableName) -> str | None:
    """Return where a Delta table is: its path, or what the session catalog says.

    None if the name stands for something else.
    """
    if name.path is not None:
        return name.path
    table = find_table(spark, name.parts)
    return None if table is None else table.location


def find_catalog_name(spark: SparkSession, name: TableName) -> str | None:
    """Return the whole name of a Delta table in the session catalog, None for a path."""
    table = None if name.path is not None else find_table(spark, name.parts)
    return None if table is None else table.full_name


def find_name(text: str) -> TableName | None:
    """Return a name as Spark would read it; None if it is none.

    >>> find_name("delta.`/data/events`").path
    '/data/events'
    """
    try:
        return parse_table_name(text)
    except SqlSyntaxError:
        return None  # Spark says what is wrong with it
