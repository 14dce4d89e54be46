"""CREATE TABLE, REPLACE TABLE and INSERT, whose text Spark's own parser reads."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.jvm.statement_plans import InsertInto, SeveralInserts, StatedTable, parse_plan
from puredelta.spark.session.formats import FORMAT, is_delta
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.small_frames import no_rows
from puredelta.sql.execute.create import create
from puredelta.sql.execute.insert import insert
from puredelta.sql.parse.statement import SparkParsedStatement
from puredelta.sql.relations.names import find_location, resolve_name
from puredelta.sql.relations.query_tables import with_views
from puredelta.sql.relations.views import TemporaryViews
from puredelta.sql.text.table_name import ComputedName

_USING = re.compile(r"\busing\s+`?(\w+)", re.IGNORECASE)


def concerns_delta(spark: SparkSession, statement: SparkParsedStatement, text: str) -> bool:
    """Tell at a glance if a statement may make a Delta table, or insert into one.

    Raises:
        UnsupportedError: the session is a Spark Connect one.
    """
    name = statement.targets[0].name
    if statement.defines:
        formats = [named[1].lower() for named in _USING.finditer(text)]
        found = FORMAT in formats if formats else is_delta(spark)
    elif isinstance(name, ComputedName):
        found = not is_connect(spark)  # what it is called is computed later
    else:
        found = find_location(spark, name) is not None
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


def create_or_insert(
    spark: SparkSession, statement: SparkParsedStatement, *, text: str, views: TemporaryViews
) -> DataFrame | None:
    """Execute a statement; None if it is on no Delta table after all.

    A query inside may name tables by path.

    Raises:
        pyspark.errors.ParseException: the text is wrong.
        UnsupportedError: a clause that is not implemented.
        DeltaError: what the commands raise.
    """
    if is_connect(spark):
        return None
    named = _with_views(spark, statement, text, views)
    planned = parse_plan(spark, named)
    match planned:
        case StatedTable():
            done = create(spark, planned)
        case InsertInto():
            done = insert(spark, (planned,), text=named)
        case SeveralInserts(inserts):
            done = insert(spark, inserts, text=named)
        case None:
            return None
        case _:
            assert_never(planned)
    return no_rows(spark) if done else None


def _with_views(
    spark: SparkSession, statement: SparkParsedStatement, text: str, views: TemporaryViews
) -> str:
    """Return the text with a view for every Delta table at a path but the targets.

    A target whose name is computed stands there by its name.
    """
    targets = []
    for target in statement.targets:
        name = text[target.start : target.end]
        if isinstance(target.name, ComputedName):
            name = quote_name(resolve_name(spark, target.name).parts)
        targets.append((target.start, target.end, name))
    return with_views(spark, text, views, targets=targets)
