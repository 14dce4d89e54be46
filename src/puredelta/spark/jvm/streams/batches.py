"""Frames of a batch, as Spark's streaming engine wants them: flagged as streaming."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from puredelta.spark.jvm.classes import java_class, scala_none, session_of
from puredelta.spark.jvm.file_relation import SCAN_CLASS
from puredelta.spark.jvm.frames import analyzed_plan, dataset_of
from puredelta.spark.jvm.plans import Plan


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
