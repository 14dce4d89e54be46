"""Replaced methods of PySpark classes, and the parts of readers and writers."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.jvm.file_index import any_asked
from puredelta.spark.session.pyspark_errors import like_pyspark
from puredelta.statements.names.names import find_name
from puredelta.statements.text.table_name import TableName

Method: TypeAlias = Callable[..., Any]
Make: TypeAlias = Callable[[Method], Method]
"""What makes a replacement from the original."""


class Patches:
    """What has been replaced, so that it can be undone."""

    def __init__(self) -> None:
        self._replaced: list[tuple[type, str, Method, Method]] = []
        self._is_active = True

    def replace(self, owner: type, name: str, make: Make) -> None:
        """Put ``make(original)`` in the place of a method that the class itself defines.

        The new one has the name, signature and documentation of the original. Errors of ours
        that leave it are PySpark's, too.
        """
        original: Method = owner.__dict__[name]
        made = like_pyspark(make(original), may_be_ours=any_asked)

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return (made if self._is_active else original)(*args, **kwargs)

        setattr(owner, name, replacement)
        self._replaced.append((owner, name, original, replacement))

    def undo(self) -> None:
        """Put every original back, the last one first.

        A method that somebody else has replaced after us stays theirs. Ours may be called by it, or
        come back when theirs is undone, and is the original from now on.
        """
        self._is_active = False
        while self._replaced:
            owner, name, original, replacement = self._replaced.pop()
            if owner.__dict__.get(name) is replacement:
                setattr(owner, name, original)


_SESSION_NAMES = ("_spark", "_session", "_client")
"""What kinds of builders call their session; a Connect reader calls it its client."""


def session_behind(builder: Any) -> SparkSession:
    """Return the session of a reader or a writer."""
    known = vars(builder)
    found: SparkSession = next(known[name] for name in _SESSION_NAMES if name in known)
    return found


def rows_of(writer: Any) -> DataFrame:
    """Return the frame that a writer writes; over Connect the writer holds the plan of one."""
    rows: Any = vars(writer)["_df"]
    if isinstance(rows, DataFrame):
        return rows
    frames: Any = importlib.import_module("pyspark.sql.connect.dataframe")  # Connect clients only
    made: DataFrame = frames.DataFrame(rows, session_behind(writer))
    return made


def table_name(given: Any) -> TableName | None:
    """Return the name that an argument is, None for anything that is no name."""
    return find_name(given) if isinstance(given, str) else None
