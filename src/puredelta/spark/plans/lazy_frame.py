"""Rows that the driver's JVM holds, as a DataFrame it makes when somebody uses it.

Classic sessions only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from typing_extensions import Self

from puredelta.spark.session.jvm import java_class, scala_object, scala_seq
from puredelta.spark.session.session import is_connect

_CATALYST = "org.apache.spark.sql.catalyst"
_MAKING = threading.RLock()


class LazyDataFrame(ClassicFrame):
    """A frame whose columns are known, which Spark looks at when somebody uses it.

    Few are ever used of those that only say what the names of a statement mean, or that hold
    the counts a command answers with; to make one takes several milliseconds.
    """

    def __new__(cls, *_arguments: Any) -> Self:
        """Return an empty object: PySpark 4.0 would take the arguments for its own."""
        return object.__new__(cls)

    def __init__(self, spark: SparkSession, schema: T.StructType, make: Callable[[], Any]) -> None:
        """``make`` returns the logical plan, one that needs no analysis; it is called once."""
        super().__init__(None, spark)
        del self.__dict__["_jdf"]
        self.__dict__["schema"] = schema
        self._make = make
        self._plan: Any = None

    @property
    def plan(self) -> Any:
        """The logical plan; its attributes are the same in all frames made of this one."""
        with _MAKING:  # two threads would make two, whose columns are different ones
            if self._plan is None:
                self._plan = self._make()
        return self._plan

    @cached_property
    def _jdf(self) -> Any:
        return dataset_of(self.sparkSession, self.plan)

    def alias(self, alias: str) -> LazyDataFrame:
        """Return the same rows under a name."""
        spark = self.sparkSession
        return LazyDataFrame(spark, self.schema, lambda: named_plan(spark, alias, self.plan))


def dataset_of(spark: SparkSession, plan: Any) -> Any:
    """Return the JVM's frame of a logical plan, which Spark analyzes and checks."""
    session: Any = spark
    frames = java_class(session._jvm, "org.apache.spark.sql.classic.Dataset")  # noqa: SLF001
    return frames.ofRows(session._jsparkSession, plan)  # noqa: SLF001


def named_plan(spark: SparkSession, name: str, plan: Any) -> Any:
    """Return a logical plan under a name."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the Py4J edge
    return scala_object(jvm, f"{_CATALYST}.plans.logical.SubqueryAlias").apply(name, plan)


def no_rows(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """Return a frame of no rows; runs no job."""
    return spark.createDataFrame([], schema) if is_connect(spark) else late_frame(spark, schema)


def late_frame(
    spark: SparkSession, schema: T.StructType, make_rows: Callable[[], Sequence[Any]] = tuple
) -> LazyDataFrame:
    """Return the JVM's ``Row`` objects under a schema; runs no job, now or later.

    PySpark's own ``createDataFrame`` starts from an RDD or from Arrow: many times the calls.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the Py4J edge

    def make() -> Any:
        kind = java_class(jvm, "org.apache.spark.sql.types.DataType").fromJson(schema.json())
        attributes = java_class(jvm, f"{_CATALYST}.types.DataTypeUtils").toAttributes(kind)
        relations = scala_object(jvm, f"{_CATALYST}.plans.logical.LocalRelation")
        return relations.fromExternalRows(attributes, scala_seq(jvm, make_rows()))

    return LazyDataFrame(spark, schema, make)
