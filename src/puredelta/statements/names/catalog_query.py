"""Queries of a Connect client that name tables of the session catalog, and views over them.

The server knows the entry of a Delta table and not its rows. So the rows go along with the text,
under a name that only this plan has; an alias keeps the name that the user wrote. A view is
replaced by its query in the same way, so it shows the present rows. Names that mean anything else
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import InvalidRequestError
from puredelta.protocol.schema.sql_lexer import (
    Token,
    is_identifier,
    keywords,
    replaced,
    tokenize,
    unquoted,
)
from puredelta.spark.catalog.known_names import known_relation, newest_snapshot
from puredelta.spark.connect.messages import named_rows
from puredelta.spark.connect.plan_hook import is_query
from puredelta.spark.jvm.catalog import CatalogTable, ViewEntry
from puredelta.spark.scan.row_tracking_scan import readable_rows
from puredelta.spark.session.names import quote_name
from puredelta.statements.names.parameters import with_values
from puredelta.statements.names.views import References
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.relation_text import (
    find_alias_place,
    read_relations,
    table_expression_names,
)
from puredelta.statements.parse.table_name import TableName, sees_time_travel

_PARTS_MAX = 3
_VIEWS_MAX = 30
"""Views above each other; Spark itself stops at a hundred."""
_WORDS = keywords("SELECT WITH FROM VALUES JOIN TABLE LATERAL")


def catalog_query(
    spark: SparkSession, text: str, *, args: Any, fields: Mapping[str, Any]
) -> DataFrame | None:
    """Return the rows of a query that names Delta tables of the catalog, or has rows as fields.

    None for every other text. Connect sessions only.
    """
    if not is_query(text):
        return None
    names = References()
    try:
        filled = with_values(spark, text, args=None, fields=fields, names=names)
    except InvalidRequestError:
        return None  # a field that Spark fills otherwise
    named = replaced(filled, _Names(spark, names).parts(filled))
    return names.query(spark, named, args) if names.rows else None


def catalog_rows(spark: SparkSession, parts: Sequence[str]) -> DataFrame | None:
    """Return the rows of a Delta table of the catalog, or of a view over one; None for others."""
    return _Names(spark, References()).rows(parts)


@dataclass(slots=True)
class _Names:
    """Replacement of the names in one text."""

    spark: SparkSession
    names: References
    namespace: Sequence[str] = ()
    """Of names of one part, if it is not the session's."""
    depth: int = 0
    known: dict[tuple[str, ...], DataFrame | None] = field(default_factory=dict)

    def parts(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the parts of a text to replace: start, end and new text."""
        tokens = tokenize(text)
        places = read_relations(tokens).starts - _columns_of_joins(tokens)
        inner = table_expression_names(tokens)
        cursor = Cursor(text)
        qualifiers: dict[tuple[str, ...], str] = {}
        found: list[tuple[int, int, str]] = []
        columns: list[tuple[int, int, tuple[str, ...]]] = []
        while not cursor.is_done:
            position, start = cursor.position, cursor.start
            name = self._name(cursor)
            if name is None:
                cursor.skip()
                continue
            cursor.skip(2 * len(name) - 1)
            if position not in places:
                columns.append((start, cursor.end, name))
            elif not (len(name) == 1 and position in inner) and self._is_table(cursor, name):
                other = self._other(name)
                if other is not None:
                    qualifiers[tuple(part.lower() for part in name)] = name[-1]
                    found.append((start, cursor.end, other))
                    if position and tokens[position - 1].means("TABLE"):
                        continue  # takes no alias
                    if (place := find_alias_place(cursor)) is not None:
                        found.append((place, place, f" AS {quote_name(name[-1:])}"))
        for start, end, name in columns:
            for length in (2, 3):
                last = qualifiers.get(tuple(part.lower() for part in name[:length]))
                if last is not None and len(name) > length:
                    found.append((start, end, quote_name((last, *name[length:]))))
                    break
        yield from sorted(found)

    def rows(self, parts: Sequence[str]) -> DataFrame | None:
        """Return the rows that a name means, the same ones each time."""
        name = tuple(parts)
        if name not in self.known:
            self.known[name] = self._rows(name)
        return self.known[name]

    def _rows(self, name: tuple[str, ...]) -> DataFrame | None:
        match known_relation(self.spark, name):
            case CatalogTable():
                snapshot = newest_snapshot(self.spark, name)
                if snapshot is None:
                    return None
                return readable_rows(self.spark, snapshot, time_travel=False)
            case ViewEntry() as view if self.depth < _VIEWS_MAX:
                return self._view_rows(view, name)
            case _:
                return None

    def _view_rows(self, view: ViewEntry, name: tuple[str, ...]) -> DataFrame | None:
        inner = _Names(self.spark, References(), view.namespace, self.depth + 1)
        text = replaced(view.text, inner.parts(view.text))
        if not inner.names.rows:
            return None
        rows = inner.names.query(self.spark, text)
        try:
            columns = named_rows(self.spark, quote_name(name)).columns
        except AnalysisException:
            return rows  # the server knows no table of the view
        return rows if columns == rows.columns else rows.toDF(*columns)

    def _name(self, cursor: Cursor) -> tuple[str, ...] | None:
        """Return the whole name that comes next; None within a longer one, or before a bracket."""
        before = cursor.peek(-1) if cursor.position else None
        token = cursor.peek()
        if token is None or not is_identifier(token) or (before and before.means(".")):
            return None
        length = cursor.name_length()
        tokens = [cursor.peek(n) for n in range(0, length, 2)]
        parts = [unquoted(one) for one in tokens if one is not None and is_identifier(one)]
        return tuple(parts) if len(parts) == len(tokens) else None

    def _is_table(self, cursor: Cursor, name: tuple[str, ...]) -> bool:
        if len(name) > _PARTS_MAX or cursor.sees("(") or sees_time_travel(cursor):
            return False
        is_word = len(name) == 1 and name[0].upper() in _WORDS
        return not is_word and TableName(name).path is None

    def _other(self, name: tuple[str, ...]) -> str | None:
        """Return the new text of a name."""
        whole = (*self.namespace, *name) if len(name) == 1 else name
        rows = self.rows(whole)
        if rows is not None:
            return self.names.add(rows)
        return None if whole == name else quote_name(whole)


def _columns_of_joins(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the positions of the columns in ``JOIN u USING (a, b)``."""
    found: set[int] = set()
    for at in range(2, len(tokens)):
        if tokens[at - 1].means("(") and tokens[at - 2].means("USING"):
            end = next((n for n in range(at, len(tokens)) if tokens[n].means(")")), len(tokens))
            if tokens[at].text.upper() not in _WORDS:
                found.update(range(at, end))
    return frozenset(found)
