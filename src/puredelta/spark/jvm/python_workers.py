"""The Spark context of a job of Python code that calls the JVM less. Classic sessions only."""

from __future__ import annotations

import functools
from typing import Any, cast

from pyspark import SparkContext

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
