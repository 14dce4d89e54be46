"""The session and the calls that every replay of the corpus uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.tables import DeltaTable
from tests.corpus.run import Engine, Run


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    spark.conf.set("spark.sql.codegen.wholeStage", "false")  # few rows: to compile costs more
    engine = Engine(
        table_type=DeltaTable,
        run_sql=lambda text: puredelta.sql(spark, text),
        read=lambda path: puredelta.read(spark, path),
        append=lambda rows, path: puredelta.write(rows, path, mode="append"),
        changes=lambda path, version: puredelta.read_changes(spark, path, starting_version=version),
        explain=explain,
    )
    yield Run(spark=spark, directory=tmp_path_factory.mktemp("corpus"), engine=engine)
    spark.conf.unset("spark.sql.codegen.wholeStage")


def explain(error: Exception) -> dict[str, Any]:
    if not isinstance(error, (DeltaError, PySparkException)):
        return {"class": None, "sqlstate": None, "type": type(error).__name__}
    return {"class": error.getCondition(), "sqlstate": error.getSqlState()}
