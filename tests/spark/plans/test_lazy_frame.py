"""Frames that Spark makes of rows when somebody uses them, beside those PySpark makes at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.plans.lazy_frame import late_frame, no_rows
from puredelta.spark.session.jvm import java_class, scala_object, scala_seq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = T.StructType(
    [
        T.StructField("id", T.LongType(), nullable=False),
        T.StructField("tags", T.ArrayType(T.StringType()), metadata={"comment": "few"}),
    ]
)


def is_made(frame: DataFrame) -> bool:
    return "_jdf" in vars(frame)


def test_what_is_known_costs_nothing(spark: SparkSession) -> None:
    made: list[int] = []
    frame = late_frame(spark, SCHEMA, lambda: made.append(1) or [])
    named = frame.alias("t")
    assert isinstance(frame, DataFrame)
    assert (named.schema, named.columns) == (SCHEMA, ["id", "tags"])
    assert named.sparkSession is spark
    assert not (is_made(frame))
    assert not (is_made(named))
    assert not made
    assert named.collect() == []
    assert is_made(named)
    assert not is_made(frame)
    assert frame.count() == 0
    assert made == [1]


def test_schema_and_rows_are_those_pyspark_would_make(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    create = java_class(jvm, "org.apache.spark.sql.RowFactory").create
    gateway: Any = spark.sparkContext._gateway

    def rows() -> list[Any]:
        cells = gateway.new_array(jvm.Object, 2)
        cells[0], cells[1] = java_class(jvm, "java.lang.Long").valueOf("1099511627776"), None
        return [create(cells)]

    frame = late_frame(spark, SCHEMA, rows)
    usual = spark.createDataFrame([(1 << 40, None)], SCHEMA)
    assert frame.select("*").schema == usual.schema == frame.schema
    assert frame.collect() == usual.collect()
    assert frame.where("id > 5").count() == 1
    nothing = no_rows(spark, SCHEMA)
    assert nothing.select("*").schema == SCHEMA
    assert nothing.isEmpty()


def test_frames_made_of_one_share_their_columns(spark: SparkSession) -> None:
    """Also those named before any was used."""
    frame = no_rows(spark, SCHEMA)
    first, second = frame.alias("a"), frame.alias("b")
    assert first.where(frame["id"] == second["id"]).where("a.id > 1").isEmpty()
    catalyst = Catalyst(spark)
    ids = [str(catalyst.analyzed(f).output().apply(0).exprId()) for f in (frame, first, second)]
    assert len(set(ids)) == 1
    assert catalyst.analyzed(first).output().apply(0).qualifier().mkString(".") == "a"


def test_threads_see_the_same_columns(spark: SparkSession) -> None:
    made: list[int] = []

    def rows() -> list[Any]:
        made.append(1)
        time.sleep(0.05)
        return []

    frame = late_frame(spark, SCHEMA, rows)
    with ThreadPoolExecutor(4) as threads:
        plans = list(threads.map(lambda _: frame.plan, range(4)))
    assert len(made) == len(set(map(id, plans))) == 1


def test_classes_keep_what_stays_the_same(spark: SparkSession) -> None:
    jvm = spark._jvm
    math = java_class(jvm, "java.lang.Math")
    assert java_class(jvm, "java.lang.Math") is math
    assert (math.abs(-3), math.max(1, 2), math.abs(-4)) == (3, 2, 4)
    assert {"abs", "max"} <= vars(math).keys()
    assert math.E == 2.718281828459045
    assert "E" not in vars(math)  # a field that may change, for all that is known
    nothing = scala_object(jvm, "scala.None")
    assert scala_object(jvm, "scala.None") is nothing
    assert nothing.isEmpty()


def test_a_sequence_of_scala(spark: SparkSession) -> None:
    assert scala_seq(spark._jvm, ["a", "b", "c"]).mkString("-") == "a-b-c"
    assert scala_seq(spark._jvm, ("a",)).size() == 1
    assert scala_seq(spark._jvm, []).isEmpty()
