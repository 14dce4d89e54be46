"""The log of a table that a command names by a path or by the catalog."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.cli.session.names import table_name
from puredelta.log.replay.table_log import TableLog
from puredelta.sql.relations.names import find_location, require_table
from puredelta.sql.text.table_name import parse_table_name


def table_log(spark: SparkSession, table: str) -> TableLog:
    """Open the log of a table.

    Raises:
        TableNotFoundError: there is no Delta table.
    """
    name = table_name(table)
    return require_table(spark, find_location(spark, parse_table_name(name)), name)
