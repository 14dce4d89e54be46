"""Frames that Spark makes of rows when somebody uses them, beside those PySpark makes at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from puredelta.spark.jvm.frames import analyzed_plan, lazy_frame
from puredelta.spark.jvm.gateway import java_class
from puredelta.spark.session.session import no_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_MAX = 60.0
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
    frame = lazy_frame(spark, SCHEMA, lambda: made.append(1) or [])
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

    frame = lazy_frame(spark, SCHEMA, rows)
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
    ids = [analyzed_plan(f).output()[0].expr_id() for f in (frame, first, second)]
    assert len(set(ids)) == 1
    assert analyzed_plan(first).output()[0].qualifier() == ("a",)


def test_threads_see_the_same_columns(spark: SparkSession) -> None:
    """The second asks for the plan while the first is making it."""
    made: list[int] = []
    making, asked = threading.Event(), threading.Event()

    def rows() -> list[Any]:
        made.append(1)
        making.set()
        assert asked.wait(SECONDS_MAX)
        return []

    frame = lazy_frame(spark, SCHEMA, rows)

    def ask_again() -> Any:
        assert making.wait(SECONDS_MAX)
        asked.set()
        return frame.plan

    with ThreadPoolExecutor(2) as threads:
        plans = [threads.submit(lambda: frame.plan), threads.submit(ask_again)]
        assert plans[0].result() is plans[1].result()
    assert made == [1]
