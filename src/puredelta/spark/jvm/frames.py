"""DataFrames and the plans behind them. Classic sessions only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from typing_extensions import Self

from puredelta.spark.jvm.expressions import Attribute, Attributes, Expression, aliased
from puredelta.spark.jvm.file_index import SCAN_CLASS
from puredelta.spark.jvm.gateway import (
    CATALYST,
    cloned_session,
    java_array,
    java_class,
    java_type,
    jvm_of,
    scala_none,
    scala_object,
    scala_seq,
    session_of,
)
from puredelta.spark.jvm.plans import Plan, empty_relation, named_plan, projected

_MAKING = threading.RLock()
_ANALYZED: WeakKeyDictionary[DataFrame, Plan] = WeakKeyDictionary()


def analyzed_plan(rows: DataFrame) -> Plan:
    """Return the analyzed logical plan; the same object every time."""
    if isinstance(rows, LazyDataFrame):
        return rows.plan
    if rows not in _ANALYZED:
        _ANALYZED[rows] = Plan(rows._jdf.queryExecution().analyzed())
    return _ANALYZED[rows]


def logical_plan(rows: DataFrame) -> Plan:
    """Return the plan that frames made of these rows have below them, the very object."""
    return Plan(rows._jdf.logicalPlan())


def frame_of(spark: SparkSession, plan: Plan) -> DataFrame:
    """Return a plan as a DataFrame of this session; Spark analyzes and checks the plan."""
    return DataFrame(dataset_of(session_of(spark), plan), spark)


def is_of_session(rows: DataFrame, spark: SparkSession) -> bool:
    """Return whether a frame belongs to this very session of the JVM."""
    return bool(session_of(rows.sparkSession).equals(session_of(spark)))


def rebound(rows: DataFrame, settings: Mapping[str, str]) -> DataFrame:
    """Return the same rows in a clone of their session that has other settings."""
    clone = cloned_session(session_of(rows.sparkSession), settings)
    return DataFrame(dataset_of(clone, logical_plan(rows)), rows.sparkSession)


def dataset_of(session: Any, plan: Plan) -> Any:
    """Return the JVM's own frame of a plan; a plan that is a command is executed."""
    frames = java_class(session, "org.apache.spark.sql.classic.Dataset")
    return frames.ofRows(session, plan.java)


# --- other attributes -----------------------------------------------------------------------


def with_attributes(rows: DataFrame, named: Mapping[str, tuple[str, Attribute]]) -> DataFrame:
    """Project rows onto other attributes; columns that are not named pass through.

    ``named`` gives for a column of ``rows`` its new name and the attribute whose id and
    qualifiers it takes. No plan below ``rows`` may have that id: Spark would give the new
    column another one.
    """
    plan = analyzed_plan(rows)
    columns: list[Expression] = [
        aliased(attribute, named[column][0], like=named[column][1])
        if column in named
        else attribute
        for column, attribute in zip(rows.columns, plan.output(len(rows.columns)), strict=True)
    ]
    return frame_of(rows.sparkSession, projected(columns, plan))


def no_rows_like(known: DataFrame, latest: DataFrame) -> DataFrame:
    """Return no rows with the columns of ``latest``.

    A column that ``known`` has, too, keeps the attribute it has there, whatever its type is
    now. The others take over the qualifiers of ``known``.
    """
    before = analyzed_plan(known).output(len(known.columns))
    kept = dict(zip(known.columns, before, strict=True))
    qualifier = before[0].java.qualifier() if before else scala_seq(jvm_of(known.sparkSession), [])
    after = analyzed_plan(latest).output(len(latest.columns))
    attributes = [
        kept[name].java.withDataType(attribute.java.dataType())
        if name in kept
        else attribute.java.withQualifier(qualifier)
        for name, attribute in zip(latest.columns, after, strict=True)
    ]
    return frame_of(known.sparkSession, empty_relation(Attributes.of(after.java, attributes)))


# --- frames that are made when they are used ------------------------------------------------


class LazyDataFrame(ClassicFrame):
    """A frame whose columns are known, and which the JVM makes when it is first used.

    Most frames that only say what the names of a statement mean, or that hold the counts a command
    answers with, are never used; to make one takes several milliseconds.
    """

    def __new__(cls, *_arguments: Any) -> Self:
        """Return an empty object: PySpark 4.0 would take the arguments for its own."""
        return object.__new__(cls)

    def __init__(self, spark: SparkSession, schema: T.StructType, make: Callable[[], Plan]) -> None:
        """``make`` returns the logical plan, one that needs no analysis; it is called once."""
        super().__init__(None, spark)
        del self.__dict__["_jdf"]
        self.__dict__["schema"] = schema
        self._make = make
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        """The logical plan; its attributes are the same in all frames made of this one."""
        with _MAKING:  # two threads would make two, whose columns are different ones
            if self._plan is None:
                self._plan = self._make()
        return self._plan

    @cached_property
    def _jdf(self) -> Any:
        return dataset_of(session_of(self.sparkSession), self.plan)

    def alias(self, alias: str) -> LazyDataFrame:
        """Return the same rows under a name."""
        return LazyDataFrame(self.sparkSession, self.schema, lambda: named_plan(alias, self.plan))


def lazy_frame(
    spark: SparkSession, schema: T.StructType, make_rows: Callable[[], Sequence[Any]] = tuple
) -> LazyDataFrame:
    """Return rows that the driver's JVM holds, under a schema; runs no job, now or later.

    PySpark's own ``createDataFrame`` starts from an RDD or from Arrow: many times the calls.
    ``make_rows`` returns objects such as `row_of_longs` makes; it is called once, when the
    frame is first used.
    """
    jvm = jvm_of(spark)

    def make() -> Plan:
        types = java_class(jvm, f"{CATALYST}.types.DataTypeUtils")
        relations = scala_object(jvm, f"{CATALYST}.plans.logical.LocalRelation")
        attributes = types.toAttributes(java_type(jvm, schema))
        return Plan(relations.fromExternalRows(attributes, scala_seq(jvm, make_rows())))

    return LazyDataFrame(spark, schema, make)


def row_of_longs(spark: SparkSession, values: Sequence[int]) -> Any:
    """Return a row for `lazy_frame`."""
    jvm = jvm_of(spark)
    cells = java_array(spark, "long", values)
    # Alone, a number that fits would become an Integer on the other side.
    longs = java_class(jvm, "java.util.stream.LongStream").of(cells).boxed().toArray()
    return java_class(jvm, "org.apache.spark.sql.RowFactory").create(longs)


def streaming_batch(rows: DataFrame) -> Any:
    """Return the JVM's frame of the same rows, whose scans of files are flagged as streaming.

    Where there are none (rows of Python workers), the rows come as an RDD: columns are not
    pruned then.
    """
    session, plan = session_of(rows.sparkSession), analyzed_plan(rows)
    scans = [leaf for leaf in plan.leaves if leaf.class_name == SCAN_CLASS]
    if not scans:
        execution = dataset_of(session, plan).queryExecution()
        schema = execution.analyzed().schema()
        return session.internalCreateDataFrame(execution.toRdd(), schema, True)  # noqa: FBT003 - positions of the JVM
    return dataset_of(session, plan.with_replaced([(scan, _streaming(scan)) for scan in scans]))


def _streaming(scan: Plan) -> Plan:
    java, none, streams = scan.java, scala_none(scan.java), True
    known = [java.relation(), java.output(), none, streams, none]  # the last one since Spark 4.1
    return Plan(java_class(java, SCAN_CLASS)(*known[: java.productArity()]))
