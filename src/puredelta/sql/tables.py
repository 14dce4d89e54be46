"""CREATE TABLE ... USING delta and INSERT, as Spark's parser reads them, on tables of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct
from typing_extensions import assert_never

from puredelta.commands.create.columns import column
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import NewTable, create_registered
from puredelta.commands.create.run import CreateMode, create_table
from puredelta.commands.insert import insert_rows
from puredelta.commands.write import write_table
from puredelta.commands.write_options import SaveMode
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.table_log import TableLog
from puredelta.protocol.types import StructField, StructType
from puredelta.spark.catalog_entries import entry_name, is_taken
from puredelta.spark.session import is_connect
from puredelta.spark.statement_plans import (
    CreateTable,
    InsertInto,
    StatedColumn,
    parse_plan,
    query_rows,
)
from puredelta.sql.cursor import Cursor
from puredelta.sql.names import find_location
from puredelta.sql.paths import with_views
from puredelta.sql.syntax_error import SqlSyntaxError
from puredelta.sql.table_name import ComputedName, TableName
from puredelta.sql.views import TemporaryViews

_FORMAT = "delta"
_USING = re.compile(r"\busing\s+`?delta\b", re.IGNORECASE)


def is_table_statement(spark: SparkSession, text: str) -> bool:
    """Tell whether a text is ``CREATE TABLE`` with format delta, or ``INSERT`` into our table.

    Fields and parameters need no values yet.

    Raises:
        UnsupportedError: the session is a Spark Connect one.
    """
    head = _head(text)
    if head is None:
        return False
    if head.creates:
        found = _USING.search(text) is not None
    else:
        found = find_location(spark, head.name) is not None
    if found and is_connect(spark):
        raise not_on_connect("CREATE TABLE and INSERT")
    return found


def not_on_connect(what: str) -> UnsupportedError:
    """Return the error for what needs the session catalog or Spark's parser at hand."""
    return UnsupportedError(
        f"{what} with format delta need a classic session: a Spark Connect client has no access "
        'to the session catalog. Write to a path: df.write.format("delta").save(path), or MERGE.',
        code=ErrorCode.UNSUPPORTED_ON_CONNECT,
    )


def run_table_statement(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute a statement that `is_table_statement`; None if it is Spark's after all.

    A query inside may name tables by path.

    Raises:
        pyspark.errors.ParseException: the text is wrong.
        UnsupportedError: a clause that is not implemented.
        DeltaError: what the commands raise.
    """
    head = _head(text)
    if head is None:
        return None
    with TemporaryViews() as views:
        rest = with_views(spark, text[head.length :], views)
        statement = parse_plan(spark, text[: head.length] + rest)
        match statement:
            case CreateTable():
                done = _create(spark, statement)
            case InsertInto():
                done = _insert(spark, statement)
            case None:
                return None
            case _:
                assert_never(statement)
    return spark.createDataFrame([], SparkStruct([])) if done else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """How a statement begins, up to the name of its table."""

    creates: bool
    name: TableName
    length: int
    """Of the text up to behind the name."""


def _head(text: str) -> _Head | None:
    cursor = Cursor(text)
    try:
        creates = cursor.accept("CREATE", "TABLE")
        if creates:
            cursor.accept("IF", "NOT", "EXISTS")
        elif cursor.accept("INSERT", "INTO") or cursor.accept("INSERT", "OVERWRITE"):
            cursor.accept("TABLE")
        else:
            return None
        name = cursor.table()
    except SqlSyntaxError:
        return None
    if isinstance(name, ComputedName):
        return None
    return _Head(creates=creates, name=name, length=cursor.offset)


def _create(spark: SparkSession, statement: CreateTable) -> bool:
    if (statement.provider or "").lower() != _FORMAT:
        return False
    _require_simple(statement)
    definition = TableDefinition(
        columns=StructType(tuple(_column(c) for c in statement.columns)),
        partition_columns=statement.partition_by,
        properties=statement.properties,
        description=statement.comment,
    )
    rows = None if statement.query is None else query_rows(spark, statement.query)
    path = TableName(statement.name).path
    if path is not None:
        _create_at(spark, TableLog.open(path), statement, definition, rows)
        return True
    name = entry_name(spark, statement.name)
    if name is None:
        return False
    if statement.if_not_exists and is_taken(spark, name):
        return True
    table = NewTable(name=name, location=statement.location, definition=definition, rows=rows)
    create_registered(spark, table)
    return True


def _create_at(
    spark: SparkSession,
    log: TableLog,
    statement: CreateTable,
    definition: TableDefinition,
    rows: DataFrame | None,
) -> None:
    if rows is None:
        mode = CreateMode.CREATE_IF_NOT_EXISTS if statement.if_not_exists else CreateMode.CREATE
        create_table(spark, log, definition, mode=mode)
        return
    write_table(
        rows,
        log,
        mode=SaveMode.IGNORE if statement.if_not_exists else SaveMode.ERROR,
        partition_by=definition.partition_columns,
        properties=definition.properties,
        description=definition.description,
    )


def _require_simple(statement: CreateTable) -> None:
    special = [c.name for c in statement.columns if c.is_computed or c.default is not None]
    if special or statement.other_layout is not None:
        what = f"column {special[0]}" if special else statement.other_layout
        raise UnsupportedError(
            f"CREATE TABLE with generated or identity columns, column defaults, CLUSTER BY or "
            f"partition transforms ({what}) is not supported as SQL text. Use "
            "puredelta.DeltaTable.create(spark).",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )


def _column(stated: StatedColumn) -> StructField:
    return column(stated.name, stated.type, nullable=stated.nullable, comment=stated.comment)


def _insert(spark: SparkSession, statement: InsertInto) -> bool:
    location = find_location(spark, TableName(statement.name))
    if location is None:
        return False
    if statement.beyond is not None:
        raise UnsupportedError(
            f"INSERT with {statement.beyond} is not supported as SQL text. Use df.write with the "
            "options replaceWhere or partitionOverwriteMode, or a MERGE.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )
    insert_rows(
        query_rows(spark, statement.query),
        TableLog.open(location),
        columns=statement.columns,
        by_name=statement.by_name,
        overwrite=statement.overwrite,
    )
    return True
