"""Definitions of views, and CACHE TABLE AS, whose query names a Delta table by its path.

A temporary view looks anew at its tables each time it is used. One that outlives the session
cannot: what it is made of is text that Spark alone resolves.
"""

from __future__ import annotations

import re
from enum import Enum

from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.catalog.path_views import show_table
from puredelta.spark.session.session import is_connect
from puredelta.sql.relations.time_travel import may_name_states, with_views
from puredelta.sql.text.cursor import Cursor

_VIEW = re.compile(r"\b(?:CREATE\b.*?\bVIEW|CACHE\b.*?\bTABLE)\b", re.IGNORECASE | re.DOTALL)


class Lifetime(Enum):
    """How long a view lasts."""

    SESSION = "temporary"
    """As `CACHE TABLE` makes one, too."""
    GLOBAL = "global temporary"
    PERMANENT = "permanent"


def may_define_view(text: str) -> bool:
    """Tell from a glance whether a text may define a view over a table at a path."""
    return (
        may_name_states(text) and _VIEW.search(text) is not None and find_lifetime(text) is not None
    )


def run_view(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute a definition of a view over tables at paths; None for any other text.

    Tables of the catalog, as far as no version of them is chosen, are Spark's to find.

    Raises:
        UnsupportedError: the view is to be permanent.
        TableNotFoundError: there is no table at a path, or no such version.
        pyspark.errors.AnalysisException: Spark refuses the view.
    """
    if is_connect(spark) or not may_define_view(text):
        return None
    lifetime = find_lifetime(text)
    if lifetime is None:
        return None
    names = _ShownTables(lifetime)
    named = with_views(spark, text, names)
    return spark.sql(named) if names.is_used else None


class _ShownTables:
    """Gives tables names that last as long as the view that names them."""

    def __init__(self, lifetime: Lifetime) -> None:
        self._lifetime = lifetime
        self.is_used = False

    def add(self, rows: DataFrame) -> str:
        """Return the name of a view of these rows."""
        if self._lifetime is Lifetime.PERMANENT:
            raise UnsupportedError(
                "A permanent view cannot name a Delta table by its path, or a version of one: it "
                "outlives the session that knows what this is. Give the table a name (CREATE TABLE "
                "name USING delta LOCATION '/path') and let the view read that, or create a "
                "temporary view.",
                code=ErrorCode.OPERATION_NOT_ALLOWED,
            )
        self.is_used = True
        return show_table(rows, is_global=self._lifetime is Lifetime.GLOBAL)


def find_lifetime(text: str) -> Lifetime | None:
    """Return how long the view lasts that a text makes; None if it makes none.

    >>> find_lifetime("CREATE OR REPLACE TEMP VIEW v AS SELECT 1")
    <Lifetime.SESSION: 'temporary'>
    """
    cursor = Cursor(text)
    if cursor.accept("CACHE"):
        cursor.accept("LAZY")
        return Lifetime.SESSION if cursor.sees("TABLE") else None
    if not cursor.accept("CREATE"):
        return None
    cursor.accept("OR", "REPLACE")
    is_global = cursor.accept("GLOBAL")
    is_temporary = cursor.accept("TEMP") or cursor.accept("TEMPORARY")
    if not cursor.sees("VIEW"):
        return None
    if not is_temporary:
        return Lifetime.PERMANENT
    return Lifetime.GLOBAL if is_global else Lifetime.SESSION
