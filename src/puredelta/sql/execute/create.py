"""CREATE and REPLACE TABLE, as Spark's parser reads them, for Delta tables."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.create.as_select import FirstRows, create_table_as
from puredelta.commands.create.create_table import CreateMode, create_table
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import NewTable, define_registered
from puredelta.commands.definition.columns import column
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.spark.catalog.catalog_entries import entry_name, is_taken
from puredelta.spark.catalog.relation_cache import query_rows
from puredelta.spark.jvm.statement_plans import StatedColumn, StatedTable
from puredelta.spark.session.formats import is_delta
from puredelta.spark.session.open_log import open_log
from puredelta.sql.text.table_name import TableName

_PROPERTY_PREFIX = "delta."


def create(spark: SparkSession, statement: StatedTable) -> bool:
    """Execute the statement; False if it makes a table of another format.

    Raises:
        InvalidRequestError: the name or the path is taken, or the definition is no table's.
        UnsupportedError: buckets, partition transforms, or constraints between the columns.
        TableNotFoundError: there is nothing to replace.
    """
    if not is_delta(spark, statement.provider):
        return False
    mode = CreateMode.of(
        creates=statement.creates,
        replaces=statement.replaces,
        if_not_exists=statement.if_not_exists,
    )
    path = TableName(statement.name).path
    name = None if path is not None else entry_name(spark, statement.name)
    if path is None and name is None:
        return False
    _require_possible(statement)
    definition = _definition(statement)
    if name is not None:
        if statement.if_not_exists and is_taken(spark, name):
            return True
        rows = _rows(spark, statement)
        location = statement.location
        table = NewTable(name=name, location=location, definition=definition, rows=rows)
        define_registered(spark, table, mode=mode)
    elif path is not None:
        require_one_location(spark, path, statement.location)
        log, rows = open_log(spark, path), _rows(spark, statement)
        if rows is None:
            create_table(spark, log, definition, mode=mode)
        else:
            create_table_as(FirstRows(rows=rows), log, definition, mode=mode)
    return True


def _rows(spark: SparkSession, statement: StatedTable) -> DataFrame | None:
    return None if statement.query is None else query_rows(spark, statement.query)


def _definition(statement: StatedTable) -> TableDefinition:
    return TableDefinition(
        columns=StructType(tuple(map(_column, statement.columns))),
        partition_columns=statement.partition_by,
        clustering_columns=statement.cluster_by,
        properties={**_options(statement), **statement.properties},
        description=statement.comment,
    )


def _options(statement: StatedTable) -> dict[str, str]:
    """Return the properties that OPTIONS give a table.

    As in delta-spark: CREATE TABLE keeps every option twice, AS SELECT and the
    replacements keep what is a property of Delta.
    """
    options = statement.options
    if statement.replaces or statement.query is not None:
        return {k: v for k, v in options.items() if k.lower().startswith(_PROPERTY_PREFIX)}
    return {**options, **{f"option.{key}": value for key, value in options.items()}}


def _column(definition: StatedColumn) -> StructField:
    return column(
        definition.name,
        definition.type,
        nullable=definition.nullable,
        generated_as=definition.generated_as,
        comment=definition.comment,
        default=definition.default,
    )


def _require_possible(statement: StatedTable) -> None:
    if statement.other_layout is not None:
        what = "Bucketing" if statement.buckets else "Partitioning by expressions"
        code = ErrorCode.OPERATION_NOT_ALLOWED
        raise UnsupportedError(
            f"Operation not allowed: `{what}` ({statement.other_layout}) is not supported for "
            "Delta tables. Partition by a generated column, or use CLUSTER BY.",
            code=ErrorCode.OPERATION_NOT_ALLOWED_DETAIL if statement.buckets else code,
            layout=statement.other_layout,
        )
    if statement.has_constraints:
        raise UnsupportedError(
            "Constraints between the columns of CREATE TABLE are not supported for Delta tables. "
            "Add them behind: ALTER TABLE ... ADD CONSTRAINT name CHECK (condition).",
            code=ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
        )


def require_one_location(spark: SparkSession, path: str, location: str | None) -> None:
    """Require a location that is stated beside a path to be the same place.

    Raises:
        InvalidRequestError: it is another one (DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE).
    """
    if location is not None and not open_log(spark, path).is_at(location):
        raise InvalidRequestError(
            f"CREATE TABLE contains two different locations: {path} and {location}. You can remove "
            "the LOCATION clause from the CREATE TABLE statement.",
            code=ErrorCode.AMBIGUOUS_PATHS_IN_CREATE_TABLE,
            identifier=path,
            location=location,
        )
