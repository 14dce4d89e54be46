"""Statements as requests that can be explained and tried."""

from __future__ import annotations

from typing import TypeAlias

from pyspark.sql import SparkSession
from typing_extensions import assert_never

from puredelta.commands.convert.request import ConvertRequest
from puredelta.commands.dml.run.request import ChangeRequest
from puredelta.commands.optimize.request import OptimizeRequest
from puredelta.commands.restore.request import RestoreRequest
from puredelta.commands.vacuum.request import VacuumRequest
from puredelta.spark.session.identifiers import quote_name
from puredelta.sql.execute.maintenance import vacuum_scope
from puredelta.sql.execute.row_changes import requested_change
from puredelta.sql.parse.explain_statement import Explained
from puredelta.sql.parse.statement import (
    ConvertStatement,
    DeleteStatement,
    MergeStatement,
    OptimizeStatement,
    RestoreStatement,
    UpdateStatement,
    VacuumStatement,
)
from puredelta.sql.relations.names import open_table
from puredelta.sql.relations.views import TemporaryViews

Request: TypeAlias = (
    ChangeRequest | ConvertRequest | OptimizeRequest | RestoreRequest | VacuumRequest
)
"""All of them have ``explain`` and ``dry_run``."""


def requested(
    spark: SparkSession, statement: Explained, *, text: str, views: TemporaryViews
) -> Request | None:
    """Return what a statement asks for; None if it concerns no Delta table."""
    match statement:
        case MergeStatement() | UpdateStatement() | DeleteStatement():
            return requested_change(spark, statement, text=text, views=views)
        case OptimizeStatement():
            log = open_table(spark, statement.table)
            return OptimizeRequest(spark=spark, log=log, spec=statement.spec)
        case VacuumStatement():
            log = open_table(spark, statement.table)
            return VacuumRequest(
                spark=spark,
                log=log,
                retention_hours=statement.retention_hours,
                scope=vacuum_scope(spark, statement, views),
            )
        case RestoreStatement():
            version = statement.state.version
            return RestoreRequest(
                spark=spark,
                log=open_table(spark, statement.table),
                version=None if version is None else int(version),
                timestamp=statement.state.timestamp,
            )
        case ConvertStatement():
            return ConvertRequest(
                spark=spark,
                identifier=quote_name(statement.source.parts),
                partition_schema=statement.partition_schema,
                collect_stats=statement.collect_stats,
            )
        case _:
            assert_never(statement)
