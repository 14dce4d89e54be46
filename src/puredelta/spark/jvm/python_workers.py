"""The Spark context of a job of Python code that calls the JVM less. Classic sessions only."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.udf import UserDefinedFunction, _wrap_function
from pyspark.util import PythonEvalType

from puredelta.spark.jvm.classes import java_class


def worker_context(context: SparkContext, *, python: str | None) -> SparkContext:
    """Return a Spark context for one job of Python code; nothing lasting is changed.

    Its workers run ``python``, or what the context says. Classes of the JVM are known: PySpark's
    view of it tries every imported package for them, at each use.
    """
    return cast("SparkContext", _OwnContext(context, python))


class _OwnContext:
    """A Spark context that differs from another in a few attributes."""

    def __init__(self, context: SparkContext, python: str | None) -> None:
        self._context = context
        if python is not None:
            self.pythonExec = python

    @functools.cached_property
    def _jvm(self) -> _KnownView:
        return _KnownView(self._context._jvm)

    def parallelize(self, items: Sequence[Any], num_slices: int) -> Any:
        """Do what the other context does, with the attributes of this one."""
        return type(self._context).parallelize(cast("SparkContext", self), items, num_slices)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class _KnownView:
    """PySpark's view of the JVM, and the classes that running Python code takes."""

    def __init__(self, view: Any) -> None:
        self._view = view
        for name in ("PythonRDD", "PythonUtils", "SimplePythonFunction"):
            setattr(self, name, java_class(view, f"org.apache.spark.api.python.{name}"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


_MAKING = threading.RLock()


def mapped_in_arrow(
    rows: DataFrame,
    function: Callable[..., Any],
    schema: T.StructType,
    *,
    name: str,
    python: str | None,
) -> DataFrame:
    """Do what ``mapInArrow`` does, by workers that run ``python``, or what the context says.

    Plans show ``name``. PySpark's own asks for pandas, which it then does not use, and resolves
    columns by names that may hold dots.
    """
    spark = rows.sparkSession
    work = UserDefinedFunction(
        function, schema, name=name, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    columns = [F.col(f"`{name.replace('`', '``')}`") for name in rows.columns]
    with _workers_run(spark.sparkContext, python):
        made = rows._jdf.mapInArrow(work(*columns)._jc, False, None)  # noqa: FBT003
    return DataFrame(made, spark)


def python_function(spark: SparkSession, value: Any, *, python: str | None) -> Any:
    """Return a value as the JVM holds a function of Python: with what workers need to run it."""
    with _workers_run(spark.sparkContext, python):
        return _wrap_function(spark.sparkContext, value)


@contextmanager
def _workers_run(context: SparkContext, python: str | None) -> Iterator[None]:
    with _MAKING:
        known = context.pythonExec
        context.pythonExec = python or known
        try:
            yield
        finally:
            context.pythonExec = known
