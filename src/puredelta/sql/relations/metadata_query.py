"""Queries that name ``_metadata``: Spark hides it behind a view, so tables stand for themselves.

The plan that Spark parses gets the rows of each table in the place of its name, under the name
or alias that the text gives it. Classic sessions only.
"""

from __future__ import annotations

import re

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read.read_table import snapshot_of
from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.spark.catalog.catalog_tables import find_table
from puredelta.spark.catalog.relation_cache import cached_relations
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.plans import (
    NamedPart,
    Plan,
    named_parts,
    named_plan,
    parsed_plan,
    with_table_expressions,
)
from puredelta.spark.jvm.session_catalog import SESSION_CATALOG
from puredelta.spark.scan.row_tracking_scan import rows_with_row_ids
from puredelta.spark.scan.table_rows import find_origin, table_rows
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.session import is_connect
from puredelta.sql.relations.query_tables import with_views
from puredelta.sql.relations.stored_views import with_stored_views
from puredelta.sql.relations.views import TemplateFields
from puredelta.sql.text.cursor import Cursor

_METADATA = re.compile(r"\b_metadata\b", re.IGNORECASE)
_QUERIES = keywords("SELECT WITH FROM (")


def run_metadata_query(spark: SparkSession, text: str) -> DataFrame | None:
    """Let Spark execute a query that names ``_metadata`` of Delta tables; None for other texts.

    Raises:
        TableNotFoundError: there is no table at a path, or no such version.
        InvalidRequestError: the time travel, or a call of ``table_changes``, is wrong.
    """
    if is_connect(spark) or _METADATA.search(text) is None or Cursor(text).word not in _QUERIES:
        return None
    frames = TemplateFields()
    named = with_views(spark, with_stored_views(spark, text, frames), frames)
    try:
        query = with_table_expressions(parsed_plan(spark, named))
    except ParseException:
        return None  # Spark will say so itself
    replaced, left = [], []
    for part in named_parts(query):
        rows = _rows_of(spark, part, frames)
        if rows is None:
            left.append(part.name)
        else:
            replaced.append((part.part, rows))
    if not replaced:
        return None
    with cached_relations(spark, left):
        return frame_of(spark, query.with_replaced(replaced))


def _rows_of(spark: SparkSession, part: NamedPart, frames: TemplateFields) -> Plan | None:
    """Return the plan of a name's rows; each name has one of its own, for Spark joins by ids."""
    name: tuple[str, ...] = part.name if part.alias is None else (part.alias,)
    known = frames.rows.get(part.name[0]) if len(part.name) == 1 else None
    if known is None:
        table = find_table(spark, part.name)
        if table is None:
            return None
        log, version, is_time_travel = open_log(spark, table.location), None, False
        if part.alias is None:
            name = (SESSION_CATALOG, table.database, table.name)
    else:
        plan = analyzed_plan(known)
        origin = find_origin(plan)
        if origin is None:  # changes, for example
            return named_plan(name[-1], plan)
        log, version, is_time_travel = (
            open_log(spark, origin.root_uri),
            origin.version,
            origin.is_time_travel,
        )
    snapshot = snapshot_of(spark, log, version=version)
    rows = rows_with_row_ids(spark, snapshot, time_travel=is_time_travel, name=name)
    if rows is not None:
        return analyzed_plan(rows)
    plain = table_rows(spark, snapshot, time_travel=is_time_travel)
    return named_plan(name[-1], analyzed_plan(plain), qualifier=name[:-1])
