"""C-02, C-08: CONVERT of tables of the catalog, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.convert.convert_to_delta import ALREADY_DELTA
from tests.commands.convert import named_tables
from tests.commands.convert.named_tables import CHECKS


@pytest.fixture
def database(spark: SparkSession) -> Iterator[SparkSession]:
    """An activated session whose current database is empty."""
    assert puredelta.activate(spark)
    spark.sql("CREATE DATABASE converted")
    spark.catalog.setCurrentDatabase("converted")
    yield spark
    spark.catalog.setCurrentDatabase("default")
    spark.sql("DROP DATABASE converted CASCADE")
    puredelta.deactivate()


IN_MEMORY = [name for name, made in CHECKS.items() if made.__module__ == named_tables.__name__]
"""Another module that was imported before adds what only Hive's metastore can do."""


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", IN_MEMORY)
def test_c_02_in_memory(database: SparkSession, tmp_path: Path, name: str) -> None:
    CHECKS[name](database, tmp_path)


def test_c_05_is_said_on_the_console(
    database: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    database.sql("CREATE TABLE d (a INT) USING delta")
    assert database.sql("CONVERT TO DELTA d").collect() == []
    assert capsys.readouterr().out == f"{ALREADY_DELTA}\n"
