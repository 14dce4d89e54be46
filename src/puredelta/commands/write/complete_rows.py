"""The rows of a write, completed to all columns of the table.

A column that the rows lack has its default (M-100), is generated (M-101), numbered (M-102), or
NULL. Columns and nested fields are matched by name; their types were checked before. All writes
use the same order: values are cast, rows are completed, values take the form that the table
stores (M-108), and finally rows are checked, by ``replaceWhere`` and by the table's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.defined_columns import config_with_marks
from puredelta.commands.schema_change import with_canonical_names
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.features.generated_columns import Identity
from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.traversal import shape
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.scan import scan_parquet
from puredelta.spark.session.names import FILE_ORDINAL, ROW_INDEX, source_column_name
from puredelta.spark.session.types import (
    from_spark,
    from_spark_type,
    quoted,
    struct_as_nullable,
    to_spark,
    without_table_metadata,
)
from puredelta.spark.values.inserted_rows import default_value, generated_value, identity_value
from puredelta.spark.write.staging import StagedRows, stage_rows
from puredelta.spark.write.writer_settings import WriterSettings
from puredelta.store.base import Store


def require_no_explicit_identity(rows: StructType, config: TableConfig) -> None:
    """Refuse values for a column that is GENERATED ALWAYS AS IDENTITY (M-102).

    Raises:
        InvalidRequestError: names the column.
    """
    for identity in config.identity_columns.values():
        given = rows.find_ignoring_case(identity.column)
        if given is not None and not identity.allows_explicit_insert:
            raise InvalidRequestError(
                Message.IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED_WRITE, col_name=given.name
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteRows:
    """Rows with exactly the table's columns; `remove` deletes their staged files at the end."""

    rows: DataFrame
    config: TableConfig
    """The table after the write, with higher high water marks (M-103)."""
    computed: frozenset[str] = frozenset()
    """Generated columns that the rows lacked and that were computed."""
    staged: StagedRows | None = None

    def remove(self, store: Store) -> None:
        """Delete staged files, if there are any."""
        if self.staged is not None:
            self.staged.remove(store)


def complete_rows(
    rows: DataFrame,
    config: TableConfig,
    *,
    store: Store,
    settings: Mapping[str, str],
) -> CompleteRows:
    """Return the rows with the table's columns. Runs nothing, unless values of an identity
    column are to be generated: then the rows are staged, by one Spark job, and numbered.
    ``settings`` are those of the session and, among them, of the write.

    Raises:
        InvalidRequestError: a column that the rows lack must not be NULL.
    """
    given = _rows_with_canonical_names(rows, config)
    names = frozenset(given.columns)
    identities = [i for name, i in config.identity_columns.items() if name not in names]
    generated = [name for name in config.generated_columns if name not in names]
    plain = _with_defaults(given, config, without={i.column for i in identities} | {*generated})
    computed = frozenset(generated)
    if not identities:
        every = _ordered(plain, {}, generated, config)
        return CompleteRows(rows=every, config=config, computed=computed)
    writer = WriterSettings.of(rows.sparkSession, settings)
    staged = stage_rows(_storable(plain), store=store, options=writer.staged)
    try:
        values = {
            i.column: identity_value(i, staged.row_counts, file=FILE_ORDINAL, row=ROW_INDEX)
            for i in identities
        }
        numbered = _ordered(_read_back(staged, plain), values, generated, config)
        marked = config_with_marks(config, _marks(identities, staged.num_rows))
    except BaseException:
        staged.remove(store)
        raise
    return CompleteRows(rows=numbered, config=marked, computed=computed, staged=staged)


def checked_rows(
    rows: DataFrame, config: TableConfig, check: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Return rows for a statement that computes their other columns, after ``check`` on whole rows.

    Defaults are part of the result, since a second evaluation may give another value. Generated and
    numbered columns are not. ``check`` returns its rows, with a guard on the first column. Runs
    nothing.
    """
    given = _rows_with_canonical_names(rows, config)
    names = frozenset(given.columns)
    numbered = frozenset(config.identity_columns) - names
    generated = frozenset(config.generated_columns) - names
    plain = _with_defaults(given, config, without={*numbered, *generated})
    known = frozenset(plain.columns)
    computed = {
        name: generated_value(config, name)
        for name in sorted(generated)
        if known.issuperset(
            path[0] for path in referenced_paths(config.generated_columns[name], config.schema)
        )
    }
    every = plain.withColumns(computed) if computed else plain
    return check(every).select(*map(quoted, plain.columns))


def _marks(identities: Sequence[Identity], num_rows: int) -> Mapping[str, int]:
    return {i.column: i.last_of(num_rows) for i in identities} if num_rows else {}


def _ordered(
    rows: DataFrame,
    values: Mapping[str, Column],
    generated: Sequence[str],
    config: TableConfig,
) -> DataFrame:
    """Add the remaining columns, generated ones last, in the table's order."""
    if not values and not generated:
        return rows
    every = rows.withColumns(dict(values)) if values else rows
    computed = {name: generated_value(config, name) for name in generated}
    every = every.withColumns(computed) if computed else every
    return every.select(*map(quoted, config.schema.names))


def _with_defaults(rows: DataFrame, config: TableConfig, *, without: set[str]) -> DataFrame:
    """Return the rows with the table's columns, except those to be computed."""
    wanted = StructType(tuple(f for f in config.schema.fields if f.name not in without))
    missing = [f for f in wanted.fields if f.name not in rows.columns]
    for field in missing:
        if field.name in config.column_defaults:
            rows = rows.withColumn(field.name, default_value(config, field.name))
        elif required := [path for path in config.not_null_columns if path[0] == field.name]:
            column = ".".join(required[0])
            raise InvalidRequestError(Message.MISSING_NOT_NULL_COLUMN_VALUE, column=column)
    if not missing and shape(from_spark(rows.schema)) == shape(wanted):
        return rows
    # DataFrame.to matches names at every level, adds NULLs and drops no checked column.
    plain = without_table_metadata(struct_as_nullable(to_spark(wanted)))
    return rows.to(plain).select(*map(quoted, wanted.names))


def _rows_with_canonical_names(rows: DataFrame, config: TableConfig) -> DataFrame:
    """Give every column and nested field the table's spelling of its name."""
    own = from_spark(struct_as_nullable(rows.schema))
    canonical = with_canonical_names(own, config.schema)
    if canonical == own:
        return rows
    columns = []
    for old, new in zip(own.fields, to_spark(canonical).fields, strict=True):
        column = F.col(quoted(old.name))
        if from_spark_type(new.dataType) != old.type:
            column = column.cast(new.dataType)  # by position
        columns.append(column.alias(new.name))
    return rows.select(*columns)


# --- staging --------------------------------------------------------------------------------


def _stored_fields(rows: DataFrame) -> list[tuple[str, T.StructField]]:
    """Return the columns that a file can hold, each with its name there."""
    return [
        (source_column_name(n), field)
        for n, field in enumerate(rows.schema.fields)
        if not isinstance(field.dataType, T.NullType)
    ]


def _storable(rows: DataFrame) -> DataFrame:
    return rows.select(*(F.col(quoted(f.name)).alias(n) for n, f in _stored_fields(rows)))


def _read_back(staged: StagedRows, rows: DataFrame) -> DataFrame:
    """Return the staged rows under the names and with all the columns of ``rows``."""
    stored = _stored_fields(rows)
    read = scan_parquet(
        rows.sparkSession,
        staged.files,
        schema=T.StructType([T.StructField(n, f.dataType) for n, f in stored]),
        with_position=True,
        open_at=staged.open_at,
    ).withColumnsRenamed({n: f.name for n, f in stored})
    voids = {f.name: F.lit(None) for f in rows.schema.fields if f.name not in read.columns}
    return read.withColumns(voids) if voids else read
