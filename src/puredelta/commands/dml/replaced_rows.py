"""Rows that a partial overwrite replaces: those of a condition, or whole partitions.

``replaceWhere`` selects the rows, and the new rows must satisfy it, too. A dynamic overwrite
replaces every partition for which it has a row. All other rows stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timezone

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.commands.dml.prune import decides_by_file, matching_files
from puredelta.commands.dml.resolve.partition_condition import resolve_partition_condition
from puredelta.commands.dml.resolve.resolved_statement import ResolvedCondition, ResolvedStatement
from puredelta.commands.dml.resolve.update_delete import resolve_rows
from puredelta.commands.dml.search_plan import by_source_predicate
from puredelta.commands.dml.spec import DeleteSpec
from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.schema.partition_values import parse_partition_value
from puredelta.protocol.schema.predicates import (
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
from puredelta.protocol.schema.types import BINARY, STRING, PrimitiveType, StructField
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.table_config import CHAR_VARCHAR, TableConfig
from puredelta.spark.resolve.bound_columns import under_alias
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.delta_conf import REPLACE_WHERE_DATA_COLUMNS
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import quoted, to_spark
from puredelta.spark.values.char_varchar import padded, read_limits
from puredelta.spark.values.constraints import Check, as_stored, guarded
from puredelta.spark.values.row_errors import row_error

_ZONED = PrimitiveType("timestamp")
_GIVEN = "__puredelta_given_"
"""Prefix of the column with a value as given, beside the same value as readers will see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedRows:
    """The condition of ``replaceWhere``, resolved against the table."""

    statement: ResolvedStatement
    """The DELETE of these rows."""

    @property
    def condition(self) -> ResolvedCondition:
        """The condition of the rows."""
        (clause,) = self.statement.not_matched_by_source
        assert clause.condition is not None  # noqa: S101 - `resolve_replaced` gave it one
        return clause.condition

    @property
    def predicate(self) -> Predicate:
        """The same condition for pruning and for conflict rules."""
        return by_source_predicate(self.statement.not_matched_by_source)

    def goes_by_file(self, config: TableConfig) -> bool:
        """Tell whether partition columns decide, so that whole files are removed."""
        return decides_by_file(self.condition, config)

    def files(self, spark: SparkSession, snapshot: Snapshot) -> FileTable:
        """Return the removed files, where whole files are removed."""
        return matching_files(spark, snapshot, self.statement)


def resolve_replaced(
    spark: SparkSession, where: str, config: TableConfig, *, alias: str | None
) -> ReplacedRows:
    """Resolve the condition of ``replaceWhere``; runs no job.

    ``alias`` is the name of the table in it, if it has one.
    """
    session = SessionInfo.of(spark)
    if not REPLACE_WHERE_DATA_COLUMNS.flag(session.settings):
        statement = resolve_partition_condition(spark, where, config, alias=alias)
        return ReplacedRows(statement=statement)
    target_rows = under_alias(table_identity(spark, config.schema), alias)
    spec = DeleteSpec(condition=where)
    return ReplacedRows(
        statement=resolve_rows(spec, target_rows=target_rows, config=config, session=session)
    )


def only_where(
    rows: DataFrame, where: str, config: TableConfig, *, alias: str | None = None
) -> DataFrame:
    """Return the rows, each of which raises an error where the condition is not true of it.

    The rows have the table's columns, which the condition names as those of ``alias``, too. They
    are judged as readers will see them, and returned as they are given. The check is one more
    expression of the job that writes them. The error is DELTA_REPLACE_WHERE_MISMATCH.
    """
    names = rows.columns
    read = _as_read(rows, config)
    given = {name: f"{_GIVEN}{number}" for number, name in enumerate(read)}
    if read:
        others = [F.col(quoted(name)) for name in names if name not in read]
        kept = [F.col(quoted(name)).alias(hidden) for name, hidden in given.items()]
        rows = rows.select(*others, *read.values(), *kept)
    message = F.lit(
        f"Written data does not conform to partial table overwrite condition or constraint "
        f"'{where}'. A row has: "
    )
    is_true = F.coalesce(F.expr(f"({where})"), F.lit(False))  # noqa: FBT003 - the value
    row = F.to_json(F.struct(*map(F.col, map(quoted, names))))
    check = Check(
        ~is_true,
        row_error(
            ErrorCode.REPLACE_WHERE_MISMATCH,
            F.concat(message, row),
            {"replaceWhere": F.lit(where)},
        ),
    )
    values = [F.col(quoted(given.get(name, name))).alias(name) for name in names]
    first = guarded(F.col(quoted(given.get(names[0], names[0]))), [check])
    return under_alias(rows, alias).select(first.alias(names[0]), *values[1:])


def _as_read(rows: DataFrame, config: TableConfig) -> dict[str, Column]:
    """Return the columns whose given values differ from those that readers of the table will see.

    An empty text or binary of a partition is NULL (M-108). A ``char(n)`` is padded, and typed as
    char, so that Spark pads literals that a condition compares with it, too.
    """
    kinds = {field.name: field.dataType for field in to_spark(config.schema).fields}
    described, limited = config.char_varchar_columns, read_limits(rows.sparkSession, config)
    partition_types = {f.name: f.type for f in config.partition_schema.fields}
    texts = {name for name, kind in partition_types.items() if kind in (STRING, BINARY)}
    read: dict[str, Column] = {}
    for name in rows.columns:
        if name not in texts and name not in limited:
            continue
        value = F.col(quoted(name))
        value = as_stored(value, partition_types[name]) if name in texts else value
        value = padded(limited.get(name), value, kinds[name])
        metadata = {CHAR_VARCHAR: described[(name,)]} if name in limited else {}
        read[name] = value.alias(name, metadata=metadata)
    return read


def partitions_of(
    adds: Iterable[Add], files: FileTable, config: TableConfig, *, time_zone: str | None = None
) -> FileTable:
    """Return the files that are in a partition of any of ``adds``, in any spelling of its values.

    ``time_zone`` is the session's, see `Partitioning.of`.
    """
    partitioning = Partitioning.of(config, time_zone)
    written = {partitioning.key(add.partition_values) for add in adds}
    mask = [key in written for key in files.partition_keys(partitioning)]
    return files.select(pa.array(mask, pa.bool_()))


def partition_predicate(adds: Iterable[Add], config: TableConfig) -> Predicate | None:
    """Return a predicate for all rows in the partitions of ``adds``; None if there is none."""
    columns, fields = config.physical_partition_columns, config.partition_schema.fields
    if any(field.type == _ZONED for field in fields):
        return None  # the text of a value does not contain its zone
    keys = {tuple(add.partition_values.get(column) for column in columns) for add in adds}
    try:
        return Or(
            tuple(
                And(tuple(_equals(f, text) for f, text in zip(fields, key, strict=True)))
                for key in sorted(keys, key=str)
            )
        )
    except CorruptTableError:
        return None  # a year that Python does not have


def _equals(field: StructField, text: str | None) -> Predicate:
    ref = Ref(Side.TARGET, (field.name,), field.type)
    value = parse_partition_value(text, field.type, timezone.utc)
    return IsNull(ref) if value is None else Compare(CompareOp.EQUAL, ref, Const(value))
