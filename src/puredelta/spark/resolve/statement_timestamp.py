"""One timestamp for a whole statement, however many plans it runs (M-24)."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.connect.messages import plan_of, rows_of
from puredelta.spark.jvm.analyzer import ClockReading, reads_clock
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.resolve import connect


class StatementTimestamp(Protocol):
    """Makes ``current_timestamp()`` and its kin mean the same in every plan of a statement."""

    def bind(self, rows: DataFrame) -> DataFrame:
        """Return the same rows with the statement's timestamp wherever they read the clock."""
        ...


class ConnectTimestamp:
    """The server's clock, read when the first plan needs it, put into the plans that are sent."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def bind(self, rows: DataFrame) -> DataFrame:
        """Return the same rows with the statement's timestamp wherever they read the clock."""
        plan = plan_of(rows)
        if not connect.reads_clock(plan):
            return rows
        return rows_of(connect.with_timestamp(plan, self._micros), rows)

    @cached_property
    def _micros(self) -> int:
        asked = self._spark.sql("SELECT unix_micros(current_timestamp()) AS micros")
        [row] = asked.collect()
        return int(row["micros"])


class ClassicTimestamp:
    """Spark's own reading of the clock, taken when the first plan needs it, put into plans as
    literals.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def bind(self, rows: DataFrame) -> DataFrame:
        """Return the same rows with the statement's timestamp wherever they read the clock."""
        plan = analyzed_plan(rows)
        bound = self.bound(plan)
        return rows if bound is plan else frame_of(self._spark, bound)

    def bound(self, plan: Plan) -> Plan:
        """Do the same to an analyzed plan; one that does not read the clock is returned itself."""
        return self._reading.in_place_of_clock(plan) if reads_clock(plan) else plan

    @cached_property
    def _reading(self) -> ClockReading:
        return ClockReading(self._spark)
