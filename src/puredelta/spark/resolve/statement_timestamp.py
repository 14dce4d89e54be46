"""One moment for a whole command, however many plans it runs (M-24)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.resolve.connect_clock import at_moment, plan_of, reads_clock, rows_of
from puredelta.spark.session.jvm import java_class


class StatementTimestamp(Protocol):
    """Makes ``current_timestamp()`` and its kin mean the same in every plan it has fixed."""

    def fix(self, rows: DataFrame) -> DataFrame:
        """Return the same rows with every reading of the clock replaced by this moment."""
        ...


class ConnectTimestamp:
    """The server's clock, read when the first plan needs it, put into the plans that are sent."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._micros: int | None = None

    def fix(self, rows: DataFrame) -> DataFrame:
        """Return the same rows with every reading of the clock replaced by this moment."""
        plan = plan_of(rows)
        if not reads_clock(plan):
            return rows
        if self._micros is None:
            asked = self._spark.sql("SELECT unix_micros(current_timestamp()) AS micros")
            [row] = asked.collect()
            self._micros = int(row["micros"])
        return rows_of(at_moment(plan, self._micros), rows)


class BoundTimestamp:
    """Spark's own reading of the clock, taken when the first plan needs it, put into plans as
    literals.

    A Scala ``Map`` is a ``PartialFunction``, so ``transformAllExpressionsWithSubqueries(map)``
    replaces expressions by equality without any Scala code. ``ReplaceExpressions`` comes first:
    ``current_timestamp() - interval 1 day`` keeps a copy of its own inside until then.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def fix(self, rows: DataFrame) -> DataFrame:
        """Return the same rows with every reading of the clock replaced by this moment."""
        plan = self._catalyst.analyzed(rows)
        fixed = self.fixed(plan)
        return rows if fixed is plan else self._catalyst.rows(fixed)

    def fixed(self, plan: Any) -> Any:
        """Do the same to an analyzed plan; without a reading it is returned itself."""
        if not plan.containsPattern(self._clock_pattern):  # not in subqueries either
            return plan
        plain = self._catalyst.after_rule("ReplaceExpressions", plan)
        return plain.transformAllExpressionsWithSubqueries(self._moments)

    @cached_property
    def _clock_pattern(self) -> Any:
        trees = "org.apache.spark.sql.catalyst.trees"
        return java_class(self._catalyst.jvm, f"{trees}.TreePattern").CURRENT_LIKE()

    @cached_property
    def _moments(self) -> Any:
        """Every reading of the clock and the literal that takes its place."""
        catalyst = self._catalyst
        asked = catalyst.spark.sql(
            "select current_timestamp(), now(), current_date(), localtimestamp()"
        )
        before = catalyst.analyzed(asked)
        after = catalyst.after_rule("ComputeCurrentTime", before)
        moments: Any = catalyst.jvm.java.util.HashMap()
        readings, literals = before.expressions(), after.expressions()
        for n in range(len(asked.columns)):
            moments.put(readings.apply(n).child(), literals.apply(n).child())
        return catalyst.jvm.PythonUtils.toScalaMap(moments)
