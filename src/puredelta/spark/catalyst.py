"""The Py4J edge to Spark's analyzer: plans in, plans out. Classic sessions only.

Nothing here knows what a command is. Every attribute of an analyzed plan has an
*expression id*; a ``Column`` taken from a DataFrame (``source["id"]``) finds its attribute by
that id, so frames that take another's place must carry the other's ids (`rebased`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession


class Catalyst:
    """The few Scala entry points that resolution needs, by name."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm  # noqa: SLF001 - the edge itself
        self.rules: Any = self.jvm.org.apache.spark.sql.catalyst.optimizer
        self._expressions: Any = self.jvm.org.apache.spark.sql.catalyst.expressions
        self._plans: Any = self.jvm.org.apache.spark.sql.catalyst.plans.logical

    def analyzed(self, rows: DataFrame) -> Any:
        """Return the analyzed logical plan."""
        return rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - the edge itself

    def rows(self, plan: Any) -> DataFrame:
        """Return a plan as a DataFrame of this session."""
        session: Any = self.spark._jsparkSession  # noqa: SLF001 - the edge itself
        dataset = self.jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(dataset.ofRows(session, plan), self.spark)

    def seq(self, items: Sequence[Any]) -> Any:
        """Return a Scala ``Seq``."""
        return self.jvm.PythonUtils.toSeq(list(items))

    def stand_in(self, rows: DataFrame) -> DataFrame:
        """Return no rows, no plan, and the very attributes of ``rows``: ids, names, qualifiers."""
        output = self.analyzed(rows).output()
        no_stream, no_data = self.jvm.scala.Option.empty(), self.seq([])
        relation = self._plans.LocalRelation(output, no_data, False, no_stream)  # noqa: FBT003
        return self.rows(relation)
