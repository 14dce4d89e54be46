"""Execution of ALTER TABLE, SHOW and DESCRIBE."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from typing_extensions import assert_never

from puredelta.commands.alter.change import cluster_table_by, require_table_at
from puredelta.commands.alter.columns import (
    ColumnEdit,
    NewColumn,
    Unset,
    add_table_columns,
    change_table_columns,
    drop_table_columns,
    rename_table_column,
    replace_table_columns,
    sync_identity,
)
from puredelta.commands.alter.constraints import add_check_constraint, drop_check_constraint
from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.properties import set_table_properties, unset_table_properties
from puredelta.commands.defined_columns import COMMENT
from puredelta.commands.described import (
    DescribedTable,
    column_rows,
    describe_column,
    describe_rows,
    detail_rows,
    other_detail_rows,
    partition_value_rows,
    property_rows,
)
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.spark.catalog.catalog_entries import (
    entry_name,
    find_table,
    stated_location,
)
from puredelta.spark.catalog.unity_entries import shown_table
from puredelta.spark.jvm.catalog import CatalogTable
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.catalogs import find_identifier, require_loaded
from puredelta.spark.session.session import no_rows
from puredelta.spark.session.storage import open_log
from puredelta.statements.names.names import (
    find_catalog_name,
    find_location,
    find_other_table,
    is_known,
    is_view,
    names_files,
    not_found,
    open_table,
    require_table,
    resolve_name,
)
from puredelta.statements.parse.column_text import ColumnDefinition
from puredelta.statements.parse.statement import (
    AddCheck,
    AddColumns,
    AlterStatement,
    ChangeColumns,
    ClusterBy,
    ColumnAction,
    ColumnsChange,
    DescribeDetail,
    DescribeTable,
    DropColumns,
    DropConstraint,
    DropFeature,
    RenameColumn,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    ShowStatement,
    SyncIdentity,
    TableChange,
    UnsetProperties,
)
from puredelta.statements.parse.table_name import QuotedPath, TableName


def alter(spark: SparkSession, statement: AlterStatement, *, text: str) -> DataFrame | None:
    """Execute a change of a Delta table; None for any other table, and where Spark does the rest.

    Spark's parser checks the clauses it knows, so their errors are Spark's own.
    """
    table, change = resolve_name(spark, statement.table), statement.change
    location = find_location(spark, table)
    if location is None:
        _require_no_view(spark, table, statement)
        return None
    if statement.known_to_spark:
        require_parsable(spark, text)
    if isinstance(change, SetLocation) and find_identifier(spark, table.parts) is not None:
        raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_CATALOG_LOCATION, table=table)
    if isinstance(change, SetLocation):
        _require_location(spark, table, location, change.location)
        return None  # Spark changes the catalog entry itself
    log = require_table(spark, location, table)
    _apply(spark, log, change)
    return no_rows(spark)


def _require_no_view(spark: SparkSession, name: TableName, statement: AlterStatement) -> None:
    """Refuse a change of a view where Spark cannot: it has an internal error, or no such clause.

    Raises:
        InvalidRequestError: it is a view (EXPECT_TABLE_NOT_VIEW).
        TableNotFoundError: it is like ``parquet.`/path` ``, or Spark has no such clause, and there
            is no table.
    """
    change = next((kind for kind in _NOT_OF_VIEWS if isinstance(statement.change, kind)), None)
    if change is None:
        return
    if is_view(spark, name):
        operation = f"ALTER TABLE ... {_NOT_OF_VIEWS[change]}"
        raise InvalidRequestError(
            Message.EXPECT_TABLE_NOT_VIEW, operation=operation, view=str(name)
        )
    is_of_delta = change in (DropFeature, SyncIdentity)
    if names_files(name) or (is_of_delta and not is_known(spark, name)):
        raise not_found(name)


_NOT_OF_VIEWS: Mapping[type[TableChange], str] = {
    AddCheck: "ADD CONSTRAINT",
    DropConstraint: "DROP CONSTRAINT",
    DropFeature: "DROP FEATURE",
    SyncIdentity: "ALTER COLUMN ... SYNC IDENTITY",
}


def _require_location(spark: SparkSession, table: TableName, now: str, wanted: str) -> None:
    if table.path is not None:
        raise InvalidRequestError(
            Message.CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER, table_shown=table, table=str(table)
        )
    entry = entry_name(spark, table.parts)
    place = wanted if entry is None else stated_location(spark, entry, wanted)
    require_table_at(spark, open_log(spark, now), open_log(spark, place))


def _apply(spark: SparkSession, log: TableLog, change: TableChange) -> None:
    """Make one change of a table, in one commit; DROP FEATURE takes several."""
    match change:
        case SetProperties(properties):
            set_table_properties(spark, log, properties)
        case UnsetProperties():
            unset_table_properties(spark, log, change.keys, if_exists=True)  # as delta-spark
        case AddColumns() | ChangeColumns() | RenameColumn() | DropColumns() | ReplaceColumns():
            _change_columns(spark, log, change)
        case SyncIdentity(path):
            sync_identity(spark, log, path)
        case AddCheck(name, condition):
            add_check_constraint(spark, log, name, condition)
        case DropConstraint():
            drop_check_constraint(spark, log, change.name, if_exists=change.if_exists)
        case ClusterBy(columns):
            cluster_table_by(spark, log, columns)
        case DropFeature():
            truncates = change.truncate_history
            drop_feature_support(spark, log, change.name, truncate_history=truncates)
        case _:
            assert_never(change)


def _change_columns(spark: SparkSession, log: TableLog, change: ColumnsChange) -> None:
    match change:
        case AddColumns(columns):
            add_table_columns(spark, log, [_new_column(column) for column in columns])
        case ChangeColumns(columns):
            edits = [(column.path, _edit(column)) for column in columns]
            change_table_columns(spark, log, edits)
        case RenameColumn(path, new_name):
            rename_table_column(spark, log, path, new_name)
        case DropColumns():
            drop_table_columns(spark, log, change.paths, if_exists=change.if_exists)
        case ReplaceColumns(columns):
            definition = T.StructType([_new_column(column).field for column in columns])
            replace_table_columns(spark, log, definition)
        case _:
            assert_never(change)


def _new_column(column: ColumnDefinition) -> NewColumn:
    given = {COMMENT: column.comment, CURRENT_DEFAULT: column.default}
    metadata = {key: value for key, value in given.items() if value is not None}
    data_type = T.DataType.fromDDL(column.data_type)
    return NewColumn(
        field=T.StructField(column.path[-1], data_type, column.nullable, metadata),
        parent=column.path[:-1],
        place=column.position,
    )


def _edit(column: ColumnAction) -> ColumnEdit:
    kind = column.data_type
    return ColumnEdit(
        data_type=None if kind is None else T.DataType.fromDDL(kind),
        nullable=column.nullable,
        comment=column.comment,
        default=Unset.DEFAULT if column.drops_default else column.default,
        place=column.position,
    )


def describe_detail(spark: SparkSession, statement: DescribeDetail) -> DataFrame:
    """Execute ``DESCRIBE DETAIL``."""
    table, name = statement.table, None
    if not isinstance(table, QuotedPath):
        table = resolve_name(spark, table)
        name = find_catalog_name(spark, table)
        other = None if name is not None else find_other_table(spark, table)
        if other is not None:
            return other_detail_rows(spark, other)
    return detail_rows(
        spark, open_table(spark, table, "DESCRIBE DETAIL").snapshot(), catalog_name=name
    )


def show(spark: SparkSession, statement: ShowStatement) -> DataFrame | None:
    """Execute a statement that shows a Delta table; None for any other table."""
    name = resolve_name(spark, statement.table)
    if isinstance(statement, ShowColumns) and statement.database:
        name = TableName((*statement.database, name.parts[-1]))
    location = find_location(spark, name)
    if location is None:
        return None
    identifier = None if name.path is not None else find_identifier(spark, name.parts)
    snapshot = require_table(spark, location, name).snapshot()
    if identifier is not None:
        known: CatalogTable | None = shown_table(require_loaded(spark, identifier))
        location = snapshot.root_uri
    else:
        known = None if name.path is not None else find_table(spark, name.parts)
    described = DescribedTable(snapshot=snapshot, location=location, known=known)
    return _rows(spark, statement, described)


def _rows(spark: SparkSession, statement: ShowStatement, table: DescribedTable) -> DataFrame:
    match statement:
        case ShowProperties():
            return property_rows(spark, table, statement.key)
        case ShowColumns():
            return column_rows(spark, table)
        case ShowPartitions():
            return partition_value_rows(spark, table, statement.values)
        case ShowCreate():
            raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_SHOW_CREATE_TABLE)
        case DescribeTable():
            if statement.column is not None:
                return describe_column(spark, table, statement.column)
            return describe_rows(spark, table, extended=statement.extended)
        case _:
            assert_never(statement)
