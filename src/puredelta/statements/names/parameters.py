"""Parameters of a statement: ``{name}`` fields, ``:name`` markers and ``IDENTIFIER(...)``.

Expressions of a statement are resolved one by one, where Spark's own binding of ``:name``
and ``?`` does not reach. So parameters become literals of the same type and value; Spark first
computes those that have no Python literal (arrays, maps, Columns). For a parameter without a
value, Spark raises the error.

``IDENTIFIER(...)`` is computed before Spark analyzes the text, because the plan of a Delta table
must be known by then. Only texts that contain one, or make a table, are changed.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.sql_lexer import (
    Token,
    TokenKind,
    keywords,
    replaced,
    tokenize,
)
from puredelta.spark.session.names import quote_name
from puredelta.statements.names.names import find_location, resolve_name
from puredelta.statements.names.views import RowNames
from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError
from puredelta.statements.parse.literals import python_literal, string_literal, typed_literal
from puredelta.statements.parse.table_name import ComputedName, TableName

Arguments: TypeAlias = Mapping[str, Any] | Sequence[Any]
"""The ``args`` of ``spark.sql``: values by name or by position."""

# Words that may precede an expression. After any other word a colon leads into a
# variant: ``payload:name``.
_BEFORE_EXPRESSION = keywords(
    "ALL AND ANY AS BETWEEN BY CASE DISTINCT DIV ELSE ESCAPE EXCEPT EXISTS FROM HAVING ILIKE IN "
    "INTERVAL INTERSECT IS JOIN LIKE LIMIT NOT OF OFFSET ON OR OVER REGEXP RLIKE SELECT SET SOME "
    "THEN UNION USING VALUES WHEN WHERE WITH"
)

_BEFORE_BOUNDS = [[word, kind] for word in ("FROM", "TO") for kind in ("TIMESTAMP", "SYSTEM_TIME")]


def with_values(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None,
    fields: Mapping[str, Any] | None,
    names: RowNames,
) -> str:
    """Return the text with fields and parameters replaced by values."""
    if fields:
        text = _Template(names).format(text, **fields)
    return with_literals(spark, text, args) if args else text


def with_literals(spark: SparkSession, text: str, args: Arguments) -> str:
    """Return the text with every parameter that has a value replaced by a literal."""
    if isinstance(args, Mapping):
        found = [(first, last, args[name]) for first, last, name in _named(text) if name in args]
    else:
        marks = [token for token in tokenize(text) if token.means("?")]
        found = [(mark, mark, value) for mark, value in zip(marks, args, strict=False)]
    return replaced(
        text, ((first.start, last.end, literal(spark, value)) for first, last, value in found)
    )


def literal(spark: SparkSession, value: object) -> str:
    """Return a value as a literal; runs a job of one row where Spark has to compute it."""
    plain = python_literal(value)
    if plain is not None:
        return plain
    rows = spark.sql("SELECT :value AS value", args={"value": value})
    [row] = rows.collect()
    return typed_literal(row["value"], rows.schema["value"].dataType)


def _named(text: str) -> list[tuple[Token, Token, str]]:
    """Return the colon, the name and the name's text of every ``:name``."""
    tokens = tokenize(text)
    before: list[Token | None] = [None, *tokens]
    return [
        (colon, name, name.text)
        for at, (previous, colon, name) in enumerate(zip(before, tokens, tokens[1:], strict=False))
        if colon.means(":")
        and name.kind is TokenKind.WORD
        and (not _ends_operand(previous) or _begins_bound(tokens[max(0, at - 2) : at]))
    ]


def _begins_bound(words: Sequence[Token]) -> bool:
    """Return whether these are the words before a bound of ``CHANGES``."""
    return [word.text.upper() for word in words] in _BEFORE_BOUNDS


def _ends_operand(token: Token | None) -> bool:
    if token is None:
        return False
    if token.kind is TokenKind.SYMBOL:
        return token.text in {")", "]"}
    return token.kind is not TokenKind.WORD or token.text.upper() not in _BEFORE_EXPRESSION


class _Template(string.Formatter):
    """Filler of the fields of a statement: rows get a name, text becomes a literal.

    Other values are written as Python writes them, as in ``spark.sql``.
    """

    def __init__(self, names: RowNames) -> None:
        self._names = names

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the SQL text of a field, and its key.

        Raises:
            InvalidRequestError: the value is a Column.
        """
        value, key = super().get_field(field_name, args, kwargs)
        match value:
            case DataFrame():
                return self._names.add(value), key
            case str():
                return string_literal(value), key
            case Column():
                raise InvalidRequestError(
                    Message.VALUE_NOT_PLAIN_COLUMN_REFERENCE, field_name=field_name
                )
            case _:
                return value, key


_QUERY = re.compile(r"\bSELECT\b", re.IGNORECASE)
_MAKES_TABLES = keywords("CREATE REPLACE")


def with_computed_names(
    spark: SparkSession, text: str, args: Arguments | None
) -> tuple[str, Arguments | None]:
    """Return a text with ``IDENTIFIER(...)`` replaced by names, and its remaining arguments.

    Expressions that cannot be computed alone stay, so that Spark raises the error. Runs no job.
    """
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
    """Yield the position of each ``IDENTIFIER(...)``, and its name."""
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
