"""The rows of a preview put together, as a query would read them, and held by the driver."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.protocol.table.change_data import ChangeType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.helper_columns import CHANGE, CLAUSE, FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.types import as_nullable, quoted, to_spark
from puredelta.spark.values.char_varchar import padded, read_limits

_KINDS_IN_ORDER = [
    ChangeType.DELETE,
    ChangeType.UPDATE_PREIMAGE,
    ChangeType.UPDATE_POSTIMAGE,
    ChangeType.INSERT,
]
_RANK = "__puredelta_rank"


def union_of(parts: Sequence[DataFrame], config: TableConfig) -> DataFrame:
    """Put rows together; text of ``char(n)`` is filled up, as it is wherever it is read.

    Values of type VOID become text: Spark cannot plan a union of structs that hold them.
    """
    kinds = {field.name: field.dataType for field in to_spark(config.schema).fields}
    texts = {
        name: F.col(quoted(name)).cast(as_nullable(_void_as_text(kind)))
        for name, kind in kinds.items()
        if _holds_void(kind)
    }
    rows = functools.reduce(
        DataFrame.unionAll, [part.withColumns(texts) if texts else part for part in parts]
    )
    limited = read_limits(rows.sparkSession, config)
    filled = {
        name: padded(limits, F.col(quoted(name)), kinds[name]) for name, limits in limited.items()
    }
    return rows.withColumns(filled) if filled else rows


def held(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """Compute the rows of `union_of` and keep them with the driver, both sides of an update
    together; ``schema`` is that of the table and of the columns that say what changed.
    """
    rank = F.lit(len(_KINDS_IN_ORDER))
    for number, kind in enumerate(_KINDS_IN_ORDER):
        rank = F.when(F.col(CHANGE) == kind.value, F.lit(number)).otherwise(rank)
    found: pa.Table = rows.withColumn(_RANK, rank).toArrow()
    order = [(name, "ascending") for name in (CLAUSE, FILE_ORDINAL, ROW_INDEX, _RANK)]
    kept = found.sort_by(order).drop_columns([FILE_ORDINAL, ROW_INDEX, _RANK])
    columns = [
        _with_void(column.combine_chunks(), field.dataType)
        if _holds_void(field.dataType)
        else column
        for column, field in zip(kept.columns, schema.fields, strict=True)
    ]
    return rows.sparkSession.createDataFrame(pa.table(columns, names=schema.names), schema)


def _holds_void(kind: T.DataType) -> bool:
    """Whether VOID is in a value, in structs at most: arrays and maps of it cannot be stored."""
    if isinstance(kind, T.StructType):
        return any(_holds_void(field.dataType) for field in kind.fields)
    return isinstance(kind, T.NullType)


def _void_as_text(kind: T.DataType) -> T.DataType:
    if isinstance(kind, T.StructType):
        return T.StructType(
            [T.StructField(f.name, _void_as_text(f.dataType), f.nullable) for f in kind.fields]
        )
    return T.StringType() if isinstance(kind, T.NullType) else kind


def _with_void(values: pa.Array, kind: T.DataType) -> pa.Array:
    """Undo `_void_as_text`: text where VOID belongs is NULL, always."""
    if isinstance(kind, T.NullType):
        return pa.nulls(len(values))
    if not (isinstance(kind, T.StructType) and _holds_void(kind)):
        return values
    parts = [_with_void(values.field(n), field.dataType) for n, field in enumerate(kind.fields)]
    fields = [pa.field(f.name, part.type) for f, part in zip(kind.fields, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())
