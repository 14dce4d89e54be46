"""``BEGIN ... END``: scripts whose statements write Delta tables, or read those of the catalog.

Spark interprets the script (`puredelta.spark.jvm.stored.scripts`). Statements that change or make
tables are executed here, as if they stood alone; queries and conditions see the newest version
of each table that they name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.catalog.relation_cache import cached_relations
from puredelta.spark.jvm.stored.scripts import Script
from puredelta.spark.session.session import is_connect
from puredelta.sql.parse.immediate import read_immediate
from puredelta.sql.parse.parse import parse
from puredelta.sql.parse.statement import (
    DescribeTable,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
)
from puredelta.sql.text.cursor import Cursor

_SHOWN = (ShowColumns, ShowCreate, ShowPartitions, ShowProperties, DescribeTable)
"""What Spark answers inside of scripts, whose rows would be lost."""
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
    """Return a script that has statements for us, or names tables of the catalog."""
    if is_connect(spark) or not is_script(text):
        return None
    try:
        script = Script(spark, text)
    except ParseException:
        return None  # Spark will say so itself
    return (
        script if script.is_script and (script.has(_is_ours) or script.relation_names()) else None
    )


def _is_ours(text: str) -> bool:
    """Tell a statement that may write a Delta table, or whose text is computed."""
    statement = parse(text)
    if statement is None:
        return read_immediate(text) is not None
    return not isinstance(statement, _SHOWN)


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

        return script.run(_is_ours, execute)
