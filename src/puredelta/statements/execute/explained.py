"""Statement text as prepared statements: EXPLAIN, dry runs and previews."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.convert.convert_to_delta import prepare_convert
from puredelta.commands.dml.execute import PreparedChange
from puredelta.commands.optimize import prepare_optimize
from puredelta.commands.restore import prepare_restore
from puredelta.commands.statement.prepared import Prepared
from puredelta.commands.statement.report import Report
from puredelta.commands.vacuum import prepare_vacuum
from puredelta.errors import DeltaError, InvalidRequestError, Message, UnsupportedError
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.names import quote_name
from puredelta.statements.execute.maintenance import vacuum_scope
from puredelta.statements.execute.row_changes import prepare_change
from puredelta.statements.names.names import open_table
from puredelta.statements.names.parameters import Arguments, with_values
from puredelta.statements.names.views import TemporaryViews
from puredelta.statements.parse.changes_clause import without_changes_clauses
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


def prepare(
    spark: SparkSession, statement: Explained, *, text: str, views: TemporaryViews
) -> Prepared[object] | None:
    """Prepare a statement; None if it concerns no Delta table."""
    match statement:
        case MergeStatement() | UpdateStatement() | DeleteStatement():
            return prepare_change(spark, statement, text=text, views=views)
        case OptimizeStatement():
            return prepare_optimize(
                spark, open_table(spark, statement.table, "OPTIMIZE"), statement.spec
            )
        case VacuumStatement():
            return prepare_vacuum(
                spark,
                open_table(spark, statement.table, "VACUUM"),
                retention_hours=statement.retention_hours,
                scope=vacuum_scope(spark, statement, views),
            )
        case RestoreStatement():
            version = statement.state.version
            return prepare_restore(
                spark,
                open_table(spark, statement.table, "RESTORE"),
                version=None if version is None else int(version),
                timestamp=statement.state.timestamp,
            )
        case ConvertStatement():
            return prepare_convert(
                spark,
                quote_name(statement.source.parts),
                statement.partition_schema,
                collect_stats=statement.collect_stats,
            )
        case _:
            assert_never(statement)


Answer = TypeVar("Answer")


def explain(
    spark: SparkSession, statement: ExplainStatement, views: TemporaryViews
) -> DataFrame | None:
    """Return one row, whose column ``plan`` has the plan of a statement; nothing is executed.

    None if the statement concerns no Delta table.
    """
    prepared = prepare(spark, statement.statement, text=statement.text, views=views)
    if prepared is None:
        return None
    report = prepared.explain()
    text = report.to_text(full=statement.format is not ExplainFormat.SIMPLE)
    if statement.format is ExplainFormat.EXTENDED and isinstance(prepared, PreparedChange):
        text += _source_plan(prepared)
    return spark.createDataFrame([(text,)], "plan STRING")


def _source_plan(prepared: PreparedChange) -> str:
    if prepared.source_rows is None:
        return ""
    printed = io.StringIO()
    with redirect_stdout(printed):
        prepared.source_rows.explain(extended=True)
    return f"\nSource, as Spark plans it\n{printed.getvalue().rstrip()}"


def refusal(spark: SparkSession, statement: Rejected, text: str) -> DeltaError:
    """Return the error of a text."""
    if statement.known_to_spark:
        require_parsable(spark, without_changes_clauses(text))
    return statement.error


def explain_text(
    spark: SparkSession,
    text: str,
    *,
    mode: str = "plan",
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Report:
    """Return the plan of a statement; ``mode`` is ``plan`` or ``source``."""

    def explain_prepared(prepared: Prepared[object]) -> Report:
        if isinstance(prepared, PreparedChange):
            return prepared.explain(mode)
        return prepared.explain()

    return _prepared(spark, text, args, fields, explain_prepared)


def dry_run_text(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Report:
    """Return the plan of a statement, with the counts of its execution; changes nothing."""
    return _prepared(spark, text, args, fields, lambda prepared: prepared.dry_run())


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

    def preview(prepared: Prepared[object]) -> DataFrame:
        if not isinstance(prepared, PreparedChange):
            raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_PREVIEW)
        return prepared.preview(limit)

    return _prepared(spark, text, args, fields, preview)


def _prepared(
    spark: SparkSession,
    text: str,
    args: Arguments | None,
    fields: Mapping[str, Any] | None,
    use: Callable[[Prepared[object]], Answer],
) -> Answer:
    with TemporaryViews() as views:
        filled = with_values(spark, text, args=args, fields=fields, names=views)
        statement = parse(filled)
        if isinstance(statement, ExplainStatement):
            filled, statement = statement.text, statement.statement
        if isinstance(statement, Rejected):
            raise refusal(spark, statement, filled)
        prepared = None
        if isinstance(statement, Explained):
            prepared = prepare(spark, statement, text=filled, views=views)
        if prepared is None:
            shown = " ".join(text.split())[:80]
            raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_DETAIL_EXPLAINED, shown=shown)
        return use(prepared)
