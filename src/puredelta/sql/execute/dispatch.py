"""Statements handed to the commands that execute them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.convert.run import convert_to_delta
from puredelta.commands.merge.run import run_merge
from puredelta.commands.optimize.run import run_optimize
from puredelta.commands.update_delete.run import run_rows
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.viewed_table import ViewedTable
from puredelta.spark.resolve.qualified import qualified
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.sql.execute.results import no_rows
from puredelta.sql.execute.source import source_rows
from puredelta.sql.execute.view_target import require_whole_columns, require_whole_table
from puredelta.sql.parse.statement import (
    ConvertStatement,
    DeleteStatement,
    MergeStatement,
    OptimizeStatement,
    Target,
    UpdateStatement,
)
from puredelta.sql.relations.subqueries import Subqueries
from puredelta.sql.relations.views import TemporaryViews
from puredelta.sql.text.table_name import TableName


def execute(
    spark: SparkSession,
    statement: MergeStatement | UpdateStatement | DeleteStatement | OptimizeStatement,
    *,
    target: TableName,
    log: TableLog,
    view: ViewedTable | None,
    views: TemporaryViews,
) -> DataFrame:
    """Execute a statement on the table its target names, and return its result rows.

    ``log`` is that table's; ``view`` is what the target shows, if it is a temporary view.
    """
    if view is not None:
        require_whole_table(view, target, operation=statement.operation)
    match statement:
        case MergeStatement():
            if view is not None:
                require_whole_columns(target, statement)
            return _merge(spark, statement, target, log, views)
        case UpdateStatement() | DeleteStatement():
            return _change(spark, statement, target, log, views)
        case OptimizeStatement():
            return run_optimize(spark, log, statement.spec)
        case _:
            assert_never(statement)


def _change(
    spark: SparkSession,
    statement: UpdateStatement | DeleteStatement,
    target: TableName,
    log: TableLog,
    views: TemporaryViews,
) -> DataFrame:
    return run_rows(
        spark,
        log,
        Subqueries(spark, statement.ctes, views).in_rows(statement.spec),
        target_rows=_target_rows(spark, log, statement.target, target),
    )


def _merge(
    spark: SparkSession,
    statement: MergeStatement,
    target: TableName,
    log: TableLog,
    views: TemporaryViews,
) -> DataFrame:
    return run_merge(
        spark,
        log,
        Subqueries(spark, statement.ctes, views).in_merge(statement.spec),
        target_rows=_target_rows(spark, log, statement.target, target),
        source_rows=source_rows(spark, statement, views=views),
    )


def _target_rows(spark: SparkSession, log: TableLog, target: Target, name: TableName) -> DataFrame:
    """Return no rows with the table's columns, under the names the statement calls them by."""
    columns = table_identity(spark, log.snapshot().config.schema)
    if target.alias is None:
        return qualified(columns, name.qualifier)
    return columns.alias(target.alias)


def convert(spark: SparkSession, statement: ConvertStatement) -> DataFrame:
    """Execute CONVERT TO DELTA, whose name is a source and not a table, and return no rows."""
    convert_to_delta(
        spark,
        statement.identifier,
        statement.partition_schema,
        collect_stats=statement.collect_stats,
    )
    return no_rows(spark)
