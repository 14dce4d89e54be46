"""What a partial overwrite takes the place of: rows of a condition, or whole partitions.

``replaceWhere`` names the rows, and the new rows must satisfy it, too. A dynamic overwrite
replaces every partition it has a row for. All else in the table stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timezone

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.commands.dml.prune.rules import by_source_predicate
from puredelta.commands.dml.prune.whole_files import decides_by_file, matching_files
from puredelta.commands.dml.resolve.partition_condition import resolve_partition_condition
from puredelta.commands.dml.resolve.statement import ResolvedCondition, ResolvedStatement
from puredelta.commands.dml.resolve.update_delete import resolve_rows
from puredelta.commands.dml.spec.update_delete import DeleteSpec
from puredelta.errors import ErrorCode
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.schema.types import PrimitiveType, StructField
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.partition_values import parse_partition_value
from puredelta.protocol.values.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Or,
    Predicate,
    Ref,
    Side,
)
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.delta_conf import REPLACE_WHERE_DATA_COLUMNS
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import quoted
from puredelta.spark.values.constraints import Check, guarded
from puredelta.spark.values.row_errors import row_error

_ZONED = PrimitiveType("timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedRows:
    """The condition of ``replaceWhere``, resolved against the table."""

    statement: ResolvedStatement
    """The DELETE of these rows."""

    @property
    def condition(self) -> ResolvedCondition:
        """Which rows."""
        (clause,) = self.statement.not_matched_by_source
        assert clause.condition is not None  # noqa: S101 - `resolve_replaced` gave it one
        return clause.condition

    @property
    def predicate(self) -> Predicate:
        """The same for pruning and for the rules of conflicts."""
        return by_source_predicate(self.statement.not_matched_by_source)

    def goes_by_file(self, config: TableConfig) -> bool:
        """Tell whether partition columns decide, so that files go as a whole."""
        return decides_by_file(self.condition, config)

    def files(self, spark: SparkSession, snapshot: Snapshot) -> FileTable:
        """Return the files that go, where they go as a whole."""
        return matching_files(spark, snapshot, self.statement)


def resolve_replaced(spark: SparkSession, where: str, config: TableConfig) -> ReplacedRows:
    """Resolve the condition of ``replaceWhere``; runs no job.

    Raises:
        pyspark.errors.PySparkException: Spark refuses the expression.
        InvalidRequestError: it cannot be a condition of a DELETE, or names a column of the data
            where the session forbids that (NON_PARTITION_COLUMN_REFERENCE).
    """
    session = SessionInfo.of(spark)
    if not REPLACE_WHERE_DATA_COLUMNS.flag(session.settings):
        return ReplacedRows(statement=resolve_partition_condition(spark, where, config))
    target_rows = table_identity(spark, config.schema)
    spec = DeleteSpec(condition=where)
    return ReplacedRows(
        statement=resolve_rows(spec, target_rows=target_rows, config=config, session=session)
    )


def only_where(rows: DataFrame, where: str) -> DataFrame:
    """Return the rows, each of which raises an error where the condition is not true of it.

    The check is one more expression of the job that writes them. The error is
    DELTA_REPLACE_WHERE_MISMATCH.
    """
    message = F.lit(
        f"Written data does not conform to partial table overwrite condition or constraint "
        f"'{where}'. A row has: "
    )
    is_true = F.coalesce(F.expr(f"({where})"), F.lit(False))  # noqa: FBT003 - the value
    row = F.to_json(F.struct(*map(F.col, map(quoted, rows.columns))))
    check = Check(
        ~is_true,
        row_error(
            ErrorCode.REPLACE_WHERE_MISMATCH,
            F.concat(message, row),
            {"replaceWhere": F.lit(where)},
        ),
    )
    first, *others = (F.col(quoted(name)) for name in rows.columns)
    return rows.select(guarded(first, [check]).alias(rows.columns[0]), *others)


def partitions_of(adds: Iterable[Add], files: FileTable, config: TableConfig) -> FileTable:
    """Return the files that are in a partition of any of ``adds``."""
    columns = config.physical_partition_columns
    written = {_partition(add.partition_values, columns) for add in adds}
    values = files.rows["partition_values"].to_pylist()
    mask = [_partition(dict(pairs or ()), columns) in written for pairs in values]
    return files.select(pa.array(mask, pa.bool_()))


def partition_predicate(adds: Iterable[Add], config: TableConfig) -> Predicate | None:
    """Return what is true of every row in a partition of ``adds``; None if it cannot be said."""
    fields = config.partition_schema.fields
    if any(field.type == _ZONED for field in fields):
        return None  # the text of a value does not say its zone
    columns = config.physical_partition_columns
    keys = {_partition(add.partition_values, columns) for add in adds}
    return Or(
        tuple(
            And(tuple(_equals(f, text) for f, text in zip(fields, key, strict=True)))
            for key in sorted(keys, key=str)
        )
    )


def _equals(field: StructField, text: str | None) -> Predicate:
    ref = Ref(Side.TARGET, (field.name,), field.type)
    value = parse_partition_value(text, field.type, timezone.utc)
    return IsNull(ref) if value is None else Compare(CompareOp.EQUAL, ref, Const(value))


def _partition(values: Mapping[str, str | None], columns: Sequence[str]) -> tuple[str | None, ...]:
    """Return the values of a file's partition; empty text is NULL."""
    return tuple(values.get(column) or None for column in columns)
