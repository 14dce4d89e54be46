"""``DESCRIBE HISTORY`` and ``DESCRIBE DETAIL``, which Spark's parser does not know."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.detail import detail_rows
from puredelta.commands.history import history_rows
from puredelta.sql.relations.table_argument import read_named_table, read_number
from puredelta.sql.text.cursor import Cursor


def run_describe(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute ``DESC[RIBE] HISTORY table [LIMIT n]`` or ``DESC[RIBE] DETAIL table``.

    The table is a name, ``delta.`/path` `` or a path in quotes. None for any other text, such
    as ``DESCRIBE history``, which describes a table of that name.

    Raises:
        SqlSyntaxError: something else stands behind the table.
        TableNotFoundError: there is no Delta table.
    """
    cursor = Cursor(text)
    if not (cursor.accept("DESCRIBE") or cursor.accept("DESC")):
        return None
    is_history = cursor.accept("HISTORY")
    if not is_history and not cursor.accept("DETAIL"):
        return None
    if cursor.is_done or cursor.sees(";") or cursor.sees("."):
        return None
    log, name = read_named_table(spark, cursor)
    limit = None
    if is_history and cursor.accept("LIMIT"):
        limit = int(read_number(cursor))
    cursor.expect_end()
    if is_history:
        return history_rows(spark, log, limit=limit)
    return detail_rows(spark, log.snapshot(), catalog_name=name)
