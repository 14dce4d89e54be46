"""The table of a recipe: found by path, name or `DeltaTable`, or created with its columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import Message, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.recipes.arguments import TableSettings, refused
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.names import quote
from puredelta.spark.session.session import SessionInfo, one_call
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.types import struct_as_nullable, to_spark, without_table_metadata
from puredelta.statements.names.names import find_location
from puredelta.statements.parse.table_name import parse_table_name
from puredelta.tables.delta_table import DeltaTable
from puredelta.tables.open_table import OpenTable

TableOrPath: TypeAlias = str | os.PathLike[str] | DeltaTable
"""A `DeltaTable`, a path or URI (any text with a slash), or a name in the catalog."""

TARGET = "t"
SOURCE = "s"
"""The aliases of the two sides in the statements of recipes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeTable:
    """An existing table, at its newest version."""

    table: OpenTable
    schema: T.StructType
    """Its columns, with the table's nullability."""
    case_sensitive: bool

    @property
    def log(self) -> TableLog:
        """The log of the table."""
        return self.table.log

    def has(self, name: str) -> bool:
        """Tell whether the table has a column of exactly this name."""
        return name in self.schema.names

    def type_of(self, name: str) -> T.DataType | None:
        """Return the type of a column, None if the table lacks it."""
        return self.schema[name].dataType if self.has(name) else None

    def aligned(self, rows: DataFrame) -> DataFrame:
        """Return rows with columns spelled as in the table; errors as `aligned`."""
        return aligned(rows, self.schema.names, case_sensitive=self.case_sensitive)


def find_recipe_table(spark: SparkSession, table: TableOrPath) -> RecipeTable | None:
    """Return the table, None if there is none."""
    log = _log(spark, table)
    if log is None or not log.exists():
        return None
    config = log.snapshot().config
    opened = OpenTable(spark, log, table_identity(spark, config.schema)).under(TARGET)
    return RecipeTable(
        table=opened,
        schema=without_table_metadata(to_spark(config.schema)),
        case_sensitive=SessionInfo.of(spark).case_sensitive,
    )


def load_recipe_table(spark: SparkSession, table: TableOrPath) -> RecipeTable:
    """Return the table.

    Raises:
        TableNotFoundError: there is none (DELTA_MISSING_DELTA_TABLE).
    """
    found = find_recipe_table(spark, table)
    if found is None:
        raise TableNotFoundError(
            Message.MISSING_DELTA_TABLE_RECIPE, table_shown=table, table=str(table)
        )
    return found


def create_recipe_table(
    spark: SparkSession, table: TableOrPath, columns: T.StructType, settings: TableSettings
) -> None:
    """Create the table without rows, unless another writer has just created it.

    Raises:
        InvalidRequestError: the columns cannot be a table's.
    """
    builder = DeltaTable.createIfNotExists(spark).addColumns(struct_as_nullable(columns))
    if settings.partition_by:
        builder = builder.partitionedBy(*settings.partition_by)
    text = os.fspath(table) if not isinstance(table, DeltaTable) else _log_of(table).address
    (builder.location(text) if is_path(text) else builder.tableName(text)).execute()


def is_path(text: str) -> bool:
    """Tell a path from a name: it has a slash, and is not the whole of a quoted name.

    >>> is_path("/data/events"), is_path("s3://b/events"), is_path("db.events")
    (True, True, False)
    >>> is_path("delta.`/data/events`")
    False
    """
    return "/" in text and not text.endswith("`")


def aligned(rows: DataFrame, names: Sequence[str], *, case_sensitive: bool) -> DataFrame:
    """Return rows with columns spelled as in ``names``.

    Raises:
        InvalidRequestError: two columns of the rows have the same name in ``names``.
    """

    def folded(name: str) -> str:
        return name if case_sensitive else name.lower()

    known = {folded(name): name for name in names}
    wanted = [known.get(folded(name), name) for name in rows.columns]
    seen = [folded(name) for name in wanted]
    if twice := sorted({name for name in seen if seen.count(name) > 1}):
        raise refused(
            f"The source has the column {twice[0]!r} more than once. Rename or drop one of them.",
            column=twice[0],
        )
    if wanted == rows.columns:
        return rows
    return rows.select(
        *(F.col(quote(a)).alias(b) for a, b in zip(rows.columns, wanted, strict=True))
    )


def resolved(
    names: Sequence[str], columns: Sequence[str], argument: str, *, case_sensitive: bool
) -> tuple[str, ...]:
    """Return names in the spelling of the columns.

    Raises:
        InvalidRequestError: a name is none of them.
    """
    known = {name if case_sensitive else name.lower(): name for name in columns}
    found: list[str] = []
    for name in names:
        column = known.get(name if case_sensitive else name.lower())
        if column is None:
            raise refused(
                f"{argument} names {name!r}, which is no column. There are: {', '.join(columns)}.",
                column=name,
            )
        found.append(column)
    return tuple(found)


def _log(spark: SparkSession, table: TableOrPath) -> TableLog | None:
    if isinstance(table, DeltaTable):
        return _log_of(table)
    text = os.fspath(table)
    with one_call():
        location = text if is_path(text) else find_location(spark, parse_table_name(text))
        return None if location is None else open_log(spark, location)


def _log_of(table: DeltaTable) -> TableLog:
    return table._log  # noqa: SLF001 - an attribute of its own would be none of delta.tables
