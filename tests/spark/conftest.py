"""Fixtures of the Spark layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Any]:
    """Set session settings for one test."""
    changed: list[str] = []

    def change(key: str, value: str) -> None:
        changed.append(key)
        spark.conf.set(key, value)

    yield change
    for key in changed:
        spark.conf.unset(key)
