"""What PySpark's readers and writers hold: their session and their rows, classic or Connect."""

from __future__ import annotations

import importlib
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.sql.relations.names import find_name
from puredelta.sql.text.table_name import TableName

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
