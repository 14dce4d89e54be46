"""The rows a MERGE statement names behind USING."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.read import read_table
from puredelta.spark.resolve.qualified import qualified
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.session import is_connect
from puredelta.sql.parse.statement import MergeStatement, SourceQuery, SourceTable
from puredelta.sql.relations.names import resolve_name
from puredelta.sql.relations.time_travel import with_views
from puredelta.sql.relations.views import TemporaryViews


def source_rows(
    spark: SparkSession, statement: MergeStatement, *, views: TemporaryViews
) -> DataFrame:
    """Return the source under its alias or name; Spark resolves it, nothing is run.

    Names of common table expressions, views and tables mean what they mean in a query;
    ``delta.`/path` `` is the newest version of the table there, also inside a query.

    Raises:
        TableNotFoundError: there is no table at a path.
        pyspark.errors.AnalysisException: Spark cannot resolve the source.
    """
    source = statement.source
    ctes = with_views(spark, statement.ctes, views)
    match source:
        case SourceQuery():
            query = with_views(spark, source.query, views)
            rows = views.query(spark, _select(ctes, f"({query})") if ctes else query)
            return rows if source.alias is None else rows.alias(source.alias)
        case SourceTable():
            return _table_rows(spark, source, ctes, views)
        case _:
            assert_never(source)


def _table_rows(
    spark: SparkSession, source: SourceTable, ctes: str, views: TemporaryViews
) -> DataFrame:
    name = resolve_name(spark, source.name)
    if name.path is not None:
        rows = read_table(spark, name.path)
        return qualified(rows, name.qualifier) if source.alias is None else rows.alias(source.alias)
    quoted = quote_name(name.parts)
    rows = views.query(spark, _select(ctes, quoted)) if ctes else views.table(spark, name.parts)
    if source.alias is not None:
        return rows.alias(source.alias)
    # A Connect client cannot see the name that the server gives the columns.
    return rows.alias(name.parts[-1]) if is_connect(spark) else rows


def _select(ctes: str, relation: str) -> str:
    return f"{ctes} SELECT * FROM {relation}"  # noqa: S608 - the user's own text
