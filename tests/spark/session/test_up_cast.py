"""M-60, STRICT: the same answers as Spark's own ``Cast.canUpCast``."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.values.store_assignment import can_up_cast

TYPES = [
    *("byte", "short", "int", "long", "float", "double", "boolean", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "decimal(3,0)", "decimal(10,0)", "decimal(10,2)"),
    *("decimal(20,0)", "decimal(38,10)", "array<int>", "array<long>", "map<string,int>"),
    *("map<string,long>", "map<date,int>", "struct<a:int>", "void"),
]


def test_agrees_with_spark(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    judge = jvm.org.apache.spark.sql.catalyst.expressions.Cast
    parse = jvm.org.apache.spark.sql.types.DataType.fromDDL
    theirs = {t: parse(t) for t in TYPES}
    ours = {t: T._parse_datatype_string(t) for t in TYPES}
    differing = [
        (a, b)
        for a in TYPES
        for b in TYPES
        if can_up_cast(ours[a], ours[b]) is not judge.canUpCast(theirs[a], theirs[b])
    ]
    assert differing == []


@pytest.mark.parametrize(("given", "to"), [("int", "long"), ("void", "struct<a:int>")])
def test_needs_no_session(given: str, to: str) -> None:
    ours = {"int": T.IntegerType(), "long": T.LongType(), "void": T.NullType()}
    target = ours.get(to, T.StructType([T.StructField("a", T.IntegerType())]))
    assert can_up_cast(ours[given], target)
