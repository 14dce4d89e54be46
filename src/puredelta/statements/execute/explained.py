"""EXPLAIN, dry runs and requests of statements."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any, TypeAlias, TypeVar

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.convert.convert_to_delta import ConvertRequest
from puredelta.commands.dml.execute import ChangeRequest
from puredelta.commands.optimize import OptimizeRequest
from puredelta.commands.restore import RestoreRequest
from puredelta.commands.statement.report import Report
from puredelta.commands.vacuum import VacuumRequest
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.names import quote_name
from puredelta.statements.execute.maintenance import vacuum_scope
from puredelta.statements.execute.row_changes import requested_change
from puredelta.statements.names.names import open_table
from puredelta.statements.names.parameters import Arguments, with_values
from puredelta.statements.names.views import TemporaryViews
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    ConvertStatement,
    DeleteStatement,
    Explained,
    ExplainFormat,
    ExplainStatement,
    MergeStatement,
    OptimizeStatement,
    Rejected,
    RestoreStatement,
    UpdateStatement,
    VacuumStatement,
)

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


Answer = TypeVar("Answer")


def explain(
    spark: SparkSession, statement: ExplainStatement, views: TemporaryViews
) -> DataFrame | None:
    """Return one row, whose column ``plan`` says what a statement will do; nothing is executed.

    None if the statement concerns no Delta table.
    """
    request = requested(spark, statement.statement, text=statement.text, views=views)
    if request is None:
        return None
    report = request.explain()
    text = report.to_text(full=statement.format is not ExplainFormat.SIMPLE)
    if statement.format is ExplainFormat.EXTENDED and isinstance(request, ChangeRequest):
        text += _source_plan(request)
    return spark.createDataFrame([(text,)], "plan STRING")


def _source_plan(request: ChangeRequest) -> str:
    if request.source_rows is None:
        return ""
    printed = io.StringIO()
    with redirect_stdout(printed):
        request.source_rows.explain(extended=True)
    return f"\nSource, as Spark plans it\n{printed.getvalue().rstrip()}"


def refusal(spark: SparkSession, statement: Rejected, text: str) -> DeltaError:
    """Return what is wrong with a text.

    Raises:
        pyspark.errors.ParseException: Spark knows the statement, and its parser says it.
    """
    if statement.known_to_spark:
        require_parsable(spark, text)
    return statement.error


def explain_text(
    spark: SparkSession,
    text: str,
    *,
    mode: str = "plan",
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Report:
    """Return what a statement will do; ``mode`` is ``plan`` or ``source``.

    Raises:
        InvalidRequestError: the text is no statement that changes a Delta table.
    """
    return _asked(spark, text, args, fields, lambda request: request.explain(mode))


def dry_run_text(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Report:
    """Return what a statement would do, with the counts of its execution; changes nothing.

    Raises:
        pyspark.errors.ParseException: the text is wrong.
        InvalidRequestError: the text is no statement that changes a Delta table.
    """
    return _asked(spark, text, args, fields, lambda request: request.dry_run())


def preview_text(
    spark: SparkSession,
    text: str,
    *,
    limit: int,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Return rows that a MERGE, an UPDATE or a DELETE would change, before and after.

    Raises:
        InvalidRequestError: the text is no statement that changes a Delta table.
        UnsupportedError: the statement changes no rows.
    """

    def preview(request: Request) -> DataFrame:
        if not isinstance(request, ChangeRequest):
            raise UnsupportedError(
                "Only MERGE, UPDATE and DELETE change rows that could be shown. Use dry_run for "
                "the files that other statements change.",
                code=ErrorCode.OPERATION_NOT_ALLOWED,
            )
        return request.preview(limit)

    return _asked(spark, text, args, fields, preview)


def _asked(
    spark: SparkSession,
    text: str,
    args: Arguments | None,
    fields: Mapping[str, Any] | None,
    ask: Callable[[Request], Answer],
) -> Answer:
    with TemporaryViews() as views:
        filled = with_values(spark, text, args=args, fields=fields, names=views)
        statement = parse(filled)
        if isinstance(statement, ExplainStatement):
            filled, statement = statement.text, statement.statement
        if isinstance(statement, Rejected):
            raise refusal(spark, statement, filled)
        request = None
        if isinstance(statement, Explained):
            request = requested(spark, statement, text=filled, views=views)
        if request is None:
            shown = " ".join(text.split())[:80]
            raise InvalidRequestError(
                "Only MERGE, UPDATE, DELETE, OPTIMIZE, VACUUM, RESTORE and CONVERT TO DELTA on "
                f"Delta tables can be explained or tried here, not {shown!r}.",
                code=ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
            )
        return ask(request)
