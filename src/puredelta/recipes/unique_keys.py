"""Whether a source has one row a key, by what a MERGE knows of its source anyway."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.source.context import StatementContext
from puredelta.recipes.source_rows import Duplicates, one_row_per_key, require_unique
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.source.plain_scan import plain_scan

_EQUAL_IS_SAME = (T.IntegralType, T.DateType, T.DecimalType)
"""Types of which two values that are equal are one; ``-0.0`` and ``0.0`` are not."""


def require_unique_keys(context: StatementContext, keys: Sequence[str]) -> None:
    """Refuse a source of which several rows have one key.

    The driver has read the keys of a small source (`read_distinct_keys`): where some key column
    has as many values as there are rows, nothing is left to count. Otherwise a Spark job counts
    the keys in the files of the source.

    Raises:
        InvalidRequestError: there is such a key (DELTA_SOURCE_KEY_NOT_UNIQUE).
    """
    source = context.source
    columns = {c.name: c for c in context.statement.source_columns if c.name in keys}
    for column in columns.values():
        values = source.profile.distinct.get((column.staged,))
        if values is not None and _is_exact(column.type) and len(values) == source.num_rows:
            return
    rows = source.rows(context.spark, {column.staged for column in columns.values()})
    require_unique(rows.select(*(F.col(columns[key].staged).alias(key) for key in keys)), keys)


def with_unique_keys(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return rows that are refused, at the latest when they are read, if a key has several.

    Plain files hold the same rows however often they are read: a job counts their keys now.

    Raises:
        InvalidRequestError: see `require_unique`.
    """
    if isinstance(plain_scan(rows.sparkSession, rows), NotApplicable):
        return one_row_per_key(rows, keys, Duplicates.ERROR, ())
    require_unique(rows, keys)
    return rows


def _is_exact(kind: T.DataType) -> bool:
    return isinstance(kind, _EQUAL_IS_SAME) or kind == T.StringType()
