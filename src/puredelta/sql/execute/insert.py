"""INSERT, as Spark's parser reads it, into Delta tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.stored_expressions import require_harmless
from puredelta.commands.write.insert import InsertRequest, plan_insert, value_columns
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.schema.types import StructField
from puredelta.spark.catalog.relation_cache import query_rows
from puredelta.spark.jvm.statement_plans import InsertInto, parse_plan
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.session import settings_of
from puredelta.sql.relations.names import find_location
from puredelta.sql.text.default_keyword import has_default, with_defaults
from puredelta.sql.text.table_name import TableName


def insert(spark: SparkSession, statements: Sequence[InsertInto], *, text: str) -> bool:
    """Execute one statement, or several over the same rows, each in a commit of its own.

    All of them are checked before the first one is executed. ``text`` is what was parsed; Spark
    parses it again where ``DEFAULT`` has become values. False if no table is a Delta table.

    Raises:
        UnsupportedError: a clause that is not implemented, or some tables are no Delta tables.
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
    has_values = len(statements) == 1 and has_default(text)
    planned = []
    for statement in statements:
        log, request = open_log(spark, locations[statement.name]), _request(statement)
        query = statement.query
        if has_values:
            config = log.snapshot().config
            require_harmless(config, settings_of(spark))
            query = _query_with_defaults(spark, text, value_columns(config, request))
        planned.append(plan_insert(_rows(spark, query), log, request))
    for one in planned:
        one.run()
    return True


def _query_with_defaults(spark: SparkSession, text: str, columns: Sequence[StructField]) -> Any:
    """Return the plan of the rows where what ``DEFAULT`` means stands in its place."""
    values = [str(column.metadata.get(CURRENT_DEFAULT, "NULL")) for column in columns]
    planned = parse_plan(spark, with_defaults(text, values))
    assert isinstance(planned, InsertInto)  # noqa: S101 - values do not make it another statement
    return planned.query


def _request(statement: InsertInto) -> InsertRequest:
    return InsertRequest(
        name=quote_name(statement.name),
        columns=statement.columns,
        partition=statement.partition,
        open_partition=statement.open_partition,
        by_name=statement.by_name,
        overwrite=statement.overwrite,
        replace_where=statement.replace_where,
        evolves=statement.evolves,
    )


def _rows(spark: SparkSession, query: Any) -> DataFrame:
    """Return the rows of the query; ``DEFAULT`` may be no part of an expression there."""
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
