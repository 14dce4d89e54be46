"""The partitions that an OPTIMIZE considers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from puredelta.commands.dml.prune.whole_files import matching_files
from puredelta.commands.dml.resolve.statement import ResolvedStatement
from puredelta.commands.dml.resolve.update_delete import resolve_rows
from puredelta.commands.dml.spec.update_delete import DeleteSpec
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.session import SessionInfo

_UNRESOLVED = "UNRESOLVED_COLUMN"


def files_where(spark: SparkSession, snapshot: Snapshot, predicates: Sequence[str]) -> FileTable:
    """Return the files in partitions for which all conditions are true.

    Runs no job on a classic session.

    Raises:
        InvalidRequestError: a condition is no text (FAILED_RECOGNIZE_PREDICATE), asks for more
            than partition columns (NON_PARTITION_COLUMN_REFERENCE), has a subquery
            (UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES) or is no boolean.
    """
    kept = snapshot
    for predicate in predicates:
        statement = _resolved(spark, predicate, snapshot.config)
        kept = kept.with_files(matching_files(spark, kept, statement))
    return kept.files


def _resolved(spark: SparkSession, predicate: str, config: TableConfig) -> ResolvedStatement:
    """Resolve a condition as that of a DELETE, whose files go as a whole."""
    try:
        statement = resolve_rows(
            DeleteSpec(condition=predicate),
            target_rows=table_identity(spark, config.schema),
            config=config,
            session=SessionInfo.of(spark),
        )
    except ParseException as error:
        raise InvalidRequestError(
            f"Cannot recognize the predicate '{predicate}'",
            code=ErrorCode.FAILED_RECOGNIZE_PREDICATE,
            predicate=predicate,
        ) from error
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith(_UNRESOLVED):
            raise
        name = (error.getMessageParameters() or {}).get("objectName", predicate)
        raise _not_by_partition(name.replace("`", ""), config) from error
    except InvalidRequestError as error:
        if error.code is not ErrorCode.UNSUPPORTED_SUBQUERY:
            raise
        raise InvalidRequestError(
            "Subquery is not supported in partition predicates.",
            code=ErrorCode.UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES,
            predicate=predicate,
        ) from error
    (clause,) = statement.not_matched_by_source
    asked = frozenset() if clause.condition is None else clause.condition.target_columns
    if others := sorted(asked - set(config.partition_columns)):
        raise _not_by_partition(others[0], config)
    return statement


def _not_by_partition(name: str, config: TableConfig) -> InvalidRequestError:
    return InvalidRequestError(
        f"Predicate references non-partition column '{name}'. Only the partition columns may be "
        f"referenced: [{', '.join(config.partition_columns)}]",
        code=ErrorCode.NON_PARTITION_COLUMN_REFERENCE,
        column=name,
    )
