"""A session that is activated for one test."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

import puredelta

CLASSES = (
    SparkSession,
    DataFrame,
    DataFrameReader,
    DataFrameWriter,
    DataFrameWriterV2,
    DataStreamReader,
    DataStreamWriter,
)
ORIGINALS = {
    (owner, name): method
    for owner in CLASSES
    for name, method in vars(owner).items()
    if isinstance(method, FunctionType)
}
"""Every method of PySpark that could be replaced."""


@pytest.fixture
def active(spark: SparkSession) -> Iterator[SparkSession]:
    assert puredelta.activate(spark)
    assert vars(SparkSession)["sql"] is not ORIGINALS[SparkSession, "sql"]
    yield spark
    puredelta.deactivate()
    assert all(vars(owner)[name] is method for (owner, name), method in ORIGINALS.items())
