"""Conditions on partition columns alone: those of OPTIMIZE, and of some ``replaceWhere``."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from puredelta.commands.dml.resolve.resolved_statement import ResolvedStatement
from puredelta.commands.dml.resolve.update_delete import resolve_rows
from puredelta.commands.dml.spec import DeleteSpec
from puredelta.errors import ErrorCode, InvalidRequestError, Message
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.bound_columns import under_alias
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.session import SessionInfo

_NO_COLUMN = ("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND", "INVALID_EXTRACT")


def resolve_partition_condition(
    spark: SparkSession, predicate: str, config: TableConfig, *, alias: str | None = None
) -> ResolvedStatement:
    """Resolve a condition as that of a DELETE of whole files; runs no job.

    ``alias`` is the name of the table in it, if it has one.

    Raises:
        InvalidRequestError: it is no text (FAILED_RECOGNIZE_PREDICATE), reads other columns
            than partition columns (NON_PARTITION_COLUMN_REFERENCE), has a subquery
            (UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES) or is no boolean.
    """
    try:
        statement = resolve_rows(
            DeleteSpec(condition=predicate),
            target_rows=under_alias(table_identity(spark, config.schema), alias),
            config=config,
            session=SessionInfo.of(spark),
        )
    except ParseException as error:
        raise InvalidRequestError(
            Message.FAILED_RECOGNIZE_PREDICATE, predicate=predicate
        ) from error
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith(_NO_COLUMN):
            raise
        name = (error.getMessageParameters() or {}).get("objectName", predicate)
        raise _not_by_partition(name.replace("`", ""), config) from error
    except InvalidRequestError as error:
        if error.code is not ErrorCode.UNSUPPORTED_SUBQUERY:
            raise
        raise InvalidRequestError(
            Message.UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES, predicate=predicate
        ) from error
    (clause,) = statement.not_matched_by_source
    asked = frozenset() if clause.condition is None else clause.condition.target_columns
    if others := sorted(asked - set(config.partition_columns)):
        raise _not_by_partition(others[0], config)
    return statement


def _not_by_partition(name: str, config: TableConfig) -> InvalidRequestError:
    return InvalidRequestError(
        Message.NON_PARTITION_COLUMN_REFERENCE,
        partition_columns=", ".join(config.partition_columns),
        column=name,
    )
