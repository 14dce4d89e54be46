"""Code of `puredelta.worker` as it travels to Spark's Python workers, and streams through it."""

from __future__ import annotations

import functools
import sys
import zlib
from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta import worker
from puredelta.spark.jvm.python_workers import mapped_in_arrow
from puredelta.spark.session.session import is_connect, runs_here
from puredelta.worker.bootstrap import run_stream

cloudpickle.register_pickle_by_value(worker)  # type: ignore[no-untyped-call]


@functools.cache
def packed_code(function: Callable[..., Any]) -> bytes:
    """Return a function of a worker module with all the code of this package that it needs.

    Packed once: it takes milliseconds, and the code does not change. Compressed it is a third:
    the JVM takes each byte in hand several times before a worker has it.
    """
    code: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    return zlib.compress(code)


def streamed(
    rows: DataFrame, function: Callable[..., Any], argument: object, schema: T.StructType
) -> DataFrame:
    """Return what a function of a worker module makes of the rows of each task. Runs no job.

    The function takes ``argument``, which is of plain values (`puredelta.worker.wire`), and an
    iterator of Arrow batches; it yields Arrow batches of ``schema``.
    """
    work = worker_function(function, argument)
    if is_connect(rows.sparkSession):
        return rows.mapInArrow(work, schema)
    python = workers_python(rows.sparkSession)
    return mapped_in_arrow(rows, work, schema, name=function.__name__, python=python)


def worker_function(function: Callable[..., Any], argument: object) -> Callable[..., Any]:
    """Return a function of a worker module, bound to its first argument, with all its code."""
    return functools.partial(run_stream, packed_code(function), argument)


def workers_python(spark: SparkSession) -> str | None:
    """Return what the workers of a classic session run; None: what the session says.

    In a local session they are the driver's own Python.
    """
    return sys.executable if runs_here(spark.sparkContext.master) else None
