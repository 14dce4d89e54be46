"""CREATE, REPLACE and INSERT statements: which are ours, and what executes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.formats import FORMAT, is_delta
from puredelta.spark.identifiers import quote_name
from puredelta.spark.session import is_connect
from puredelta.spark.statement_plans import InsertInto, StatedTable, parse_plan
from puredelta.sql.create import create
from puredelta.sql.cursor import Cursor
from puredelta.sql.insert import insert
from puredelta.sql.names import find_location, resolve_name
from puredelta.sql.parse import skip_ctes
from puredelta.sql.paths import with_views
from puredelta.sql.results import no_rows
from puredelta.sql.syntax_error import SqlSyntaxError
from puredelta.sql.table_name import ComputedName, TableReference
from puredelta.sql.views import TemporaryViews

_USING = re.compile(r"\busing\s+`?(\w+)", re.IGNORECASE)


def is_table_statement(spark: SparkSession, text: str) -> bool:
    """Tell whether a text is CREATE or REPLACE TABLE with format delta, or INSERT into our table.

    Fields and parameters need no values yet.

    Raises:
        UnsupportedError: the session is a Spark Connect one.
    """
    head = _head(text)
    if head is None:
        return False
    found = _names_our_format(spark, text) if head.defines else _is_ours(spark, head.name)
    if found and is_connect(spark):
        raise not_on_connect("CREATE TABLE and INSERT")
    return found


def not_on_connect(what: str) -> UnsupportedError:
    """Return the error for what needs the session catalog or Spark's parser at hand."""
    return UnsupportedError(
        f"{what} with format delta need a classic session: a Spark Connect client has no access "
        'to the session catalog. Write to a path: df.write.format("delta").save(path), or MERGE.',
        code=ErrorCode.UNSUPPORTED_ON_CONNECT,
    )


def run_table_statement(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute a statement that may be one of ours; None if it is Spark's after all.

    A query inside may name tables by path.

    Raises:
        pyspark.errors.ParseException: the text is wrong.
        UnsupportedError: a clause that is not implemented.
        DeltaError: what the commands raise.
    """
    head = _head(text)
    if head is None or (is_connect(spark) and not is_table_statement(spark, text)):
        return None
    with TemporaryViews() as views:
        plain = head.named(spark, text, views)
        statement = parse_plan(spark, plain)
        match statement:
            case StatedTable():
                done = create(spark, statement)
            case InsertInto():
                done = insert(
                    spark,
                    statement,
                    text=plain,
                    parse=lambda other: cast("InsertInto", parse_plan(spark, other)),
                )
            case None:
                return None
            case _:
                assert_never(statement)
    return no_rows(spark) if done else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """How a statement begins, up to the name of its table."""

    defines: bool
    """CREATE or REPLACE, not INSERT."""
    name: TableReference
    words_start: int
    """Where the first word of the statement is, behind common table expressions and FROM."""
    name_start: int
    name_end: int

    def named(self, spark: SparkSession, text: str, views: TemporaryViews) -> str:
        """Return the text with every table of ours but this one as a view."""
        name = text[self.name_start : self.name_end]
        if isinstance(self.name, ComputedName):
            name = quote_name(resolve_name(spark, self.name).parts)
        return "".join(
            (
                with_views(spark, text[: self.words_start], views),
                text[self.words_start : self.name_start],
                name,
                with_views(spark, text[self.name_end :], views),
            )
        )


def _head(text: str) -> _Head | None:
    cursor = Cursor(text)
    try:
        skip_ctes(cursor)
        _skip_from(cursor)
        first = cursor.peek()
        defines = _accept_definition(cursor)
        if not defines and not _accept_insertion(cursor):
            return None
        start = cursor.peek()
        name = cursor.table()
    except SqlSyntaxError:
        return None
    if first is None or start is None:
        return None
    return _Head(
        defines=defines,
        name=name,
        words_start=first.start,
        name_start=start.start,
        name_end=cursor.offset,
    )


def _skip_from(cursor: Cursor) -> None:
    """Step over ``FROM rows`` in front of ``INSERT``; to the end where there is none."""
    if cursor.accept("FROM"):
        while not (cursor.is_done or cursor.sees("INSERT")):
            if cursor.sees("("):
                cursor.group()
            else:
                cursor.skip()


def _accept_definition(cursor: Cursor) -> bool:
    if cursor.accept("CREATE", "TABLE") or cursor.accept("CREATE", "EXTERNAL", "TABLE"):
        cursor.accept("IF", "NOT", "EXISTS")
        return True
    return cursor.accept("CREATE", "OR", "REPLACE", "TABLE") or cursor.accept("REPLACE", "TABLE")


def _accept_insertion(cursor: Cursor) -> bool:
    if not (cursor.accept("INSERT", "INTO") or cursor.accept("INSERT", "OVERWRITE")):
        return False
    cursor.accept("TABLE")
    return True


def _names_our_format(spark: SparkSession, text: str) -> bool:
    """Tell from a glance whether a definition may be one of format delta."""
    named = [found[1].lower() for found in _USING.finditer(text)]
    if not named:
        return is_delta(spark)
    return FORMAT in named


def _is_ours(spark: SparkSession, name: TableReference) -> bool:
    """Tell whether the table may be one of ours; a name that is computed is seen to later."""
    if isinstance(name, ComputedName):
        return not is_connect(spark)
    return find_location(spark, name) is not None
