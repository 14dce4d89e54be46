"""ADD and DROP CONSTRAINT: CHECK constraints, checked against all existing rows."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.commands.alter.change import changed_config, commit_change, start_change
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import add_constraint, drop_constraint
from puredelta.protocol.features.properties import CONSTRAINT_PREFIX
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.stored_expressions import in_brackets
from puredelta.spark.resolve.sql_text import Fault, check_expression
from puredelta.spark.scan.scan import scan_strictly
from puredelta.spark.session.concurrent_jobs import tagged_jobs
from puredelta.spark.session.delta_conf import ASSUME_DROP_IF_EXISTS

_RESERVED = "__CHAR_VARCHAR_STRING_LENGTH_CHECK__"


def add_check_constraint(spark: SparkSession, log: TableLog, name: str, expression: str) -> int:
    """Add a CHECK constraint that every row fulfils; return the version made.

    One Spark job reads the columns the expression uses. NULL violates it, as FALSE does.

    Raises:
        InvalidRequestError: the name is taken or reserved, the expression is no condition
            over the table's columns, or rows violate it (NEW_CHECK_CONSTRAINT_VIOLATION).
        ConflictError: another writer changed the table meanwhile, or added rows.
    """
    if name.upper() == _RESERVED:
        raise InvalidRequestError(Message.INVALID_CONSTRAINT_NAME, name=name)
    command = start_change(spark, log)
    snapshot = command.snapshot
    old = _find(snapshot, name)
    if old is not None:
        raise InvalidRequestError(Message.CONSTRAINT_ALREADY_EXISTS, old=old, name=name)
    require_condition(spark, name, expression, snapshot.config.schema)
    configuration = {**snapshot.metadata.configuration, _key(name): expression}
    after = changed_config(snapshot.config, replace(snapshot.metadata, configuration=configuration))
    command.transaction.read_files(None, snapshot.files)
    _require_fulfilled(spark, snapshot, expression)
    return commit_change(command, after, operation=add_constraint(name, expression))


def drop_check_constraint(
    spark: SparkSession, log: TableLog, name: str, *, if_exists: bool = False
) -> int:
    """Drop a CHECK constraint; return the version made, also where there was none.

    Raises:
        InvalidRequestError: there is none and ``if_exists`` is false
            (CONSTRAINT_DOES_NOT_EXIST).
        ConflictError: another writer changed the table meanwhile.
    """
    command = start_change(spark, log)
    snapshot = command.snapshot
    old = _find(snapshot, name)
    assumed = ASSUME_DROP_IF_EXISTS.flag(command.session.settings)
    if old is None and not (if_exists or assumed):
        raise InvalidRequestError(
            Message.CONSTRAINT_DOES_NOT_EXIST,
            root_uri=snapshot.root_uri,
            assume_drop_if_exists_key=ASSUME_DROP_IF_EXISTS.key,
            name=name,
        )
    rest = {k: v for k, v in snapshot.metadata.configuration.items() if k.lower() != _key(name)}
    after = changed_config(snapshot.config, replace(snapshot.metadata, configuration=rest))
    return commit_change(command, after, operation=drop_constraint(name, old))


def require_condition(spark: SparkSession, name: str, expression: str, columns: StructType) -> None:
    """Check that an expression is a condition over the columns of one row; runs no job.

    Raises:
        InvalidRequestError: it is none (NON_BOOLEAN_CHECK_CONSTRAINT), names a column that
            does not exist, aggregates, or is not deterministic.
    """
    # In brackets, since it becomes part of other expressions.
    checked = check_expression(spark, in_brackets(expression), columns)
    match checked.fault:
        case Fault.UNRESOLVED:
            raise InvalidRequestError(
                Message.UNRESOLVED_COLUMN_CONSTRAINT,
                expression=expression,
                names=", ".join(columns.names),
                name=name,
            )
        case Fault.AGGREGATE:
            raise InvalidRequestError(
                Message.AGGREGATE_IN_CHECK_CONSTRAINT, expression=expression, name=name
            )
        case Fault.NON_DETERMINISTIC:
            raise InvalidRequestError(
                Message.NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT,
                expression=expression,
                name=name,
            )
        case None:
            pass
    if checked.simple_type != "boolean":
        raise InvalidRequestError(
            Message.NON_BOOLEAN_CHECK_CONSTRAINT, expression=expression, name=name
        )


def _require_fulfilled(spark: SparkSession, snapshot: Snapshot, expression: str) -> None:
    if not len(snapshot.files):
        return
    fulfilled = F.coalesce(F.expr(in_brackets(expression)), F.lit(False))  # noqa: FBT003
    with tagged_jobs(spark):
        num_rows = scan_strictly(spark, snapshot).filter(~fulfilled).count()
    if num_rows:
        raise InvalidRequestError(
            Message.NEW_CHECK_CONSTRAINT_VIOLATION,
            root_uri=snapshot.root_uri,
            expression=expression,
            num_rows=num_rows,
        )


def _find(snapshot: Snapshot, name: str) -> str | None:
    """Return the expression of a constraint; names ignore case."""
    found = (v for k, v in snapshot.metadata.configuration.items() if k.lower() == _key(name))
    return next(found, None)


def _key(name: str) -> str:
    return CONSTRAINT_PREFIX + name.lower()
