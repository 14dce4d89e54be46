"""INSERT: rows by position or by name, each value stored as its column's type.

A DataFrame write takes columns by name and casts nothing. INSERT casts values in any way that Spark
allows, unless ``spark.sql.storeAssignmentPolicy`` is not ``ANSI``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.write.options import SaveMode, WriteOptions
from puredelta.commands.write.planned_write import WriteOutcome
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import (
    BINARY,
    INTEGRAL,
    STRING,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.names import display_name
from puredelta.spark.session.types import quoted_text, to_spark, to_spark_type
from puredelta.spark.values.inserted_rows import has_fields_of, stored_as, with_new_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRequest:
    """The clauses of an INSERT beside its rows."""

    columns: tuple[str, ...] = ()
    """Columns of the values; by default all of the table."""
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """Partition columns with a fixed value, as text, for every row."""
    open_partition: tuple[str, ...] = ()
    """Partition columns that are named, with their values in the rows."""
    by_name: bool = False
    overwrite: bool = False
    """Whether existing rows are replaced: all of them, or those of the named partitions."""
    replace_where: str | None = None
    """A condition whose rows are replaced instead."""
    name: str | None = None
    """The table's name in the statement, for errors; by default its path."""
    evolves: bool = False
    """Whether columns that only the rows have are added to the table, after its own."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of the write, which decide as those of a DataFrame's."""


EVERY_COLUMN = InsertRequest()

_INTEGER = re.compile(r"[+-]?\d{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInsert:
    """An INSERT with rows that fit the table's columns; nothing has been changed yet."""

    rows: DataFrame
    log: TableLog
    mode: SaveMode
    options: Mapping[str, object]

    def run(self) -> WriteOutcome:
        """Insert the rows; runs one Spark job. Errors as `write_table`."""
        return write_table(self.rows, self.log, WriteRequest(mode=self.mode, options=self.options))


def insert_rows(
    rows: DataFrame, log: TableLog, request: InsertRequest = EVERY_COLUMN
) -> WriteOutcome:
    """Insert rows into a table; runs one Spark job. Errors as `plan_insert` and `write_table`."""
    return plan_insert(rows, log, request).run()


def plan_insert(
    rows: DataFrame, log: TableLog, request: InsertRequest = EVERY_COLUMN
) -> PlannedInsert:
    """Return the write of an INSERT; runs no job.

    Columns without a value get their default, or NULL. ``overwrite`` replaces the same rows as a
    DataFrame write in mode ``overwrite``; with ``partition`` only those partitions,
    unless ``spark.sql.sources.partitionOverwriteMode`` is dynamic.
    """
    config = log.snapshot().config
    chosen = value_columns(config, request)
    if request.by_name and not request.columns:
        given = {name.lower() for name in rows.columns}
        chosen = [f for f in chosen if f.name.lower() in given]
    asked = WriteOptions.of(rows.sparkSession, request.options)
    evolves = request.evolves or asked.change.merge
    new = _new_columns(rows, config, chosen, request) if evolves else []
    columns, by_name = _stored_columns(
        rows.schema, to_spark(StructType(tuple(chosen))), new, request
    )
    stored = stored_as(
        rows, columns, table=request.name or f"delta.`{log.root_uri}`", by_name=by_name
    )
    fixed = _fixed_columns(config, request)
    values = {f.name: F.lit(value).cast(to_spark_type(f.type)) for f, value in fixed}
    options: dict[str, object] = {**request.options, **({"mergeSchema": True} if evolves else {})}
    where = request.replace_where
    if request.overwrite and fixed and not asked.replaces_partitions:
        where = _all_of([_is_value(f, value) for f, value in fixed])
    if where is not None:
        options["replaceWhere"] = where
    overwrites = request.overwrite or where is not None
    return PlannedInsert(
        rows=stored.withColumns(values) if values else stored,
        log=log,
        mode=SaveMode.OVERWRITE if overwrites else SaveMode.APPEND,
        options=options,
    )


def _new_columns(
    rows: DataFrame, config: TableConfig, chosen: Sequence[StructField], request: InsertRequest
) -> list[T.StructField]:
    """Return the columns of the rows that are to be added to the table."""
    if request.columns:
        return []
    fields = list(rows.schema.fields)
    if request.by_name:
        return [f for f in fields if config.schema.find_ignoring_case(f.name) is None]
    return fields[len(chosen) :]


def _stored_columns(
    given: T.StructType, known: T.StructType, new: Sequence[T.StructField], request: InsertRequest
) -> tuple[T.StructType, bool]:
    """Return the columns that the rows are to have, and whether they are taken by name.

    Structs keep the fields that the table lacks: the write judges them as those of a DataFrame.
    If the rows have the table's columns, by name and type, fields of structs are taken by name even
    in an INSERT by position. With a list of columns they are so only if there are new fields.
    """
    wide = with_new_fields(given, known, by_name=True)
    by_name = request.by_name
    if given.names == [*known.names, *(f.name for f in new)] and has_fields_of(given, known):
        by_name = by_name or not request.columns or wide != known
    columns = wide if by_name else with_new_fields(given, known, by_name=False)
    return T.StructType([*columns.fields[: len(known.fields)], *new]), by_name


def value_columns(config: TableConfig, request: InsertRequest) -> list[StructField]:
    """Return the columns of each row's values, in their order."""
    _require_partition_columns(config, (*request.partition, *request.open_partition))
    fixed = {f.name for f, _ in _fixed_columns(config, request)}
    if request.columns:
        return _named(request.columns, config.schema, taken=fixed)
    return [f for f in config.schema.fields if f.name not in fixed]


def _fixed_columns(
    config: TableConfig, request: InsertRequest
) -> list[tuple[StructField, str | None]]:
    found = ((config.schema.find_ignoring_case(k), v) for k, v in request.partition.items())
    return [(field, value) for field, value in found if field is not None]


def _all_of(conditions: Sequence[str]) -> str:
    """Return the AND of conditions, as Spark writes it."""
    return reduce(lambda one, other: f"({one} AND {other})", conditions)


def _is_value(column: StructField, value: str | None) -> str:
    name = display_name((column.name,))
    if value is None or (not value and column.type in (STRING, BINARY)):
        return f"({name} IS NULL)"  # M-108
    if column.type == STRING:
        literal = quoted_text(value)
    elif column.type in INTEGRAL and _INTEGER.fullmatch(value):
        literal = str(int(value))
    else:
        kind = to_spark_type(column.type).simpleString()
        literal = f"CAST({quoted_text(value)} AS {kind})"
    return f"({name} <=> {literal})"


def _require_partition_columns(config: TableConfig, names: Iterable[str]) -> None:
    known = {column.lower() for column in config.partition_columns}
    for name in names:
        if name.lower() not in known:
            raise InvalidRequestError(
                Message.NON_PARTITION_COLUMN,
                partition_columns=list(config.partition_columns),
                column=name,
            )


def _named(
    columns: Sequence[str], schema: StructType, *, taken: Iterable[str]
) -> list[StructField]:
    """Return the fields of a column list.

    Raises:
        InvalidRequestError: a name is unknown or repeated.
    """
    found = [schema.find_ignoring_case(name) for name in columns]
    fields = [field for field in found if field is not None]
    if len(fields) < len(columns):
        unknown = columns[found.index(None)]
        raise InvalidRequestError(
            Message.UNRESOLVED_COLUMN_WRITE, names=list(schema.names), column=unknown
        )
    names = [*taken, *(field.name for field in fields)]
    if len(set(names)) < len(names):
        raise InvalidRequestError(
            Message.COLUMN_ALREADY_EXISTS, columns_shown=list(columns), columns=tuple(columns)
        )
    return fields
