"""ALTER TABLE handed to the commands that change a table's definition."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from typing_extensions import assert_never

from puredelta.commands.alter.clustering import cluster_table_by
from puredelta.commands.alter.column_change import ColumnEdit, Unset, change_table_columns
from puredelta.commands.alter.columns import (
    NewColumn,
    add_table_columns,
    drop_table_columns,
    rename_table_column,
)
from puredelta.commands.alter.constraints import add_check_constraint, drop_check_constraint
from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.location import require_table_at
from puredelta.commands.alter.properties import set_table_properties, unset_table_properties
from puredelta.commands.alter.replace_columns import replace_table_columns
from puredelta.commands.alter.sync_identity import sync_identity
from puredelta.commands.definition.columns import COMMENT
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.spark.catalog.catalog_entries import entry_name, follow_columns, stated_location
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.small_frames import no_rows
from puredelta.spark.session.types import to_spark
from puredelta.sql.parse.alter_statement import (
    AddCheck,
    AddColumns,
    AlterStatement,
    ChangeColumns,
    ClusterBy,
    ColumnAction,
    ColumnsChange,
    DropColumns,
    DropConstraint,
    DropFeature,
    RenameColumn,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    SyncIdentity,
    TableChange,
    UnsetProperties,
)
from puredelta.sql.relations.names import find_location, require_table, resolve_name
from puredelta.sql.text.column_text import ColumnDefinition
from puredelta.sql.text.table_name import TableName


def alter(spark: SparkSession, statement: AlterStatement, *, text: str) -> DataFrame | None:
    """Execute a change of a Delta table; None for any other table, and where Spark does the rest.

    Spark's parser judges the clauses it knows, so what is wrong with them is its own error.

    Raises:
        pyspark.errors.ParseException: the text is wrong; says where.
        TableNotFoundError: there is no Delta table at a path.
        DeltaError: what the commands raise.
    """
    table, change = resolve_name(spark, statement.table), statement.change
    location = find_location(spark, table)
    if location is None:
        return None
    if statement.known_to_spark:
        require_parsable(spark, text)
    if isinstance(change, SetLocation):
        _require_location(spark, table, location, change.location)
        return None  # the catalog's entry is Spark's to change
    log = require_table(spark, location, table)
    entry = None if table.path is not None else entry_name(spark, table.parts)
    _apply(spark, log, change)
    if isinstance(change, ColumnsChange) and entry is not None:
        follow_columns(spark, entry, to_spark(log.snapshot().config.schema))
    return no_rows(spark)


def _require_location(spark: SparkSession, table: TableName, now: str, wanted: str) -> None:
    if table.path is not None:
        raise InvalidRequestError(
            f"Cannot change the location of a path based table: {table}. Name a table of the "
            "catalog.",
            code=ErrorCode.CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER,
            table=str(table),
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
