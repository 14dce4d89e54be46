"""Values that a table fills in itself: generated columns, defaults and identity columns.

Each is a Spark expression over rows of the table. An identity value is a function of where a row
lies in staged files (M-102). A staged row's place never changes, whatever runs again, so no value
is lost or given twice; and places are dense, so values are, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate

from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.protocol.features.filled_columns import Identity
from puredelta.protocol.table.stored_expressions import in_brackets
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import as_nullable, to_spark_type


def generated_value(config: TableConfig, column: str) -> Column:
    """Return what a generated column holds (M-101), over rows with the table's columns by name."""
    return _typed(config.generated_columns[column], config, column)


def default_value(config: TableConfig, column: str) -> Column:
    """Return the default of a column (M-100); it refers to no row."""
    return _typed(config.column_defaults[column], config, column)


def _typed(sql: str, config: TableConfig, column: str) -> Column:
    field = next(f for f in config.schema.fields if f.name == column)
    return F.expr(in_brackets(sql)).cast(as_nullable(to_spark_type(field.type)))


def identity_value(identity: Identity, row_counts: Sequence[int], *, file: str, row: str) -> Column:
    """Return the value that belongs to the row at (``file``, ``row``).

    ``row_counts`` are those of all staged files in order; each row of them, whether it is
    inserted or not, has a value of its own.

    Raises:
        DeltaError: so many rows leave the range of a long.
    """
    identity.last_of(max(1, sum(row_counts)))
    return F.lit(identity.next_value) + F.lit(identity.step) * _ordinal(row_counts, file, row)


def _ordinal(row_counts: Sequence[int], file: str, row: str) -> Column:
    """Return the 0-based number of a row over all files."""
    if len(row_counts) <= 1:
        return F.col(row)
    offsets = json.dumps([0, *accumulate(row_counts)])
    before = F.from_json(F.lit(offsets), "array<bigint>")  # folded to a literal once
    return F.get(before, F.col(file)) + F.col(row)
