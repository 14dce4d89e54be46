"""``char(n)`` and ``varchar(n)``, as Spark treats them.

Both refuse text of more than n characters. Text of a ``char(n)`` that is shorter is stored as it
is, and filled up with blanks when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from typing_extensions import assert_never

from puredelta.protocol.schema.char_varchar import (
    Limited,
    LimitedArray,
    LimitedMap,
    LimitedStruct,
    Limits,
    has_padded,
    parse_limits,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.session import setting_of

_PADDING = "spark.sql.readSideCharPadding"


def read_limits(spark: SparkSession, config: TableConfig) -> Mapping[str, Limits]:
    """Return the columns that are read filled up with blanks; none if the session says so."""
    if setting_of(spark, _PADDING, "true").lower() != "true":
        return {}
    described = config.char_varchar_columns
    return {
        name: parse_limits(described[(name,)])
        for name in config.padded_columns
        if (name,) in described
    }


def exceeds(limits: Limits, value: Column) -> Column | None:
    """Return whether any text in a value is too long, never NULL; ``None``: none is limited."""
    match limits:
        case None:
            return None
        case Limited():
            return F.coalesce(F.length(value) > limits.length, F.lit(False))  # noqa: FBT003
        case LimitedStruct(fields):
            inner = [exceeds(kind, value.getField(name)) for name, kind in fields]
            return _any(*inner)
        case LimitedArray(element):
            return _any_element(element, value)
        case LimitedMap(key, item):
            return _any(
                _any_element(key, F.map_keys(value)), _any_element(item, F.map_values(value))
            )
        case _:
            assert_never(limits)


def padded(limits: Limits, value: Column, data_type: T.DataType) -> Column:
    """Return the value with every ``char(n)`` in it filled up with blanks, as Spark reads them."""
    if not has_padded(limits):
        return value
    match limits, data_type:
        case Limited(), _:
            short = F.length(value) < limits.length
            return F.when(short, F.rpad(value, limits.length, " ")).otherwise(value)
        case LimitedStruct(fields), T.StructType():
            kinds = dict(fields)
            made = F.struct(
                *(
                    padded(kinds.get(f.name), value.getField(f.name), f.dataType).alias(f.name)
                    for f in data_type.fields
                )
            )
            return F.when(value.isNotNull(), made)
        case LimitedArray(element), T.ArrayType():
            inner = data_type.elementType
            return F.transform(value, lambda item: padded(element, item, inner))
        case LimitedMap(key, item), T.MapType():
            keys, values = data_type.keyType, data_type.valueType
            made = F.transform_values(value, lambda _, v: padded(item, v, values))
            return F.transform_keys(made, lambda k, _: padded(key, k, keys))
        case _:
            return value


def _any_element(limits: Limits, values: Column) -> Column | None:
    if limits is None:
        return None

    def test(element: Column) -> Column:
        broken = exceeds(limits, element)
        return F.lit(False) if broken is None else broken  # noqa: FBT003

    return F.coalesce(F.exists(values, test), F.lit(False))  # noqa: FBT003


def _any(*conditions: Column | None) -> Column | None:
    known = [c for c in conditions if c is not None]
    return reduce(or_, known) if known else None
