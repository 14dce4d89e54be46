"""Replaced methods of PySpark classes, and access to the internals of readers and writers."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.jvm.file_index import any_asked
from puredelta.spark.session.pyspark_errors import like_pyspark
from puredelta.statements.names.names import find_name
from puredelta.statements.parse.table_name import TableName

Method: TypeAlias = Callable[..., Any]
Make: TypeAlias = Callable[[Method], Method]
"""Makes a replacement from the original."""


class Patches:
    """Record of replaced methods, which can be undone."""

    def __init__(self) -> None:
        self._replaced: list[tuple[type, str, Method, Method]] = []
        self._is_active = True

    def replace(self, owner: type, name: str, make: Make) -> None:
        """Put ``make(original)`` in the place of a method that the class itself defines.

        The replacement has the name, signature and documentation of the original. This package's
        errors that leave it are PySpark's, too.
        """
        original: Method = owner.__dict__[name]
        made = like_pyspark(make(original), may_be_ours=any_asked)

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return (made if self._is_active else original)(*args, **kwargs)

        setattr(owner, name, replacement)
        self._replaced.append((owner, name, original, replacement))

    def undo(self) -> None:
        """Restore every original, the last one first.

        A method that another package has replaced meanwhile is left alone. It may still call this
        package's replacement, or restore it later, so the replacement then acts like the original.
        """
        self._is_active = False
        while self._replaced:
            owner, name, original, replacement = self._replaced.pop()
            if owner.__dict__.get(name) is replacement:
                setattr(owner, name, original)


_SESSION_NAMES = ("_spark", "_session", "_client", "_sparkSession")
"""Attributes in which builders keep their session; a Connect reader has its client."""


def session_behind(builder: Any) -> SparkSession:
    """Return the session of a reader, a writer or a catalog."""
    known = vars(builder)
    found: SparkSession = next(known[name] for name in _SESSION_NAMES if name in known)
    return found


def rows_of(writer: Any) -> DataFrame:
    """Return the frame of a writer; a Connect writer has its plan."""
    return _frame(vars(writer)["_df"], writer)


def streamed_rows(writer: Any) -> DataFrame:
    """Return the frame of a stream writer, which over Connect knows it as an input of its plan."""
    known = vars(writer)
    return _frame(known["_df"] if "_df" in known else known["_write_stream"]._child, writer)  # noqa: SLF001


def _frame(rows: Any, writer: Any) -> DataFrame:
    if isinstance(rows, DataFrame):
        return rows
    frames: Any = importlib.import_module("pyspark.sql.connect.dataframe")  # Connect clients only
    made: DataFrame = frames.DataFrame(rows, session_behind(writer))
    return made


def table_name(given: Any) -> TableName | None:
    """Return an argument if it is a table name, else None."""
    return find_name(given) if isinstance(given, str) else None
