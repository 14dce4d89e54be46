"""A session that is activated for one test."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import puredelta

ORIGINALS = {
    (owner, name): method
    for owner in (SparkSession, DataFrameReader, DataFrameWriter)
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
