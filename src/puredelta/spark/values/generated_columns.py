"""Expressions of a table's columns, evaluated by Spark over rows of the table."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import as_nullable, to_spark_type


def generated_value(config: TableConfig, column: str) -> Column:
    """Return what a generated column holds (M-101), over rows with the table's columns by name."""
    return _typed(config.generated_columns[column], config, column)


def default_value(config: TableConfig, column: str) -> Column:
    """Return the default of a column (M-100); it refers to no row."""
    return _typed(config.column_defaults[column], config, column)


def _typed(sql: str, config: TableConfig, column: str) -> Column:
    field = next(f for f in config.schema.fields if f.name == column)
    return F.expr(f"({sql})").cast(as_nullable(to_spark_type(field.type)))
