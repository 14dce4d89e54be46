"""``BEGIN ... END``: scripts whose statements write Delta tables, or read those of the catalog.

Spark interprets the script (`puredelta.spark.jvm.stored.scripts`). Statements that change or make
tables are executed here, as if they stood alone; queries and conditions see the newest version
of each table that they name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.catalog.relation_cache import cached_relations, find_relations
from puredelta.spark.jvm.stored.scripts import Script
from puredelta.spark.session.session import is_connect
from puredelta.sql.execute.tables import concerns_delta
from puredelta.sql.parse.immediate import read_immediate
from puredelta.sql.parse.parse import parse
from puredelta.sql.parse.statement import (
    DescribeTable,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    SparkParsedStatement,
    ViewStatement,
)
from puredelta.sql.relations.names import is_known
from puredelta.sql.relations.query_tables import may_name_path, may_need_names
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.table_name import TableName

_MAY_BEGIN = re.compile(r"\bBEGIN\b", re.IGNORECASE)


def is_script(text: str) -> bool:
    """Tell whether a text is a script: ``[label:] BEGIN ...``, with something behind it.

    >>> is_script("BEGIN SELECT 1; END"), is_script("SELECT 'begin'")
    (True, False)
    """
    if _MAY_BEGIN.search(text) is None:
        return False
    cursor = Cursor(text)
    if cursor.sees(":", ahead=1):
        cursor.skip(2)
    return cursor.sees("BEGIN") and cursor.peek(1) is not None


def find_script(spark: SparkSession, text: str) -> Script | None:
    """Return a script that has statements for us, or names tables of the catalog.

    Raises:
        UnsupportedError: a script of a Spark Connect session names a table by its path
            (UNSUPPORTED_ON_CONNECT).
    """
    if not is_script(text):
        return None
    if is_connect(spark):
        _require_no_path(text)
        return None
    try:
        script = Script(spark, text)
    except ParseException:
        return None  # Spark will say so itself
    if not script.is_script:
        return None
    names_tables = bool(find_relations(spark, script.relation_names()).tables)
    return script if names_tables or script.has(partial(_is_ours, spark)) else None


def _require_no_path(text: str) -> None:
    if may_name_path(text):
        raise UnsupportedError(
            "A script that names delta.`/path` needs a classic session: a "
            "Spark Connect client does not interpret scripts. Call its statements one by one.",
            code=ErrorCode.UNSUPPORTED_ON_CONNECT,
        )


def _is_ours(spark: SparkSession, text: str) -> bool:
    """Tell a statement that may write a Delta table, or whose text is computed.

    What is inserted into a table that is not there yet may be one of ours, too.
    """
    match parse(text):
        case None:
            return read_immediate(text) is not None
        case ShowColumns() | ShowCreate() | ShowPartitions() | ShowProperties() | DescribeTable():
            return False  # Spark answers; the rows of ours would be lost
        case ViewStatement():
            return may_need_names(text)
        case SparkParsedStatement() as statement if not statement.defines:
            into = statement.targets[0].name
            is_new = isinstance(into, TableName) and not is_known(spark, into)
            return is_new or concerns_delta(spark, statement, text)
        case SparkParsedStatement() as statement:
            return concerns_delta(spark, statement, text)
        case _:
            return True


def run_script(spark: SparkSession, script: Script, run: Callable[[str], object]) -> DataFrame:
    """Run a script and return the rows of its last query; ``run`` executes one statement.

    Raises:
        pyspark.errors.PySparkException: what Spark says of the script.
        DeltaError: what a statement raises; what was committed before it stays.
    """
    names = script.relation_names()
    with ExitStack() as pinned:
        pinned.enter_context(cached_relations(spark, names))

        def execute(text: str) -> None:
            run(text)
            pinned.enter_context(cached_relations(spark, names))  # what is newest now

        return script.run(partial(_is_ours, spark), execute)
