"""Queries of a Connect client that name tables of the session catalog, and views over them.

The server knows the entry of a Delta table and not its rows. So the rows go along with the text,
under a name that only this plan has; an alias keeps the name that the user wrote. A view is
replaced by its query in the same way, so it shows the present rows. Names that mean anything else
stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read_table import read_table
from puredelta.errors import InvalidRequestError
from puredelta.protocol.schema.sql_lexer import (
    Token,
    is_identifier,
    keywords,
    replaced,
    tokenize,
    unquoted,
)
from puredelta.spark.catalog.catalog_entries import EntryName, is_taken
from puredelta.spark.catalog.known_names import known_relation, look_up, newest_snapshot
from puredelta.spark.connect.messages import named_rows
from puredelta.spark.connect.plan_hook import is_query
from puredelta.spark.jvm.catalog import SESSION_CATALOG, CatalogTable, ViewEntry
from puredelta.spark.scan.row_tracking_scan import readable_rows
from puredelta.spark.session.catalogs import find_identifier
from puredelta.spark.session.names import PREFIX, quote, quote_name
from puredelta.statements.names.kept_names import (
    KeptNames,
    SqlFunction,
    find_sql_function,
    is_built_in,
)
from puredelta.statements.names.names import rows_in_catalog
from puredelta.statements.names.parameters import with_values
from puredelta.statements.names.views import References, RowNames, TemplateFields
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.relation_text import (
    find_alias_place,
    join_columns,
    read_relations,
    table_expression_names,
)
from puredelta.statements.parse.table_name import TableName, sees_time_travel

_PARTS_MAX = 3
_VIEWS_MAX = 30
"""Views above each other; Spark itself stops at a hundred."""
_OPEN = re.compile(r"\|>|\bidentifier\b", re.IGNORECASE)
"""What may name relations that are not read here."""
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
    reading = _Names(spark, names)
    named = replaced(filled, reading.parts(filled))
    if not (names.rows or names.kept):
        return None
    return names.query(spark, named, args, is_closed=reading.is_closed)


def catalog_command(
    spark: SparkSession, text: str, *, fields: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]] | None:
    """Return a command with a query that names Delta tables of the catalog: EXPLAIN, CACHE TABLE
    AS, and tables of other formats that are made of a query or filled by one.

    The answer is a template and its fields, as ``spark.sql`` takes them; None for every other text.
    Connect sessions only.
    """
    start = _query_start(text)
    if start is None:
        return None
    frames, is_script = TemplateFields(), Cursor(text).sees("BEGIN")
    try:
        filled = with_values(spark, text, args=None, fields=fields, names=frames)
    except InvalidRequestError:
        return None  # a field that Spark fills otherwise
    num_given = len(frames.rows)
    start = _query_start(filled) or 0
    query = filled[start:]
    named = replaced(query, _Names(spark, frames, is_script=is_script).parts(query))
    if len(frames.rows) == num_given and not frames.kept:
        return None
    return frames.template(filled[:start] + named), frames.rows


def _query_start(text: str) -> int | None:
    """Return where the query inside a command begins; None for a text without one.

    >>> _query_start("EXPLAIN FORMATTED SELECT 1"), _query_start("CREATE TABLE t AS TABLE u")
    (18, 18)
    """
    cursor = Cursor(text)
    if cursor.accept("EXPLAIN"):
        while cursor.word in _EXPLAIN:
            cursor.skip()
        inner = text[cursor.start :]
        if is_query(inner):
            return cursor.start
        start = _query_start(inner)
        return None if start is None else cursor.start + start
    if cursor.sees("BEGIN") or (cursor.sees("WITH") and not is_query(text)):
        return 0  # a script, or common table expressions before an INSERT
    if cursor.sees("CREATE", "TABLE") or cursor.sees("CACHE"):
        cursor.skip_to("AS", "SELECT", "WITH")
        cursor.accept("AS")
    elif cursor.sees("INSERT"):
        cursor.skip_to("INTO", "OVERWRITE")
        cursor.skip()
        cursor.accept("TABLE")
        cursor.accept_name()
        _skip_to_query(cursor)
    elif any(cursor.accept(*words) for words in _ASSIGNMENTS):
        cursor.skip_to("=", "DEFAULT")
        cursor.skip()
    elif not (cursor.sees("FROM") and not is_query(text)):
        return None
    return None if cursor.is_done else cursor.start


def _skip_to_query(cursor: Cursor) -> None:
    while not (cursor.is_done or any(cursor.sees(word) for word in _BEGIN_QUERIES)):
        if not cursor.sees("("):
            cursor.skip()
        elif any(cursor.sees("(", word) for word in _BEGIN_QUERIES):
            return
        else:
            cursor.group()


_BEGIN_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")
_EXPLAIN = keywords("EXTENDED FORMATTED COST CODEGEN LOGICAL")
_ASSIGNMENTS = (("SET", "VAR"), ("SET", "VARIABLE"), ("DECLARE",))


def with_kept_names(spark: SparkSession, expression: str, names: KeptNames) -> str:
    """Return an expression with names for the Delta tables and functions in it."""
    return replaced(expression, _Names(spark, names).parts(expression))


def bound_function(spark: SparkSession, name: Sequence[str], names: KeptNames) -> str | None:
    """Return a function that reads the rows of its Delta tables; None if it has none."""
    return _Names(spark, names).function(tuple(name))


def _as_made(rows: DataFrame, queried: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return the rows of a view's query with the columns that it had when the view was made.

    ``queried`` are their names in the query, ``columns`` in the view. The entry of a table may have
    had other columns than the table: then the view has all of the table.
    """
    present = rows.columns
    if len(present) != len(columns):
        if not set(queried) & set(present):
            return rows
        rows = rows.select(*map(quote, queried))
    return rows if list(columns) == rows.columns else rows.toDF(*columns)


def with_tables(spark: SparkSession, query: str, names: RowNames) -> str:
    """Return a query with new names for the Delta tables of the catalog."""
    return replaced(query, _Names(spark, names).parts(query))


def named_query(spark: SparkSession, text: str, rows: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of a query that may name Delta tables of the catalog, and ``rows``."""
    names = References(rows)
    return names.query(spark, replaced(text, _Names(spark, names).parts(text)))


def catalog_rows(spark: SparkSession, parts: Sequence[str]) -> DataFrame | None:
    """Return the rows of a Delta table of the catalog, or of a view over one; None for others."""
    return _Names(spark, References()).rows(parts)


def whole_name(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the name that qualifies the columns of a table or view; ``parts`` name it."""
    match known_relation(spark, tuple(parts)):
        case CatalogTable() as table:
            return (table.catalog, table.database, table.name)
        case ViewEntry(database=str(database), name=name) if database:
            return (SESSION_CATALOG, database, name)
        case _:
            return tuple(parts)


def name_in_view(
    spark: SparkSession, namespace: Sequence[str], name: tuple[str, ...]
) -> tuple[str, ...]:
    """Return what a name of one part means in the text of a temporary view of a namespace."""
    found, whole = known_relation(spark, name), (*namespace, *name)
    if isinstance(found, ViewEntry) and not found.database:
        return name
    if known_relation(spark, whole) is not None:
        return whole
    is_entry = is_taken(spark, EntryName(database=namespace[-1], name=name[0]))
    return whole if is_entry else name  # a temporary view of a frame


_Part: TypeAlias = tuple[int, int, str]
"""Start, end and new text of a part of a text."""
_Column: TypeAlias = tuple[int, int, tuple[str, ...]]
"""Start and end of a name that is no relation's, and its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relation:
    """A name of a text that gets another one."""

    start: int
    end: int
    name: tuple[str, ...]
    other: str
    alias_at: int | None
    """Where the alias belongs that keeps the name; None if there is another alias."""


def _aliases(relations: Sequence[_Relation], columns: Sequence[_Column]) -> list[str]:
    """Return the alias of each relation: the last part of its name.

    Tables of the same name in several databases get different aliases, if the text names their
    columns with the database alone.
    """
    names: dict[str, set[tuple[str, ...]]] = {}
    for relation in relations:
        whole = tuple(part.lower() for part in relation.name)
        names.setdefault(whole[-1], set()).add(whole)
    short = {name[0].lower() for _, _, name in columns if len(name) > 1}
    shared = {last for last, whole in names.items() if len(whole) > 1 and last not in short}
    return [
        "_".join(relation.name) if relation.name[-1].lower() in shared else relation.name[-1]
        for relation in relations
    ]


def with_whole_names(spark: SparkSession, query: str) -> str:
    """Return a query in which names in a catalog of this library have all their parts."""
    return replaced(query, _WholeNames(spark, References()).parts(query))


@dataclass(slots=True)
class _Names:
    """Replacement of the names in one text."""

    spark: SparkSession
    names: RowNames
    namespace: Sequence[str] = ()
    """Of names of one part, if it is not the session's."""
    depth: int = 0
    sees_temporary: bool = False
    """Whether names of one part may be those of temporary views, although there is a namespace."""
    is_script: bool = False
    """Whether a text has several statements, whose words are no names."""
    known: dict[tuple[str, ...], DataFrame | None] = field(default_factory=dict)
    functions: dict[tuple[str, ...], str | None] = field(default_factory=dict)
    """New names of functions; None for one that keeps its name."""
    is_closed: bool = True
    """Whether all that was read names Delta tables and Spark's own functions alone."""

    def parts(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the parts of a text to replace: start, end and new text."""
        relations, columns, calls = self._read(text)
        qualifiers: dict[tuple[str, ...], str] = {}
        found = calls
        for relation, alias in zip(relations, _aliases(relations, columns), strict=True):
            found.append((relation.start, relation.end, relation.other))
            for known in self._spellings(relation.name):
                qualifiers[known] = alias
            if relation.alias_at is not None:
                found.append((relation.alias_at, relation.alias_at, f" AS {quote_name((alias,))}"))
        for start, end, name in columns:
            for length in range(1, min(_PARTS_MAX, len(name) - 1) + 1):
                last = qualifiers.get(tuple(part.lower() for part in name[:length]))
                if last is not None and name[:length] != (last,):
                    found.append((start, end, quote_name((last, *name[length:]))))
                    break
        yield from sorted(found)

    def _read(self, text: str) -> tuple[list[_Relation], list[_Column], list[_Part]]:
        """Return the Delta tables and views over them that a text names, its other names, and
        the parts to replace where it calls functions.
        """
        tokens = tokenize(text)
        places = read_relations(tokens).starts - join_columns(tokens)
        if self.is_script:
            places = frozenset(at for at in places if _follows_keyword(tokens, at))
        inner = table_expression_names(tokens)
        self._look_up(text, places - inner)
        self.is_closed &= _OPEN.search(text) is None
        cursor = Cursor(text)
        relations: list[_Relation] = []
        columns: list[_Column] = []
        calls: list[_Part] = []
        while not cursor.is_done:
            position, start = cursor.position, cursor.start
            name = self._name(cursor)
            if name is None:
                cursor.skip()
                continue
            cursor.skip(2 * len(name) - 1)
            if cursor.sees("("):
                if _follows_relation(tokens, position):
                    continue  # the columns of an alias, or of a common table expression
                self.is_closed &= len(name) == 1 and is_built_in(self.spark, name[0])
                calls += self._call(cursor, start, name, is_relation=position in places)
            elif position not in places:
                columns.append((start, cursor.end, name))
            elif not (len(name) == 1 and position in inner):
                other = self._other(name) if self._is_table(cursor, name) else None
                if other is None:
                    self.is_closed &= len(name) == 1 and name[0].upper() in _WORDS
                    continue
                takes_alias = not (position and tokens[position - 1].means("TABLE"))
                relations.append(
                    _Relation(
                        start=start,
                        end=cursor.end,
                        name=name,
                        other=other,
                        alias_at=find_alias_place(cursor) if takes_alias else None,
                    )
                )
        return relations, columns, calls

    def _look_up(self, text: str, places: Iterable[int]) -> None:
        """Let the server be asked for the names at some places with one request."""
        cursor, names = Cursor(text), list[tuple[str, ...]]()
        for position in places:
            cursor.position = position
            name = self._name(cursor)
            cursor.skip(0 if name is None else 2 * len(name) - 1)
            if name is not None and self._is_table(cursor, name):
                names.append(self._whole(name))
        if len(names) > 1 and not self.sees_temporary:
            look_up(
                self.spark, [name for name in names if find_identifier(self.spark, name) is None]
            )

    def _call(
        self, cursor: Cursor, start: int, name: tuple[str, ...], *, is_relation: bool
    ) -> Iterator[_Part]:
        """Yield the parts to replace where a function is called that reads Delta tables.

        The cursor is at the bracket, and stays.
        """
        other = self.function(name)
        if other is None:
            return
        yield start, cursor.end, other
        if is_relation:
            position = cursor.position
            cursor.group()
            place = find_alias_place(cursor)
            cursor.position = position
            if place is not None:
                yield place, place, f" AS {quote_name(name[-1:])}"

    def function(self, name: tuple[str, ...]) -> str | None:
        """Return another name for a function that reads Delta tables; None for others."""
        if name not in self.functions:
            is_callable = len(name) <= _PARTS_MAX and self.depth < _VIEWS_MAX
            found = find_sql_function(self.spark, name, self.namespace) if is_callable else None
            self.functions[name] = None if found is None else self._readable(found)
        return self.functions[name]

    def _readable(self, function: SqlFunction) -> str | None:
        """Return a function that reads the rows of its Delta tables; None if it has none.

        Spark resolves the names in a body where the function is called.
        """
        kept = KeptNames(self.spark)
        inner = replace(self, names=kept, depth=self.depth + 1, is_script=False, functions={})
        body = replaced(function.body, inner.parts(function.body))
        if kept.is_empty:
            return None
        self.names.kept.append(kept)
        return kept.add_function(function, body)

    def rows(self, parts: Sequence[str]) -> DataFrame | None:
        """Return the rows that a name means, the same ones each time."""
        name = tuple(parts)
        if name not in self.known:
            self.known[name] = self._rows(name)
        return self.known[name]

    def _rows(self, name: tuple[str, ...]) -> DataFrame | None:
        if name[-1].startswith(PREFIX):
            return None
        if find_identifier(self.spark, name) is not None:
            return rows_in_catalog(self.spark, TableName(name), partial(read_table, self.spark))
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
        names = References()
        inner = _Names(
            self.spark, names, view.namespace, self.depth + 1, sees_temporary=not view.database
        )
        text = replaced(view.text, inner.parts(view.text))
        if not (names.rows or names.kept):
            return None
        rows = names.query(self.spark, text)
        try:
            columns = named_rows(self.spark, quote_name(name)).columns
        except AnalysisException:
            return rows  # the server knows no table of the view
        return _as_made(rows, view.queried, columns)

    def _spellings(self, name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield the names, in lower case, that may stand before the columns of a relation."""
        yield tuple(part.lower() for part in name)
        if (found := find_identifier(self.spark, name)) is not None:
            yield (found.schema.lower(), found.table.lower())
            yield tuple(part.lower() for part in found.parts)
            return
        match known_relation(self.spark, self._whole(name)):
            case CatalogTable() as table:
                yield (table.database.lower(), table.name.lower())
                yield (table.catalog.lower(), table.database.lower(), table.name.lower())
            case _:
                return

    def _whole(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """Return a name with the namespace of the text that has it."""
        if len(name) > 1 or not self.namespace:
            return name
        if self.sees_temporary:
            return name_in_view(self.spark, self.namespace, name)
        return (*self.namespace, *name)

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
        whole = self._whole(name)
        rows = self.rows(whole)
        if rows is not None:
            return self.names.add(rows)
        return None if whole == name else quote_name(whole)


class _WholeNames(_Names):
    """Replacement of the names in a catalog of this library by their whole names."""

    def _other(self, name: tuple[str, ...]) -> str | None:
        found = find_identifier(self.spark, name)
        return None if found is None else quote_name(found.parts)


def _follows_relation(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a name before a bracket cannot be a function: after AS, WITH or a bracket."""
    return at > 0 and any(map(tokens[at - 1].means, ("AS", "WITH", "RECURSIVE", ")")))


def _follows_keyword(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a token is after FROM, JOIN, TABLE or a comma, brackets between them aside."""
    at -= 1
    while at >= 0 and tokens[at].means("("):
        at -= 1
    return at >= 0 and any(map(tokens[at].means, ("FROM", "JOIN", "TABLE", ",")))
