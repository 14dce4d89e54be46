"""Stored views over Delta tables given by path, version or ``table_changes``.

The catalog keeps such a view with the text that the user wrote, as with delta-spark, so that each
reads the other's views. Spark alone cannot resolve it, so a statement that names the view gets its
rows under another name. Classic sessions only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.protocol.schema.sql_lexer import replaced
from puredelta.spark.catalog.catalog_entries import find_relation
from puredelta.spark.catalog.relation_cache import (
    as_seen_from,
    cached_relations,
    find_relations,
    named_relations,
    pinned_tables,
    rows_of_table,
)
from puredelta.spark.jvm.catalog import SESSION_CATALOG, CatalogTable, ViewEntry
from puredelta.spark.jvm.plans import RelationName
from puredelta.spark.jvm.stored_text import RelationPlace, relation_places, view_rows
from puredelta.spark.session.names import quote_name
from puredelta.statements.names.names import names_catalog
from puredelta.statements.names.query_tables import may_need_names, with_views
from puredelta.statements.names.views import Again, RowNames, TemporaryViews
from puredelta.statements.parse.changes_clause import without_changes_clauses
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.relation_text import find_alias_place


def need_names(spark: SparkSession, views: Sequence[ViewEntry]) -> bool:
    """Tell whether Spark cannot resolve one of these views."""
    return any(
        view.database and (may_need_names(view.text) or names_catalog(spark, view.text))
        for view in views
    )


def names_stored_view(spark: SparkSession, text: str) -> bool:
    """Tell whether a statement names a view that Spark cannot resolve, or one over such a view."""
    names = named_relations(spark, without_changes_clauses(text))
    return need_names(spark, find_relations(spark, names).views)


def rows_of_name(
    spark: SparkSession, name: RelationName, by_spark: Callable[[], DataFrame]
) -> DataFrame:
    """Return the rows of a table or view of the catalog, which ``by_spark`` asks Spark for.

    The catalog is asked once for each name.
    """
    found = find_relation(spark, name)
    if isinstance(found, CatalogTable):
        return rows_of_table(spark, found, by_spark)
    relations = find_relations(spark, [name], known={name: found})
    if isinstance(found, ViewEntry) and need_names(spark, relations.views):
        return _rows(spark, found)
    with pinned_tables(spark, relations.tables):
        return by_spark()


def _find_stored_view(spark: SparkSession, name: RelationName) -> ViewEntry | None:
    view = find_relation(spark, name)
    if not isinstance(view, ViewEntry):
        return None
    below = find_relations(spark, [name], known={name: view})
    return view if need_names(spark, below.views) else None


def with_stored_views(
    spark: SparkSession, text: str, names: RowNames, *, targets: Collection[RelationName] = ()
) -> str:
    """Return a statement with new names for the views that Spark cannot resolve.

    The name of a common table expression is not that of a view, and ``targets`` of the statement
    stay unchanged. Text that Spark refuses stays.
    """
    if not names_stored_view(spark, text):
        return text
    try:
        found = relation_places(spark, without_changes_clauses(text))
    except ParseException:
        return text
    places = [place for place in found if place.name not in targets]
    return replaced(text, _replacements(spark, text, places, names))


def _replacements(
    spark: SparkSession, text: str, places: Sequence[RelationPlace], names: RowNames
) -> Iterator[tuple[int, int, str]]:
    for place in places:
        view = _find_stored_view(spark, place.name)
        if view is None:
            continue
        named = (SESSION_CATALOG, view.database, view.name)
        again = Again(quote_name(named), partial(_newest_rows, named))
        yield from _renamed(text, place, names.add(_rows(spark, view), again))


def _newest_rows(name: RelationName, spark: SparkSession) -> DataFrame:
    """Return the present rows of a view, whose definition may have changed."""
    view = _find_stored_view(spark, name)
    return spark.table(quote_name(name)) if view is None else _rows(spark, view)


def _qualified(spark: SparkSession, view: ViewEntry) -> str:
    """Return the text of a view with whole names, which mean the same in every namespace."""

    def whole_names() -> Iterator[tuple[int, int, str]]:
        for place in relation_places(spark, view.text):
            if len(place.name) == 1:
                other = quote_name(as_seen_from(view.namespace, place.name))
                yield from _renamed(view.text, place, other)

    return replaced(view.text, whole_names())


def _renamed(text: str, place: RelationPlace, other: str) -> Iterator[tuple[int, int, str]]:
    """Yield the new name of a relation, and the alias that keeps its old name."""
    cursor = Cursor(text[place.start :])
    cursor.skip(cursor.name_length())
    yield place.start, place.start + cursor.end, other
    if (alias := find_alias_place(cursor)) is not None:
        at = place.start + alias
        yield at, at, f" AS {quote_name(place.name[-1:])}"


def _rows(spark: SparkSession, view: ViewEntry) -> DataFrame:
    """Return the present rows of a view; Spark resolves the rest of its text."""
    with TemporaryViews() as shown:
        text = with_stored_views(spark, _qualified(spark, view), shown)
        text = with_views(spark, text, shown, namespace=view.namespace)
        with cached_relations(spark, named_relations(spark, text)):
            return view_rows(spark, view.database, view.name, text, shown.names)
