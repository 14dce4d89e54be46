"""A writer that is a Spark session: puredelta on a stock PySpark, or delta-spark with its JARs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from simulation.rivals.bank import COLUMNS, IS_ACCOUNT, ON, SCHEMA, Kind, Order, Row, opening_rows
from simulation.rivals.rival import ConflictLost

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
}
_DELTA_SPARK = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class SparkRival:
    """Executes orders in a session of its own."""

    def __init__(self, product: str) -> None:
        builder = SparkSession.builder.master("local[1]")
        is_ours = product == "puredelta"
        for key, value in (_SETTINGS if is_ours else {**_SETTINGS, **_DELTA_SPARK}).items():
            builder = builder.config(key, value)
        if is_ours:
            self._spark = builder.getOrCreate()
            importlib.import_module("puredelta").activate(self._spark)
            self._tables = importlib.import_module("puredelta.tables").DeltaTable
        else:
            configure: Callable[[Any], Any] = importlib.import_module(
                "delta"
            ).configure_spark_with_delta_pip
            self._spark = configure(builder).getOrCreate()
            self._tables = importlib.import_module("delta.tables").DeltaTable

    def open_bank(self, table: Path, *, vectors: bool) -> None:
        """Create the table."""
        self._spark.sql(
            f"CREATE TABLE delta.`{table}` ({SCHEMA}) USING delta TBLPROPERTIES "
            f"('delta.checkpointInterval' = '5', "
            f"'delta.enableDeletionVectors' = '{str(vectors).lower()}')"
        )
        self._append(table, opening_rows())

    def execute(self, table: Path, order: Order) -> None:
        """Execute one order.

        Raises:
            ConflictLost: another writer was faster; nothing was committed.
        """
        try:
            self._execute(table, order)
        except Exception as failure:
            if _is_conflict(failure):
                raise ConflictLost(f"{type(failure).__name__}: {failure}") from failure
            raise

    def rows(self, table: Path) -> list[Row]:
        """Return the rows of the newest version."""
        found = self._spark.read.format("delta").load(str(table)).select(*COLUMNS).collect()
        return [(row[0], row[1], row[2], row[3]) for row in found]

    def _execute(self, table: Path, order: Order) -> None:
        target = self._tables.forPath(self._spark, str(table))
        match order.kind:
            case Kind.TRANSFER:
                merge = target.alias("t").merge(self._frame(order.rows()).alias("s"), ON)
                changed = merge.whenMatchedUpdate(IS_ACCOUNT, {"amount": "t.amount + s.amount"})
                changed.whenNotMatchedInsertAll().execute()
            case Kind.NOTE:
                self._append(table, order.rows())
            case Kind.FORGET:
                target.delete(f"entry = '{order.name}'")
            case Kind.COMPACT:
                target.optimize().executeCompaction()

    def _append(self, table: Path, rows: Any) -> None:
        self._frame(rows).write.format("delta").mode("append").save(str(table))

    def _frame(self, rows: Any) -> DataFrame:
        return self._spark.createDataFrame(list(rows), SCHEMA)


def _is_conflict(failure: Exception) -> bool:
    name = type(failure).__name__
    text = str(failure)
    if isinstance(failure, PySparkException) and "DELTA_CONCURRENT" in text:
        return True
    return "Concurrent" in name or "CONCURRENT" in text.split("\n", 1)[0]
