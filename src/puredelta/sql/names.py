"""Table references resolved to names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.sql.parse import parse_table_name
from puredelta.sql.table_name import ComputedName, TableName, TableReference


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
