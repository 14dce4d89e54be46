"""MERGE, UPDATE and DELETE handed to the commands that execute them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.merge.run import run_merge
from puredelta.commands.update_delete.run import run_rows
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.resolve.qualified import qualified
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.statements.sql_syntax import require_parsable
from puredelta.sql.execute.source import source_rows
from puredelta.sql.execute.view_target import find_view, require_whole_table
from puredelta.sql.parse.statement import (
    DeleteStatement,
    MergeStatement,
    RowStatement,
    Target,
    UpdateStatement,
)
from puredelta.sql.relations.names import find_location, resolve_name
from puredelta.sql.relations.subqueries import Subqueries
from puredelta.sql.relations.views import TemporaryViews
from puredelta.sql.text.table_name import TableName


def change_rows(
    spark: SparkSession, statement: RowStatement, *, text: str, views: TemporaryViews
) -> DataFrame | None:
    """Execute a statement and return its counts; None if its target is no Delta table.

    A temporary view that shows a whole table stands for that table.
    """
    name = resolve_name(spark, statement.target.name)
    view = find_view(spark, name)
    location = find_location(spark, name) if view is None else view.root_uri
    if location is None:
        return None
    require_parsable(spark, text)
    if view is not None:
        require_whole_table(view, name, statement)
    log, subqueries = TableLog.open(location), Subqueries(spark, statement.ctes, views)
    match statement:
        case MergeStatement():
            return run_merge(
                spark,
                log,
                subqueries.in_merge(statement.spec),
                target_rows=_target_rows(spark, log, statement.target, name),
                source_rows=source_rows(spark, statement, views=views),
            )
        case UpdateStatement() | DeleteStatement():
            return run_rows(
                spark,
                log,
                subqueries.in_rows(statement.spec),
                target_rows=_target_rows(spark, log, statement.target, name),
            )
        case _:
            assert_never(statement)


def _target_rows(spark: SparkSession, log: TableLog, target: Target, name: TableName) -> DataFrame:
    """Return no rows with the table's columns, under their names in the statement."""
    columns = table_identity(spark, log.snapshot().config.schema)
    if target.alias is None:
        return qualified(columns, name.qualifier)
    return columns.alias(target.alias)
