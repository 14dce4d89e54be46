"""``IDENTIFIER(...)`` in a text: the name that it computes, written in its place.

Spark would compute it while it analyzes the text, which is too late for a Delta table: its plan
has to be known by then. Only texts that name one so, or make a table, are changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.spark.session.identifiers import quote_name
from puredelta.sql.relations.names import find_location, resolve_name
from puredelta.sql.relations.parameters import Arguments, with_literals
from puredelta.sql.text.cursor import Cursor, replaced
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import ComputedName, TableName

_GLANCE = re.compile(r"\bIDENTIFIER\s*\(", re.IGNORECASE)
_QUERY = re.compile(r"\bSELECT\b", re.IGNORECASE)
_MAKES_TABLES = keywords("CREATE REPLACE")


def with_computed_names(
    spark: SparkSession, text: str, args: Arguments | None = None
) -> tuple[str, Arguments | None]:
    """Return a text with names for ``IDENTIFIER(...)``, and the arguments that it still needs.

    What cannot be computed by itself stays as it is, so that Spark says why. Runs no job.
    """
    if _GLANCE.search(text) is None:
        return text, args
    if isinstance(args, Mapping):
        filled, named = text, args
    else:  # a `?` may be inside of a name
        filled, named = with_literals(spark, text, args or ()), None
    found = list(_computed(spark, filled, named or {}))
    if Cursor(filled).word not in _MAKES_TABLES and not any(
        find_location(spark, name) is not None for _, _, name in found
    ):
        return text, args
    names = ((start, end, quote_name(name.parts)) for start, end, name in found)
    return replaced(filled, names), named


def _computed(
    spark: SparkSession, text: str, args: Mapping[str, Any]
) -> Iterator[tuple[int, int, TableName]]:
    """Yield where an ``IDENTIFIER(...)`` stands, and its name."""
    cursor = Cursor(text)
    while not cursor.is_done:
        start = cursor.start
        if not cursor.sees("IDENTIFIER", "("):
            cursor.skip()
            continue
        cursor.skip()
        name = _name_of(spark, cursor.group(), args)
        if name is not None:
            yield start, cursor.end, name


def _name_of(spark: SparkSession, expression: str, args: Mapping[str, Any]) -> TableName | None:
    if _QUERY.search(expression) is not None:
        return None  # no constant
    try:
        return resolve_name(spark, ComputedName(with_literals(spark, expression, args)))
    except (PySparkException, SqlSyntaxError):
        return None  # a variable of a script, a column, or wrong
