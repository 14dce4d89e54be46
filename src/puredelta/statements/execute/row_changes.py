"""MERGE, UPDATE and DELETE, prepared, with the source rows that MERGE names after USING."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.dml.execute import PreparedChange
from puredelta.commands.read_table import read_table
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.catalog_entries import look_up_together
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.resolve.table_attributes import as_named, qualified, table_identity
from puredelta.spark.session.catalogs import find_identifier
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.storage import open_log
from puredelta.statements.execute.session_texts import texts_of
from puredelta.statements.execute.views import (
    require_no_view,
    require_whole_columns,
    require_whole_table,
    target_operation,
)
from puredelta.statements.names.catalog_query import whole_name
from puredelta.statements.names.names import (
    find_location,
    qualifier_of,
    require_target,
    resolve_name,
    rows_in_catalog,
)
from puredelta.statements.names.query_tables import Subqueries, with_views
from puredelta.statements.names.views import TemporaryViews
from puredelta.statements.parse.changes_clause import without_changes_clauses
from puredelta.statements.parse.statement import (
    DeleteStatement,
    MergeStatement,
    RowStatement,
    SourceQuery,
    SourceTable,
    Target,
    UpdateStatement,
)
from puredelta.statements.parse.table_name import TableName


def change_rows(
    spark: SparkSession, statement: RowStatement, *, text: str, views: TemporaryViews
) -> DataFrame | None:
    """Execute a statement and return its counts; None if its target is no Delta table.

    A temporary view that shows a whole table counts as that table.
    """
    prepared = prepare_change(spark, statement, text=text, views=views)
    return None if prepared is None else prepared.execute()


def prepare_change(
    spark: SparkSession, statement: RowStatement, *, text: str, views: TemporaryViews
) -> PreparedChange | None:
    """Prepare a statement; None if its target is no Delta table.

    ``views`` must exist until the statement was executed or explained.
    """
    name = resolve_name(spark, statement.target.name)
    if isinstance(statement, MergeStatement) and isinstance(statement.source, SourceTable):
        source = statement.source.name
        look_up_together(spark, {name.parts, source.parts} if isinstance(source, TableName) else ())
    texts = texts_of(spark)
    view, operation = texts.find_view(name), target_operation(statement)
    location = find_location(spark, name) if view is None else view.root_uri
    if location is None:
        require_target(name)
        require_no_view(spark, name, operation)
        return None
    require_parsable(spark, without_changes_clauses(text))
    log = open_log(spark, location)
    subqueries = Subqueries(spark, statement.ctes, views, texts.with_tables)
    if view is not None:
        require_whole_table(view, name, operation, log=log)
        if isinstance(statement, MergeStatement):
            qualifier = statement.target.alias or name.parts[-1]
            require_whole_columns(statement.spec.clauses, qualifier)
    target_rows = _target_rows(spark, log, statement.target, name)
    match statement:
        case MergeStatement():
            return PreparedChange(
                spark=spark,
                log=log,
                spec=subqueries.in_merge(statement.spec),
                target_rows=target_rows,
                source_rows=source_rows(spark, statement, views=views),
            )
        case UpdateStatement() | DeleteStatement():
            spec = subqueries.in_rows(statement.spec)
            return PreparedChange(spark=spark, log=log, spec=spec, target_rows=target_rows)
        case _:
            assert_never(statement)


def _target_rows(spark: SparkSession, log: TableLog, target: Target, name: TableName) -> DataFrame:
    """Return an empty frame with the table's columns, under their names in the statement."""
    columns = table_identity(spark, log.snapshot().config.schema)
    if target.alias is None:
        return qualified(columns, qualifier_of(spark, name))
    return columns.alias(target.alias)


def source_rows(
    spark: SparkSession, statement: MergeStatement, *, views: TemporaryViews
) -> DataFrame:
    """Return the source under its alias or name; Spark resolves it, nothing is run.

    Names of common table expressions, views and tables are resolved as in a query;
    ``delta.`/path` `` is the newest version of the table there, also inside a query.
    """
    source = statement.source
    ctes = with_views(spark, statement.ctes, views)
    match source:
        case SourceQuery():
            query = with_views(spark, source.query, views)
            query = _select(ctes, f"({query})") if ctes else query
            rows = texts_of(spark).rows(query, views)
            return rows if source.alias is None else rows.alias(source.alias)
        case SourceTable():
            return _table_rows(spark, source, ctes, views)
        case _:
            assert_never(source)


def _table_rows(
    spark: SparkSession, source: SourceTable, ctes: str, views: TemporaryViews
) -> DataFrame:
    name = resolve_name(spark, source.name)
    if name.path is not None or find_identifier(spark, name.parts) is not None:
        rows = rows_in_catalog(spark, name, partial(read_table, spark))
        return qualified(rows, name.qualifier) if source.alias is None else rows.alias(source.alias)
    quoted = quote_name(name.parts)
    if ctes:
        rows = texts_of(spark).rows(_select(ctes, quoted), views)
    else:
        rows = views.table(spark, name.parts)
    if source.alias is not None:
        return rows.alias(source.alias)
    return as_named(rows, partial(whole_name, spark, name.parts))


def _select(ctes: str, relation: str) -> str:
    return f"{ctes} SELECT * FROM {relation}"  # noqa: S608 - the user's own text
