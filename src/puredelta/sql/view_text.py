"""Definitions of views, and CACHE TABLE AS, whose query names a Delta table by its path.

A temporary view looks anew at its tables each time it is used. One that outlives the session
cannot: what it is made of is text that Spark alone resolves.
"""

from __future__ import annotations

import re
from enum import Enum

from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.followed_views import show_table
from puredelta.spark.session import is_connect
from puredelta.sql.cursor import Cursor
from puredelta.sql.paths import may_name_states, with_views

_VIEW = re.compile(r"\s*(?:CREATE\b.*?\bVIEW|CACHE\b.*?\bTABLE)\b", re.IGNORECASE | re.DOTALL)


class _Kind(Enum):
    SESSION = "temporary"
    GLOBAL = "global temporary"
    PERMANENT = "permanent"


def may_define_view(text: str) -> bool:
    """Tell from a glance whether a text may define a view over a table at a path."""
    return _VIEW.match(text) is not None and may_name_states(text)


def run_view(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute a definition of a view over tables at paths; None for any other text.

    Tables of the catalog, as far as no version of them is chosen, are Spark's to find.

    Raises:
        UnsupportedError: the view is to be permanent.
        TableNotFoundError: there is no table at a path, or no such version.
        pyspark.errors.AnalysisException: Spark refuses the view.
    """
    kind = _kind(text) if may_define_view(text) and not is_connect(spark) else None
    if kind is None:
        return None
    names = _ShownTables(kind)
    named = with_views(spark, text, names)
    return spark.sql(named) if names.is_used else None


class _ShownTables:
    """Gives tables names that last as long as the view that names them."""

    def __init__(self, kind: _Kind) -> None:
        self._kind = kind
        self.is_used = False

    def add(self, rows: DataFrame) -> str:
        """Return the name of a view of these rows."""
        if self._kind is _Kind.PERMANENT:
            raise UnsupportedError(
                "A permanent view cannot name a Delta table by its path, or a version of one: it "
                "outlives the session that knows what this is. Give the table a name (CREATE TABLE "
                "name USING delta LOCATION '/path') and let the view read that, or create a "
                "temporary view.",
                code=ErrorCode.OPERATION_NOT_ALLOWED,
            )
        self.is_used = True
        return show_table(rows, is_global=self._kind is _Kind.GLOBAL)


def _kind(text: str) -> _Kind | None:
    cursor = Cursor(text)
    if cursor.accept("CACHE"):
        cursor.accept("LAZY")
        return _Kind.SESSION if cursor.sees("TABLE") else None
    cursor.accept("CREATE")
    cursor.accept("OR", "REPLACE")
    is_global = cursor.accept("GLOBAL")
    is_temporary = cursor.accept("TEMP") or cursor.accept("TEMPORARY")
    if not cursor.sees("VIEW"):
        return None
    if not is_temporary:
        return _Kind.PERMANENT
    return _Kind.GLOBAL if is_global else _Kind.SESSION
