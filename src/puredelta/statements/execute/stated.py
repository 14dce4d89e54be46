"""CREATE TABLE and INSERT as text: their meaning, and the rows of the queries inside.

In a classic session Spark's parser in the JVM reads the text. Over Connect the server says whether
the text is valid, and the client reads the clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.catalog.relation_cache import query_rows
from puredelta.spark.jvm.statement_plans import (
    InsertInto,
    Query,
    SeveralInserts,
    StatedTable,
    parse_plan,
)
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.names import quote, quote_name
from puredelta.spark.session.session import is_connect
from puredelta.statements.execute.stated_text import read_stated
from puredelta.statements.names.catalog_query import named_query
from puredelta.statements.names.names import resolve_name
from puredelta.statements.names.query_tables import with_views
from puredelta.statements.names.views import TemporaryViews
from puredelta.statements.parse.changes_clause import without_changes_clauses
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import SparkParsedStatement
from puredelta.statements.parse.table_name import ComputedName


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementText:
    """The text of a statement that Spark's parser knows."""

    spark: SparkSession
    text: str
    views: TemporaryViews
    """Names in the text for rows that Spark does not find by a name."""

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        statement: SparkParsedStatement,
        text: str,
        views: TemporaryViews,
    ) -> StatementText:
        """Return a text whose query names no table by a path, and whose targets are plain names."""
        targets = []
        for target in statement.targets:
            name = text[target.start : target.end]
            if isinstance(target.name, ComputedName):
                name = quote_name(resolve_name(spark, target.name).parts)
            targets.append((target.start, target.end, name))
        named = with_views(spark, text, views, targets=targets)
        return cls(spark=spark, text=named, views=views)

    def replaced(self, text: str) -> StatementText:
        """Return another text of the same statement."""
        return replace(self, text=text)

    def read(self) -> StatedTable | InsertInto | SeveralInserts | None:
        """Return what the text says; None if it is another statement.

        Raises:
            pyspark.errors.ParseException: Spark's parser refuses the text.
        """
        if not is_connect(self.spark):
            return parse_plan(self.spark, self.text)
        require_parsable(self.spark, without_changes_clauses(self.text))
        statement = parse(self.text)
        if not isinstance(statement, SparkParsedStatement):
            return None
        return read_stated(self.text, statement, _OfServer(self.spark))

    def rows(self, query: Query) -> DataFrame:
        """Return the rows of the query inside; Spark analyzes it now.

        The query may name Delta tables of the catalog.
        """
        if not isinstance(query, str):
            return query_rows(self.spark, query)
        return named_query(self.spark, query, self.views.fields(query))


@dataclass(frozen=True, slots=True)
class _OfServer:
    """Types and constants as the server reads them."""

    spark: SparkSession

    def types(self, texts: Sequence[str]) -> Sequence[T.DataType]:
        if not texts:
            return ()
        named = (f"{quote(f'c{n}')} {text}" for n, text in enumerate(texts))
        schema = T.DataType.fromDDL(", ".join(named))
        assert isinstance(schema, T.StructType)  # noqa: S101 - names and types are no other type
        return [found.dataType for found in schema.fields]

    def constant(self, text: str) -> str | None:
        [row] = self.spark.sql(f"SELECT string({text}) AS value").collect()
        found: str | None = row["value"]
        return found
