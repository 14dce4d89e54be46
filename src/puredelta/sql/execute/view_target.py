"""Temporary views as targets: a view that shows a table as it is stands for the table (M-31)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.commands.dml.spec.merge import Star, Update
from puredelta.commands.dml.spec.update_delete import operation_name
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.view_origin import ViewOrigin, find_view_origin
from puredelta.spark.session.identifiers import display_name, parse_name
from puredelta.sql.parse.statement import MergeStatement, RowStatement
from puredelta.sql.text.table_name import TableName


def find_view(spark: SparkSession, target: TableName) -> ViewOrigin | None:
    """Return what the target shows if it is a temporary view over one of our tables."""
    if len(target.parts) != 1:
        return None
    return find_view_origin(spark, target.parts[0])


def require_whole_table(view: ViewOrigin, name: TableName, statement: RowStatement) -> None:
    """Refuse a view that is not the table: what it does not show could be lost.

    A MERGE cannot assign a field inside a column through a view either, as in delta-spark.

    Raises:
        UnsupportedError: the view filters, computes, renames or leaves out columns.
        InvalidRequestError: the view shows a version that was asked for, by number or time
            (DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION), or a MERGE assigns a field
            (DELTA_MERGE_UNEXPECTED_ASSIGNMENT_KEY).
    """
    operation = "MERGE" if isinstance(statement, MergeStatement) else operation_name(statement.spec)
    if view.table.is_time_travel:
        raise InvalidRequestError(
            "Expect a full scan of the latest version of the Delta source, but found a historical "
            f"scan of version {view.table.version}: the view {name} shows a version that was asked "
            f"for. Name the table itself: delta.`{view.root_uri}`.",
            code=ErrorCode.FAILED_SCAN_WITH_HISTORICAL_VERSION,
            historical_version=view.table.version,
            view=str(name),
        )
    config = TableLog.open(view.root_uri).snapshot().config
    table = config.schema
    as_it_is = view.is_plain and view.columns == table.names
    if config.generated_columns and not as_it_is and operation != "DELETE":  # M-31
        raise InvalidRequestError(
            f"{operation} command on a temp view referring to a Delta table that contains "
            f"generated columns is not supported. Please run the {operation} command on the Delta "
            f"table directly: delta.`{view.root_uri}`.",
            code=ErrorCode.OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS,
            operation=operation,
        )
    if not view.is_plain or set(view.columns) != set(table.names):
        raise UnsupportedError(
            f"{operation} of the view {name} is not possible: a view may be a target only if it "
            "shows every column of a table under its own name and nothing else. Name the table "
            f"itself: delta.`{view.root_uri}`.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
            view=str(name),
        )
    if isinstance(statement, MergeStatement):
        _require_whole_columns(name, statement)


def _require_whole_columns(name: TableName, statement: MergeStatement) -> None:
    qualifier = statement.target.alias or name.parts[-1]
    for clause in statement.spec.clauses:
        if isinstance(clause.action, Update) and clause.action.assignments is not Star.STAR:
            for assignment in clause.action.assignments:
                _require_whole_column(assignment.column, qualifier)


def _require_whole_column(column: str, qualifier: str) -> None:
    parts = parse_name(column)
    if len(parts) > 1 and parts[0].lower() == qualifier.lower():
        parts = parts[1:]
    if len(parts) > 1:
        raise InvalidRequestError(
            f"Unexpected assignment key: {display_name(parts)}. Through a view only whole columns "
            "can be assigned; name the table itself to assign a field.",
            code=ErrorCode.MERGE_UNEXPECTED_ASSIGNMENT_KEY,
            key=display_name(parts),
        )
