"""INSERT, as Spark's parser reads it, on tables of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.insert import InsertRequest, plan_insert, value_columns
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.schema.types import StructField
from puredelta.spark.statements.statement_plans import InsertInto, query_rows
from puredelta.sql.relations.names import find_location
from puredelta.sql.text.default_keyword import has_default, with_defaults
from puredelta.sql.text.table_name import TableName


def insert(
    spark: SparkSession,
    statement: InsertInto,
    *,
    text: str,
    parse: Callable[[str], InsertInto],
) -> bool:
    """Execute the statement; False if the table is not ours.

    ``text`` is what was parsed, and ``parse`` does so once more when ``DEFAULT`` has become
    values in it.

    Raises:
        UnsupportedError: a clause that is not implemented.
        InvalidRequestError, pyspark.errors.AnalysisException: what `plan_insert` raises.
    """
    location = find_location(spark, TableName(statement.name))
    if location is None:
        return False
    _require_possible(statement)
    log, request = TableLog.open(location), _request(statement)
    query = statement.query
    if has_default(text):
        columns = value_columns(log.snapshot().config, request)
        query = parse(with_defaults(text, [_default(column) for column in columns])).query
    plan_insert(_rows(spark, query), log, request).run()
    return True


def insert_all(spark: SparkSession, statements: Sequence[InsertInto]) -> bool:
    """Execute several statements over the same rows, each in a commit of its own.

    All of them are checked before the first one is executed. False if no table is ours.

    Raises:
        UnsupportedError: a clause that is not implemented, or some tables are not ours.
        InvalidRequestError, pyspark.errors.AnalysisException: what `plan_insert` raises.
    """
    found = {s.name: find_location(spark, TableName(s.name)) for s in statements}
    locations = {name: location for name, location in found.items() if location is not None}
    if not locations:
        return False
    others = [str(TableName(name)) for name in found if name not in locations]
    if others:
        raise UnsupportedError(
            "Several INSERTs behind one FROM must all be into Delta tables, and these are not: "
            f"{', '.join(others)}. Write one statement for each.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
            tables=tuple(others),
        )
    for statement in statements:
        _require_possible(statement)
    planned = [
        plan_insert(
            _rows(spark, statement.query),
            TableLog.open(locations[statement.name]),
            _request(statement),
        )
        for statement in statements
    ]
    for one in planned:
        one.run()
    return True


def _request(statement: InsertInto) -> InsertRequest:
    return InsertRequest(
        columns=statement.columns,
        partition=statement.partition,
        open_partition=statement.open_partition,
        by_name=statement.by_name,
        overwrite=statement.overwrite,
        replace_where=statement.replace_where,
        evolves=statement.evolves,
    )


def _rows(spark: SparkSession, query: Any) -> DataFrame:
    """Return the rows of the query.

    Raises:
        InvalidRequestError: ``DEFAULT`` is a part of an expression (DEFAULT_PLACEMENT_INVALID).
        pyspark.errors.AnalysisException: Spark cannot resolve the query.
    """
    try:
        return query_rows(spark, query)
    except AnalysisException as error:
        unknown = (error.getMessageParameters() or {}).get("objectName", "")
        if unknown.strip("`").upper() != "DEFAULT":
            raise
        raise InvalidRequestError(
            "A DEFAULT keyword in a MERGE, INSERT, UPDATE, or SET VARIABLE command could not be "
            "directly assigned to a target column because it was part of an expression. Write "
            "the keyword alone.",
            code=ErrorCode.DEFAULT_PLACEMENT_INVALID,
        ) from error


def _require_possible(statement: InsertInto) -> None:
    if statement.if_not_exists:
        raise UnsupportedError(
            "INSERT with IF NOT EXISTS in the PARTITION spec is not supported.",
            code=ErrorCode.INSERT_PARTITION_SPEC_IF_NOT_EXISTS,
        )
    if statement.beyond is not None:
        raise UnsupportedError(
            f"INSERT with {statement.beyond} is not supported. Use REPLACE WHERE, df.write with "
            "the options replaceWhere or partitionOverwriteMode, or a MERGE.",
            code=ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
        )


def _default(column: StructField) -> str:
    """Return what ``DEFAULT`` means in the place of a value for a column."""
    return str(column.metadata.get(CURRENT_DEFAULT, "NULL"))
