"""Texts of statements, as the two kinds of sessions read them.

A classic session has Spark's parser and catalog in reach, and Spark finds tables of the catalog
itself. A Connect client reads the text, and sends along the rows of the tables that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import Message, UnsupportedError
from puredelta.spark.catalog.relation_cache import find_relations, query_rows
from puredelta.spark.catalog.table_views import ViewOrigin, find_view_origin
from puredelta.spark.jvm.statement_plans import (
    InsertInto,
    Query,
    SeveralInserts,
    StatedTable,
    parse_plan,
)
from puredelta.spark.jvm.stored_text import Script
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.session import is_connect
from puredelta.statements.execute.connect_views import create_fixed_view, find_text_view
from puredelta.statements.execute.stated import read_by_client
from puredelta.statements.execute.views import create_in_session
from puredelta.statements.names.catalog_query import named_query, with_tables
from puredelta.statements.names.named_columns import run_metadata_query
from puredelta.statements.names.names import find_location, resolve_name
from puredelta.statements.names.query_tables import may_name_path, with_views
from puredelta.statements.names.views import RowNames, TemplateFields, TemporaryViews
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.statement import SparkParsedStatement, ViewStatement
from puredelta.statements.parse.table_name import ComputedName, TableName

IsText: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SessionTexts:
    """The texts of one session: of a classic one, where no other class overrides."""

    spark: SparkSession

    def read(self, text: str) -> StatedTable | InsertInto | SeveralInserts | None:
        """Return what a text that Spark's parser knows says; None if it is another statement.

        Raises:
            pyspark.errors.ParseException: Spark's parser refuses the text.
        """
        return parse_plan(self.spark, text)

    def rows(self, query: str, names: TemporaryViews | TemplateFields) -> DataFrame:
        """Return the rows of a query that may name Delta tables of the catalog, and rows."""
        return names.query(self.spark, query)

    def with_tables(self, query: str, _: RowNames) -> str:
        """Return a query with new names for the tables of the catalog that Spark cannot read."""
        return query

    def metadata_query(self, text: str) -> DataFrame | None:
        """Return the rows of a query of ``_metadata``; None for one that Spark can execute."""
        return run_metadata_query(self.spark, text)

    def create_view(self, statement: ViewStatement, text: str) -> DataFrame | None:
        """Execute the definition of a view; None if Spark can execute it."""
        return create_in_session(self.spark, statement, text=text)

    def find_view(self, name: TableName) -> ViewOrigin | None:
        """Return the table whose rows a temporary view shows; None for everything else."""
        return find_view_origin(self.spark, name.parts)

    def find_script(self, text: str, is_ours: IsText, makes_delta: IsText) -> Script | None:  # noqa: ARG002
        """Return a script of which ``is_ours`` takes a statement; None if Spark can execute it.

        ``makes_delta`` tells whether a definition makes a Delta table.

        Raises:
            UnsupportedError: neither can.
        """
        try:
            script = Script(self.spark, text)
        except ParseException:
            return None  # Spark raises the error itself
        if not script.is_script:
            return None
        names_tables = bool(find_relations(self.spark, script.relation_names()).tables)
        return script if names_tables or script.has(is_ours) else None


@dataclass(frozen=True, slots=True)
class _ClientTexts(SessionTexts):
    """The texts of a Connect client."""

    def read(self, text: str) -> StatedTable | InsertInto | SeveralInserts | None:
        return read_by_client(self.spark, text)

    def rows(self, query: str, names: TemporaryViews | TemplateFields) -> DataFrame:
        """Send the rows along.

        A view would belong to the server, and a client could not set the time of its clock.
        """
        return named_query(self.spark, query, names.fields(query))

    def with_tables(self, query: str, names: RowNames) -> str:
        return with_tables(self.spark, query, names)

    def metadata_query(self, text: str) -> DataFrame | None:  # noqa: ARG002
        return None  # the rows that are sent along have the column

    def create_view(self, statement: ViewStatement, text: str) -> DataFrame | None:
        return create_fixed_view(self.spark, statement, text=text)

    def find_view(self, name: TableName) -> ViewOrigin | None:
        return find_text_view(self.spark, name.parts) if len(name.parts) == 1 else None

    def find_script(self, text: str, is_ours: IsText, makes_delta: IsText) -> Script | None:  # noqa: ARG002
        """Refuse a script that the server cannot run: queries of catalog tables are all it can."""
        written = (TableName(name) for name in _written_names(text))
        if (
            may_name_path(text)
            or any(find_location(self.spark, name) is not None for name in written)
            or any(makes_delta(statement) for statement in _definitions(text))
        ):
            raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_SCRIPT)
        return None


def texts_of(spark: SparkSession) -> SessionTexts:
    """Return the texts of a session."""
    return _ClientTexts(spark) if is_connect(spark) else SessionTexts(spark)


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
        return texts_of(self.spark).read(self.text)

    def rows(self, query: Query) -> DataFrame:
        """Return the rows of the query inside; Spark analyzes it now.

        The query may name Delta tables of the catalog.
        """
        if not isinstance(query, str):
            return query_rows(self.spark, query)
        return named_query(self.spark, query, self.views.fields(query))


def _definitions(text: str) -> Iterator[str]:
    """Yield the statements of a script that make tables.

    >>> list(_definitions("BEGIN CREATE TABLE t (a INT) USING delta; SELECT 1; END"))
    ['CREATE TABLE t (a INT) USING delta']
    """
    cursor = Cursor(text)
    while not cursor.is_done:
        start = cursor.start
        if not any(cursor.sees(*words) for words in _DEFINES):
            cursor.skip()
            continue
        cursor.skip_to(";")
        after = cursor.peek()
        yield text[start : None if after is None else after.start].rstrip()


_DEFINES = (("CREATE", "TABLE"), ("REPLACE", "TABLE"), ("CREATE", "OR", "REPLACE", "TABLE"))


_WRITES = (
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("EVOLUTION", "INTO"),
    ("EVOLUTION", "OVERWRITE"),
    ("DELETE", "FROM"),
    ("MERGE", "INTO"),
    ("TRUNCATE",),
    ("ALTER",),
    ("UPDATE",),
)


def _written_names(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the names that are tables to change, if the text has statements that change tables.

    >>> list(_written_names("BEGIN INSERT INTO TABLE a.b SELECT 1; UPDATE c SET d = 1; END"))
    [('a', 'b'), ('c',)]
    """
    cursor = Cursor(text)
    while not cursor.is_done:
        if any(cursor.accept(*words) for words in _WRITES):
            cursor.accept("TABLE")
            name = cursor.accept_name()
            if name:
                yield name
        else:
            cursor.skip()
