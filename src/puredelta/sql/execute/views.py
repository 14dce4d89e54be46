"""Definitions of views, and CACHE TABLE AS, whose query names a Delta table by its path.

A temporary view looks at its tables again each time it is used. A permanent view cannot: it is
stored as text that Spark alone resolves.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.catalog.path_views import path_view
from puredelta.spark.session.session import is_connect
from puredelta.sql.parse.statement import ViewLifetime, ViewStatement
from puredelta.sql.relations.query_tables import with_views


def create_view(spark: SparkSession, statement: ViewStatement, *, text: str) -> DataFrame | None:
    """Execute the definition of a view over tables at paths; None for any other view.

    Tables of the catalog, as far as no version of them is chosen, are Spark's to find.

    Raises:
        UnsupportedError: the view is to be permanent.
        TableNotFoundError: there is no table at a path, or no such version.
        pyspark.errors.AnalysisException: Spark refuses the view.
    """
    if is_connect(spark):
        return None
    names = _TablesOfView(statement.lifetime)
    named = with_views(spark, text, names)
    return spark.sql(named) if names.is_used else None


class _TablesOfView:
    """Gives tables names that last as long as the view that names them."""

    def __init__(self, lifetime: ViewLifetime) -> None:
        self._lifetime = lifetime
        self.is_used = False

    def add(self, rows: DataFrame) -> str:
        """Return the name of a view of these rows."""
        if self._lifetime is ViewLifetime.PERMANENT:
            raise UnsupportedError(
                "A permanent view cannot name a Delta table by its path, or a version of one: it "
                "outlives the session that knows what this is. Give the table a name (CREATE TABLE "
                "name USING delta LOCATION '/path') and let the view read that, or create a "
                "temporary view.",
                code=ErrorCode.OPERATION_NOT_ALLOWED,
            )
        self.is_used = True
        return path_view(rows, is_global=self._lifetime is ViewLifetime.GLOBAL)
