"""INSERT: rows go into a table by position, or by name, each value stored as its column's type.

Unlike a DataFrame write, which takes columns by name and casts nothing: Spark's own rules for
INSERT (``spark.sql.storeAssignmentPolicy``) say which value fits. Classic sessions only.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from puredelta.commands.write import WriteOutcome, write_table
from puredelta.commands.write_options import SaveMode
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.table_log import TableLog
from puredelta.protocol.types import StructField, StructType
from puredelta.spark.insert_columns import stored_as
from puredelta.spark.types import to_spark


def insert_rows(
    rows: DataFrame,
    log: TableLog,
    *,
    columns: Sequence[str] = (),
    by_name: bool = False,
    overwrite: bool = False,
) -> WriteOutcome:
    """Insert rows into a table; runs one Spark job.

    ``columns`` are those the values are for, by default all but the ones that compute
    themselves (identity columns); others get their default, or NULL. ``overwrite`` replaces
    what is there, as a DataFrame write in mode ``overwrite`` does.

    Raises:
        TableNotFoundError: there is no table.
        InvalidRequestError: a column is unknown, or what `write_table` refuses.
        pyspark.errors.AnalysisException: too many or too few values, or one of a type that
            does not fit.
    """
    config = log.snapshot().config
    fields = [f for f in config.schema.fields if f.name not in config.identity_columns]
    if columns:
        chosen = _named(columns, config.schema)
    elif by_name:
        given = {name.lower() for name in rows.columns}
        chosen = [f for f in fields if f.name.lower() in given]
    else:
        chosen = fields
    stored = stored_as(
        rows,
        to_spark(StructType(tuple(chosen))),
        table=f"delta.`{log.root_uri}`",
        by_name=by_name,
    )
    return write_table(stored, log, mode=SaveMode.OVERWRITE if overwrite else SaveMode.APPEND)


def _named(columns: Sequence[str], schema: StructType) -> list[StructField]:
    """Return the fields of a column list.

    Raises:
        InvalidRequestError: a name is unknown, or stands there twice.
    """
    found = [schema.find_ignoring_case(name) for name in columns]
    fields = [field for field in found if field is not None]
    if len(fields) < len(columns):
        unknown = columns[found.index(None)]
        raise InvalidRequestError(
            f"The table has no column {unknown!r}, only {list(schema.names)}.",
            code=ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA,
            column=unknown,
        )
    if len({field.name for field in fields}) < len(fields):
        raise InvalidRequestError(
            f"A column is named twice in the column list {list(columns)}.",
            code=ErrorCode.DUPLICATE_COLUMNS_FOUND,
            columns=tuple(columns),
        )
    return fields
