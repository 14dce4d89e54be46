"""The session and the calls that every replay of the corpus uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.corpus.run import Engine, LocalPlace, Run


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("corpus")
    with quick_session(spark):
        yield Run(
            spark=spark,
            directory=directory,
            engine=engine(spark),
            place=LocalPlace(directory),
        )


def quick_session(spark: SparkSession) -> AbstractContextManager[None]:
    """Switch off what only pays for many rows."""
    return temporary_settings(spark, {"spark.sql.codegen.wholeStage": "false"})


def engine(spark: SparkSession) -> Engine:
    """Return puredelta."""
    return Engine(
        open=lambda path: DeltaTable.forPath(spark, path),
        run_sql=lambda text: puredelta.sql(spark, text),
        read=lambda path: puredelta.read(spark, path),
        append=lambda rows, path: puredelta.write(rows, path, mode="append"),
        changes=lambda path, version: puredelta.read_changes(spark, path, starting_version=version),
        explain=explain,
    )


def explain(error: Exception) -> dict[str, Any]:
    if not isinstance(error, (DeltaError, PySparkException)):
        return {"class": None, "sqlstate": None, "type": type(error).__name__}
    return {"class": error.getCondition(), "sqlstate": error.getSqlState()}
