"""Directory names for partition values, without Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError
from puredelta.protocol.schema.partition_values import HIVE_NULL
from puredelta.spark.scan.native_scan import spark_parses, virtual_directory


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        (T.StringType(), "a b", "/p=a%20b"),
        (T.StringType(), "a/b=c%", "/p=a%2Fb%3Dc%25"),
        (T.StringType(), "é文", "/p=é文"),
        (T.StringType(), "..", "/p=.."),
        (T.StringType(), None, f"/p={HIVE_NULL}"),
        (T.StringType(), "", f"/p={HIVE_NULL}"),
        (T.StringType(), HIVE_NULL, "/p=%5F_HIVE_DEFAULT_PARTITION__"),
        (T.IntegerType(), "", f"/p={HIVE_NULL}"),
        (T.DecimalType(10, 2), "1.5", "/p=1.50"),
        (T.DecimalType(10, 2), "1E2", "/p=100.00"),
        (T.DecimalType(38, 0), "-1", "/p=-1"),
        (T.TimestampType(), "2020-01-01 00:00:00", "/p=2020-01-01%2000%3A00%3A00"),
    ],
)
def test_value_is_spelled_for_spark_x82(
    data_type: T.DataType, value: str | None, expected: str
) -> None:
    assert virtual_directory({"p": value}, [T.StructField("p", data_type)]) == expected


def test_column_names_are_escaped_and_missing_values_are_null() -> None:
    fields = [T.StructField("a=b", T.StringType()), T.StructField("q", T.StringType())]
    assert virtual_directory({"a=b": "x"}, fields) == f"/a%3Db=x/q={HIVE_NULL}"
    assert virtual_directory({"a=b": "x"}, []) == ""


@pytest.mark.parametrize("text", ["abc", "12345.6", "NaN", "Infinity"])
def test_text_that_is_no_such_decimal_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptTableError, match=text):
        virtual_directory({"p": text}, [T.StructField("p", T.DecimalType(5, 2))])


def test_which_types_are_carried_as_text() -> None:
    assert not spark_parses(T.BinaryType())
    assert not spark_parses(T.StringType("UTF8_LCASE"))
    assert spark_parses(T.StringType())
    assert spark_parses(T.DateType())
