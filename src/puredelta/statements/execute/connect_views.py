"""Temporary views of a Connect session: definitions that the server cannot analyze, and targets.

The server keeps the text of a view, and knows neither paths and versions of Delta tables, nor
catalogs of this library. A view of versions alone never changes, so the server gets its rows. A
view of tables of such a catalog keeps its query in a text that the server can analyze
(`kept_view_query`), and each query of this client takes it from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.schema.sql_lexer import is_identifier, tokenize, unquoted
from puredelta.spark.catalog.catalog_entries import find_relation
from puredelta.spark.catalog.connect_entries import kept_view_query
from puredelta.spark.catalog.table_views import Shown, ViewOrigin
from puredelta.spark.jvm.catalog import ViewEntry
from puredelta.spark.scan.own_reads import read_tables
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.server import run_on_server
from puredelta.spark.session.session import no_rows
from puredelta.statements.names.catalog_query import (
    catalog_rows,
    name_in_view,
    named_query,
    with_whole_names,
)
from puredelta.statements.names.names import may_name_catalog
from puredelta.statements.names.query_tables import may_need_names, with_views
from puredelta.statements.names.views import References
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.relation_text import read_relations, table_expression_names
from puredelta.statements.parse.statement import ViewLifetime, ViewStatement

_VIEWS_MAX = 30


def create_fixed_view(
    spark: SparkSession, statement: ViewStatement, *, text: str
) -> DataFrame | None:
    """Execute the definition of a temporary view of versions, or of tables of a catalog of this
    library; None if the server can execute it.

    Raises:
        UnsupportedError: the view would show the present rows of a path, or is not temporary.
    """
    if not may_need_names(text) and not may_name_catalog(spark, text):
        return None
    names, cursor = References(), Cursor(text)
    if not cursor.accept("CREATE") and not may_need_names(text):
        return None  # CACHE TABLE AS, see `catalog_command`
    replaces = cursor.accept("OR", "REPLACE")
    is_global = cursor.accept("GLOBAL")
    is_temporary = cursor.accept("TEMP") or cursor.accept("TEMPORARY")
    is_plain = is_temporary and cursor.accept("VIEW") and not cursor.sees("IF", "NOT")
    if not is_plain or statement.lifetime is ViewLifetime.PERMANENT:
        if with_views(spark, text, names) != text:
            raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_VIEW)
        return None
    view, columns = cursor.name(), _columns(cursor)
    if len(view) > 1 or not cursor.accept("AS"):
        raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_VIEW)
    stated, start = text[cursor.start :], cursor.start
    query = with_views(spark, stated, names)
    if not names.rows:
        return None
    if not may_need_names(stated) and not is_global:
        stated = with_whole_names(spark, stated)
        columns_shown = named_query(spark, stated, {}).schema
        run_on_server(spark, text[:start] + " " + kept_view_query(view[0], stated, columns_shown))
        return no_rows(spark)
    _require_fixed(query, names)
    rows = names.query(spark, query)
    rows = rows.toDF(*columns) if columns else rows
    _define(rows, quote_name(view), replaces=replaces, is_global=is_global)
    return no_rows(spark)


def _columns(cursor: Cursor) -> Sequence[str]:
    """Read the names of the columns of a view, if there are any."""
    if not cursor.sees("("):
        return ()
    inner = Cursor(cursor.group())
    names = inner.items(lambda at: at.identifier())
    if not inner.is_done:
        raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_VIEW)
    return names


def _require_fixed(query: str, names: References) -> None:
    """Refuse a query that names anything but versions: its rows would not follow their tables."""
    tokens = tokenize(query)
    named = read_relations(tokens).starts - table_expression_names(tokens)
    others = [
        tokens[at]
        for at in named
        if is_identifier(tokens[at])
        and unquoted(tokens[at]) not in names.rows
        and not (at + 1 < len(tokens) and tokens[at + 1].means("("))
        and tokens[at].text.upper() not in _QUERIES
    ]
    read = [table for rows in names.rows.values() for table in read_tables(rows)]
    if others or not all(table.is_time_travel for table in read):
        raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_VIEW)


_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "LATERAL", "MAP", "REDUCE"})


def _define(rows: DataFrame, name: str, *, replaces: bool, is_global: bool) -> None:
    make = {
        (True, True): rows.createOrReplaceGlobalTempView,
        (True, False): rows.createOrReplaceTempView,
        (False, True): rows.createGlobalTempView,
        (False, False): rows.createTempView,
    }
    make[replaces, is_global](name)


def find_text_view(spark: SparkSession, parts: Sequence[str]) -> ViewOrigin | None:
    """Return the table whose rows a temporary view of a text shows; None for everything else."""
    view = find_relation(spark, parts)
    if not isinstance(view, ViewEntry) or view.database:
        return None
    rows = catalog_rows(spark, parts)
    tables = set() if rows is None else set(read_tables(rows))
    shown = _shown_rows(spark, view)
    if rows is None or shown is None or len({table.root_uri for table in tables}) != 1:
        return None
    return ViewOrigin(
        table=min(tables, key=lambda table: not table.is_time_travel),
        columns=tuple(rows.columns),
        shown=shown,
    )


def _shown_rows(spark: SparkSession, view: ViewEntry, depth: int = 0) -> Shown | None:
    """Judge the text of a view; None if it computes columns, or is more than a condition."""
    cursor = Cursor(view.text)
    if not cursor.accept("TABLE"):
        if not cursor.accept("SELECT"):
            return None
        if not cursor.accept("*"):
            _skip_columns(cursor)
        if not cursor.accept("FROM"):
            return None
    name = cursor.accept_name()
    if not name:
        return None
    cursor.alias(unless="WHERE")
    is_filtered = cursor.accept("WHERE")
    while is_filtered and not (cursor.is_done or any(map(cursor.sees, _AFTER_CONDITION))):
        cursor.skip()
    while cursor.accept(";"):
        pass
    if not cursor.is_done or depth > _VIEWS_MAX:
        return None
    if len(name) == 1 and view.namespace:
        temporary = not view.database
        name = name_in_view(spark, view.namespace, name) if temporary else (*view.namespace, *name)
    below = find_relation(spark, name)
    under: Shown | None = Shown.COLUMNS
    if isinstance(below, ViewEntry):
        under = _shown_rows(spark, below, depth + 1)
    return Shown.FILTERED if is_filtered and under is Shown.COLUMNS else under


_AFTER_CONDITION = (
    "GROUP",
    "HAVING",
    "WINDOW",
    "ORDER",
    "SORT",
    "CLUSTER",
    "DISTRIBUTE",
    "LIMIT",
    "OFFSET",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "MINUS",
    "QUALIFY",
    "|",
    ";",
)
"""Words and signs after a condition that make it no mere filter."""


def _skip_columns(cursor: Cursor) -> None:
    """Skip a list of columns, as far as none is computed, renamed or a field of another."""
    while cursor.name_length() == 1:
        cursor.skip()
        if not cursor.accept(","):
            return
