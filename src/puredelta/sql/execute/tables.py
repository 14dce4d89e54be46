"""CREATE, REPLACE and INSERT statements: which are ours, and what executes them."""

from __future__ import annotations

import re
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.session.formats import FORMAT, is_delta
from puredelta.spark.session.session import is_connect
from puredelta.spark.statements.statement_plans import (
    InsertInto,
    SeveralInserts,
    StatedTable,
    parse_plan,
)
from puredelta.sql.execute.create import create
from puredelta.sql.execute.insert import insert, insert_all
from puredelta.sql.execute.results import no_rows
from puredelta.sql.execute.table_head import read_head
from puredelta.sql.relations.names import find_location
from puredelta.sql.relations.views import TemporaryViews
from puredelta.sql.text.table_name import ComputedName, TableReference

_USING = re.compile(r"\busing\s+`?(\w+)", re.IGNORECASE)


def is_table_statement(spark: SparkSession, text: str) -> bool:
    """Tell whether a text is CREATE or REPLACE TABLE with format delta, or INSERT into our table.

    Fields and parameters need no values yet.

    Raises:
        UnsupportedError: the session is a Spark Connect one.
    """
    head = read_head(text)
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
    head = read_head(text)
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
            case SeveralInserts(inserts):
                done = insert_all(spark, inserts)
            case None:
                return None
            case _:
                assert_never(statement)
    return no_rows(spark) if done else None


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
