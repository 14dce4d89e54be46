"""Execution of INSERT."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dependent_rules import require_harmless
from puredelta.commands.write.insert import InsertRequest, PlannedInsert, plan_insert, value_columns
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.schema.types import StructField
from puredelta.spark.jvm.statement_plans import InsertInto, Query
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.storage import open_log
from puredelta.statements.execute.stated import StatementText
from puredelta.statements.execute.views import find_insert_location
from puredelta.statements.parse.expression_text import has_default, with_defaults
from puredelta.statements.parse.table_name import TableName


def insert(spark: SparkSession, statements: Sequence[InsertInto], *, text: StatementText) -> bool:
    """Execute one statement, or several over the same rows, each with a separate commit.

    All of them are checked before the first one is executed. ``text`` is the parsed text; it is
    parsed again after ``DEFAULT`` was replaced by values. False if no table is a Delta table.

    Raises:
        UnsupportedError: a clause that is not implemented, or some tables are no Delta tables.
        InvalidRequestError, pyspark.errors.AnalysisException: an error of `plan_insert`.
    """
    found = {s.name: find_insert_location(spark, TableName(s.name)) for s in statements}
    locations = {name: location for name, location in found.items() if location is not None}
    if not locations:
        return False
    others = [str(TableName(name)) for name in found if name not in locations]
    if others:
        raise UnsupportedError(
            Message.OPERATION_NOT_ALLOWED_SEVERAL_INSERTS,
            names=", ".join(others),
            tables=tuple(others),
        )
    for statement in statements:
        _require_possible_insert(statement)
    has_values = len(statements) == 1 and has_default(text.text)

    def planned(statement: InsertInto) -> PlannedInsert:
        log, request = open_log(spark, locations[statement.name]), _request(statement)
        query = statement.query
        if has_values:
            config = log.snapshot().config
            require_harmless(config, settings_of(spark))
            query = _query_with_defaults(text, value_columns(config, request))
        return plan_insert(_inserted_rows(text, query), log, request)

    first, *_ = [planned(statement) for statement in statements]
    first.run()
    for statement in statements[1:]:
        planned(statement).run()  # again: the one before may have changed what it reads
    return True


def _query_with_defaults(text: StatementText, columns: Sequence[StructField]) -> Query:
    """Return the query of the rows with each ``DEFAULT`` replaced by its value."""
    values = [str(column.metadata.get(CURRENT_DEFAULT, "NULL")) for column in columns]
    planned = text.replaced(with_defaults(text.text, values)).read()
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


def _inserted_rows(text: StatementText, query: Query) -> DataFrame:
    """Return the rows of the query, where ``DEFAULT`` may not be part of an expression."""
    try:
        return text.rows(query)
    except AnalysisException as error:
        unknown = (error.getMessageParameters() or {}).get("objectName", "")
        if unknown.strip("`").upper() != "DEFAULT":
            raise
        raise InvalidRequestError(Message.DEFAULT_PLACEMENT_INVALID) from error


def _require_possible_insert(statement: InsertInto) -> None:
    if statement.if_not_exists:
        raise UnsupportedError(Message.INSERT_PARTITION_SPEC_IF_NOT_EXISTS)
    if statement.beyond is not None:
        raise UnsupportedError(
            Message.TABLE_OPERATION_NOT_SUPPORTED_INSERT, beyond=statement.beyond
        )
