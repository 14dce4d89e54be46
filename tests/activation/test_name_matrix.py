"""Statements on names, in the catalog in memory; in Hive's they run with those of CONVERT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.catalog import relation_cache
from tests.activation.name_checks import NAME_CHECKS

LATER = {"every_statement_takes_every_spelling", "what_another_session_does_is_noticed"}
"""Checks that take long: make thorough runs them."""


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    """An activated session whose current database is empty."""
    active.sql("CREATE DATABASE Matrix")
    active.catalog.setCurrentDatabase("matrix")
    yield active
    active.catalog.setCurrentDatabase("default")
    active.sql("DROP DATABASE matrix CASCADE")
    assert not relation_cache._cached


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough if name in LATER else ())
        for name in NAME_CHECKS
    ],
)
def test_in_memory(database: SparkSession, tmp_path: Path, name: str) -> None:
    NAME_CHECKS[name](database, tmp_path)
