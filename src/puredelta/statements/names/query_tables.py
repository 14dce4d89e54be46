"""Delta tables inside a query: paths, versions, changed rows and subqueries.

Expressions are resolved one by one, without the statement around them. So the common table
expressions of the statement are added to each subquery, and ``delta.`/path` `` there becomes a
view, as in the source of a MERGE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType
from typing_extensions import assert_never

from puredelta.commands.dml.spec import (
    Assignment,
    Assignments,
    Clause,
    Delete,
    DeleteSpec,
    Expression,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    RowSpec,
    Star,
    Update,
    UpdateSpec,
)
from puredelta.commands.read_table import read_named
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.sql_lexer import (
    TokenKind,
    is_identifier,
    keywords,
    mentions,
    replaced,
    tokenize,
    unquoted,
)
from puredelta.spark.connect.messages import session_of_client
from puredelta.spark.resolve.bound_columns import bound_texts
from puredelta.spark.session.catalogs import current_namespace, find_identifier
from puredelta.spark.session.delta_conf import REFUSED_BY_PATHS_WITH_VERSIONS
from puredelta.spark.session.names import FORMAT, parse_name, quote_name
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.storage import open_log
from puredelta.statements.names.catalog_query import (
    bound_function,
    with_kept_names,
    with_tables,
)
from puredelta.statements.names.change_rows import (
    accept_changed_rows,
    accept_changes,
    may_ask_for_changes,
)
from puredelta.statements.names.kept_names import KeptNames
from puredelta.statements.names.names import (
    find_location,
    may_name_catalog,
    rows_in_catalog,
)
from puredelta.statements.names.views import RowNames
from puredelta.statements.parse.changes_clause import sees_changes_clause
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.literals import string_literal
from puredelta.statements.parse.relation_text import (
    RelationText,
    find_alias_place,
    join_columns,
    read_relations,
    table_expression_names,
)
from puredelta.statements.parse.table_name import (
    TableName,
    TimeTravel,
    accept_time_travel_of_query,
    sees_time_travel,
    split_time_travel,
)

_Part: TypeAlias = tuple[int, int, str]
"""Start, end and new text of a part of a text."""
_PATHS = frozenset({TokenKind.QUOTED, TokenKind.DOUBLE_QUOTED})
_CATALOG_PARTS = 3
_PATH_LENGTHS = (3, 5)
"""Tokens of ``delta.`/path` `` without and with the session catalog before it."""
_QUERIES = keywords("SELECT WITH FROM VALUES TABLE INSERT (")
_NOT_TABLES = _QUERIES | keywords("LATERAL JOIN STREAM UNNEST IDENTIFIER MAP REDUCE")
_CURRENT = keywords("CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA")
_DESCRIBED = keywords("QUERY SELECT WITH FROM VALUES TABLE (")
_EXPLAIN = keywords("EXPLAIN EXTENDED FORMATTED COST CODEGEN LOGICAL")


def may_query_tables(text: str) -> bool:
    """Tell from its tokens whether a query may name a table by its path or a version of one, or
    call ``table_changes``; also a query that is inserted or makes a table.

    The definition of a view does not count: it lasts longer than the meaning of the name (see
    `puredelta.statements.execute.views`).
    """
    return may_need_names(text) and is_query(text)


def is_query(text: str) -> bool:
    """Tell whether a text is a query, also explained, inserted, or the rows of a new table."""
    cursor = Cursor(text)
    if cursor.sees("EXPLAIN"):
        while cursor.word in _EXPLAIN:
            cursor.skip()
    elif cursor.word in {"DESCRIBE", "DESC"}:
        cursor.skip()
        return cursor.word in _DESCRIBED - {"TABLE"} and cursor.peek(1) is not None
    return cursor.word in _QUERIES or cursor.sees("CREATE", "TABLE")


def may_name_path(text: str) -> bool:
    """Tell from its tokens whether a text may name a table by its path."""
    may_quote = "`" in text or '"' in text
    tokens = tokenize(text) if may_quote and mentions(text, FORMAT) else ()
    return any(
        dot.means(".") and path.kind in _PATHS and unquoted(name).lower() == FORMAT
        for name, dot, path in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _may_name_version(text: str) -> bool:
    """Tell from its tokens whether a text may name a version: ``AS OF``."""
    return _AS_OF.search(text) is not None and any(
        first.means("AS") and second.means("OF") for first, second in pairwise(tokenize(text))
    )


_AS_OF = re.compile(r"\bas(?:\s+of\b|\s*(?:--|/\*))", re.IGNORECASE)
"""The two words, or a comment that may be between them."""


def may_need_names(text: str) -> bool:
    """Tell from its tokens whether a text may name something that Spark cannot resolve: a table
    by its path, a version of one, or its changes.
    """
    return may_name_path(text) or _may_name_version(text) or may_ask_for_changes(text)


def with_views(
    spark: SparkSession,
    text: str,
    names: RowNames,
    *,
    namespace: Sequence[str] = (),
    columns: frozenset[str] | None = None,
    targets: Sequence[_Part] = (),
) -> str:
    """Return a query with new names for Delta tables given by path, and for versions of tables
    in the catalog.

    ``VERSION AS OF`` and ``TIMESTAMP AS OF`` after the name choose the version. A path is a table
    only where a relation can be, and before a column (``delta.`/path`.id``) the name of one; a
    call of ``table_changes`` on such a table is replaced, too. ``targets`` are parts of the text
    with their own names: start, end, name. ``namespace`` is that of one-part names in
    ``table_changes``, if it is not the session's. ``columns`` are all that a query can need,
    see `puredelta.statements.names.named_columns`. Runs no job.
    """
    names_tables = mentions(text, FORMAT) or _may_name_version(text) or may_ask_for_changes(text)
    if not names_tables and not may_name_catalog(spark, text):
        return replaced(text, targets)
    read = cache(partial(_read, spark, columns))  # the same version is read once, with one name
    renaming = _Renaming(spark=spark, names=names, namespace=namespace, read=read)
    return replaced(text, renaming.parts(text, targets))


@dataclass(slots=True, kw_only=True)
class _Renaming:
    """Replacement of the tables, calls and qualifiers of one text by new names."""

    spark: SparkSession
    names: RowNames
    namespace: Sequence[str]
    read: Callable[[str, TimeTravel | None], DataFrame]
    named: dict[str, str] = field(default_factory=dict)
    """The new names of paths."""
    short: frozenset[int] = frozenset()
    """Positions of relations where a name may lack its catalog."""
    qualifiers: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The aliases of names, which take the place of the whole names before a column."""

    def parts(self, text: str, targets: Sequence[_Part]) -> list[_Part]:
        """Return the parts of the text to replace, each with its new name."""
        cursor = Cursor(text)
        tokens = tokenize(text)
        places = read_relations(tokens)
        self.short = places.in_lists - join_columns(tokens) - table_expression_names(tokens)
        self.short -= {at for at in self.short if tokens[at - 1].means("USING")}  # a format
        stated = {target[0]: target for target in targets}
        found: list[_Part] = []
        while not cursor.is_done:
            position = cursor.position
            if (target := stated.get(cursor.start)) is not None:
                found.append(target)
                while cursor.start < target[1]:
                    cursor.skip()
            elif position in places.starts:
                found += self._relation(cursor)
            else:
                found += self._current(cursor)
            if cursor.position == position:
                cursor.skip()
        if self.named:
            found = sorted([*found, *_qualifiers(text, places, self.named)])
        if any(len(parts) > 1 for parts in self.qualifiers):
            found = sorted([*found, *_name_qualifiers(text, places, self.qualifiers)])
        return found

    def _named(self, cursor: Cursor) -> TableName | None:
        """Return the name of a table if one comes next that Spark cannot resolve itself."""
        name = _travelled_name(cursor)
        if name is not None:
            return name
        name = _whole_name(cursor)
        if name is None or cursor.sees("(", ahead=2 * len(name.parts) - 1):
            return None
        if len(name.parts) < _CATALOG_PARTS and not self._may_be_short(cursor, name):
            return None
        return None if find_identifier(self.spark, name.parts) is None else name

    def _may_be_short(self, cursor: Cursor, name: TableName) -> bool:
        """Return whether a name without a catalog can be that of a table here."""
        token = cursor.peek()
        is_word = token is not None and token.kind is TokenKind.WORD
        is_keyword = len(name.parts) == 1 and is_word and name.parts[0].upper() in _NOT_TABLES
        return cursor.position in self.short and not is_keyword and name.path is None

    def _rows(self, cursor: Cursor, name: TableName) -> DataFrame | None:
        """Read a table and its time travel; None for a name that Spark resolves."""

        def read(location: str) -> DataFrame:
            cursor.skip(2 * len(name.parts) - 1)
            return self._table(cursor, location, name)

        if find_identifier(self.spark, name.parts) is None:
            location = find_location(self.spark, name)
            return None if location is None else read(location)
        start = cursor.position
        rows = rows_in_catalog(self.spark, name, read)
        if cursor.position == start:  # of another format, which has no versions
            cursor.skip(2 * len(name.parts) - 1)
        return rows

    def _require_no_changes(self, cursor: Cursor) -> None:
        """Refuse a stream of the changed rows of a Delta table."""
        name = _whole_name(cursor)
        if name is None or not sees_changes_clause(cursor, 2 * len(name.parts) - 1):
            return
        if find_location(self.spark, name) is not None:
            raise InvalidRequestError(Message.UNSUPPORTED_CHANGES, name=name)

    def _table(self, cursor: Cursor, location: str, name: object) -> DataFrame:
        """Return the rows, or the changed rows, of the table whose name was just parsed."""
        changed = accept_changed_rows(self.spark, cursor, location, name)
        if changed is not None:
            return changed
        return self.read(location, accept_time_travel_of_query(cursor))

    def _current(self, cursor: Cursor) -> Iterator[_Part]:
        """Replace ``current_catalog()`` and its like, which Spark would answer for itself."""
        current = current_namespace(self.spark)
        if current is None or cursor.word not in _CURRENT or not cursor.sees("(", ")", ahead=1):
            return
        part = current.catalog if cursor.word == "CURRENT_CATALOG" else current.schema
        start = cursor.start
        cursor.skip(3)
        yield start, cursor.end, string_literal(part)

    def _relation(self, cursor: Cursor) -> Iterator[_Part]:
        """Parse a relation if it is a Delta table or a call."""
        start, alias = cursor.start, None
        before = cursor.peek(-1) if cursor.position else None
        if before is not None and before.means("STREAM"):
            self._require_no_changes(cursor)
        is_whole_table = before is not None and before.means("TABLE")
        path = _accept_path(cursor)
        if path is not None:
            rows: DataFrame | None = self._table(cursor, path, f"`{path}`")
        elif (name := self._named(cursor)) is not None and (rows := self._rows(cursor, name)):
            alias = quote_name(name.parts[-1:])
            self.qualifiers[name.parts] = alias
        else:
            rows = accept_changes(self.spark, cursor, self.namespace)
        if rows is None:
            return
        other = self.names.add(rows)
        if path is not None:
            self.named.setdefault(path, other)
        yield start, cursor.end, other
        takes_alias = alias is not None and not is_whole_table
        if takes_alias and (place := find_alias_place(cursor)) is not None:
            yield place, place, f" AS {alias}"


def _qualifiers(text: str, places: RelationText, named: Mapping[str, str]) -> Iterator[_Part]:
    """Yield the paths that qualify columns of a relation: ``delta.`/path`.id``."""
    cursor = Cursor(text)
    while not cursor.is_done:
        position, start = cursor.position, cursor.start
        before = cursor.peek(-1) if position else None
        path = None
        if position not in places.starts and (before is None or not before.means(".")):
            path = _accept_path(cursor)
        if path is None:
            cursor.skip()
        elif path in named and (cursor.sees(".") or position in places.in_hints):
            yield start, cursor.end, named[path]


def _name_qualifiers(
    text: str, places: RelationText, aliases: Mapping[tuple[str, ...], str]
) -> Iterator[_Part]:
    """Yield whole names that qualify columns of a relation: ``cat.db.t.id``, ``db.t.id``."""
    cursor = Cursor(text)
    while not cursor.is_done:
        position, start = cursor.position, cursor.start
        name = None if position in places.starts else _whole_name(cursor)
        whole = () if name is None else name.parts
        parts = next((whole[:n] for n in (3, 2) if len(whole) > n and whole[:n] in aliases), None)
        if parts is None:
            cursor.skip(1 if name is None else 2 * len(whole) - 1)
            continue
        cursor.skip(2 * len(parts) - 1)
        yield start, cursor.end, aliases[parts]
        cursor.skip(2 * (len(whole) - len(parts)))


def _read(
    spark: SparkSession, columns: frozenset[str] | None, path: str, travel: TimeTravel | None
) -> DataFrame:
    if travel is None:
        root, in_path = split_time_travel(path)
        # A table whose directory has such a name keeps it.
        if in_path is None or open_log(spark, path).exists():
            return read_named(spark, path, columns)
        REFUSED_BY_PATHS_WITH_VERSIONS.require_defaults(settings_of(spark))
        return read_named(
            spark, root, columns, version=in_path.version, timestamp=in_path.timestamp
        )
    time = travel.timestamp
    if time is not None:
        given = spark.sql(f"SELECT ({time}) AS time")
        if not isinstance(given.schema["time"].dataType, StringType):
            given = given.selectExpr("string(timestamp(time)) AS time")
        [row] = given.collect()
        time = str(row["time"])
    return read_named(spark, path, columns, version=travel.version, timestamp=time)


def _accept_path(cursor: Cursor) -> str | None:
    """Parse ``delta.`/path` ``, with or without the session catalog, and return the path."""
    for length in _PATH_LENGTHS:
        tokens = [cursor.peek(ahead) for ahead in range(length)]
        parts = [token for token in tokens[::2] if token is not None and is_identifier(token)]
        dots = [token for token in tokens[1::2] if token is not None and token.means(".")]
        if len(parts) + len(dots) < length:
            return None
        path = TableName(tuple(map(unquoted, parts))).path
        if path is not None:
            cursor.skip(length)
            return path
    return None


def _travelled_name(cursor: Cursor) -> TableName | None:
    """Return the whole name of a table if it comes next, with time travel or CHANGES after it.

    Without them Spark itself resolves the names of the catalog.
    """
    name = _whole_name(cursor)
    if name is None:
        return None
    length = 2 * len(name.parts) - 1
    return name if sees_time_travel(cursor, length) or sees_changes_clause(cursor, length) else None


def _whole_name(cursor: Cursor) -> TableName | None:
    """Return the whole name that comes next, if one does."""
    before = cursor.peek(-1) if cursor.position else None
    if before is not None and before.means("."):
        return None
    length = cursor.name_length()
    tokens = [cursor.peek(n) for n in range(0, length, 2)]
    names = [token for token in tokens if token is not None and is_identifier(token)]
    if not names or len(names) < len(tokens):
        return None
    return TableName(tuple(map(unquoted, names)))


_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


class Subqueries:
    """Rewriting of the subqueries of one statement; runs no job.

    ``ctes`` are the statement's common table expressions; ``with_tables`` names the tables of the
    catalog in a query.
    """

    def __init__(
        self,
        spark: SparkSession,
        ctes: str,
        views: RowNames,
        with_tables: Callable[[str, RowNames], str],
    ) -> None:
        self._spark = spark
        self._written_ctes = ctes
        self._views = views
        self._with_tables = with_tables

    def in_rows(self, spec: RowSpec) -> RowSpec:
        """Return an UPDATE or a DELETE with independent subqueries."""
        condition = self._condition(spec.condition)
        if isinstance(spec, DeleteSpec):
            return DeleteSpec(condition=condition)
        return UpdateSpec(assignments=self._assignments(spec.assignments), condition=condition)

    def in_merge(self, spec: MergeSpec) -> MergeSpec:
        """Return a MERGE with independent subqueries."""
        clauses = tuple(self._clause(clause) for clause in spec.clauses)
        return replace(spec, on=self.alone(spec.on), clauses=clauses)

    def _clause(self, clause: Clause) -> Clause:
        condition = self._condition(clause.condition)
        match clause:
            case Matched():
                return Matched(self._change(clause.action), condition)
            case NotMatchedBySource():
                return NotMatchedBySource(self._change(clause.action), condition)
            case NotMatched():
                return NotMatched(Insert(self._assigned(clause.action.assignments)), condition)
            case _:
                assert_never(clause)

    def _change(self, action: Update | Delete) -> Update | Delete:
        return action if isinstance(action, Delete) else Update(self._assigned(action.assignments))

    def _assigned(self, assignments: Assignments) -> Assignments:
        return assignments if assignments is Star.STAR else self._assignments(assignments)

    def _condition(self, condition: Expression | None) -> Expression | None:
        return None if condition is None else self.alone(condition)

    def _assignments(self, assignments: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
        return tuple(Assignment(a.column, self.alone(a.value)) for a in assignments)

    @cached_property
    def _ctes(self) -> str:
        return with_views(self._spark, self._written_ctes, self._views)

    def _alone(self, query: str) -> str:
        whole = joined(self._ctes, with_views(self._spark, query, self._views))
        return self._with_tables(whole, self._views)

    def alone(self, expression: Expression) -> Expression:
        """Return an expression with its outermost subqueries rewritten; other text stays."""
        if not isinstance(expression, str):
            return expression
        return replaced(expression, self._subqueries(expression))

    def _subqueries(self, expression: str) -> Iterator[tuple[int, int, str]]:
        cursor = Cursor(expression)
        while not cursor.is_done:
            start = cursor.start
            if any(cursor.sees("(", word) for word in _QUERY_WORDS):
                query = self._alone(cursor.group())
                yield start, cursor.end, f"({query})"
            else:
                cursor.skip()


def bound_expression(expression: Any, client: Any, text: str) -> str:
    """Return the text of a Connect expression with names for the Delta tables that it reads.

    An expression keeps the versions that its first plan has seen.
    """
    spark = session_of_client(client)
    if spark is None:
        return text
    return _bound(expression, spark, text, lambda names: _with_names(spark, text, names))


def bound_call(expression: Any, client: Any, name: str) -> str:
    """Return the name of a function that an expression calls, or of one that takes its place."""
    spark = session_of_client(client)
    if spark is None:
        return name

    def other(names: KeptNames) -> str:
        return bound_function(spark, parse_name(name), names) or name

    return _bound(expression, spark, f"{name}()", other)


_BOUND = "_puredelta_bound"


def _bound(expression: Any, spark: SparkSession, key: str, make: Callable[[KeptNames], str]) -> str:
    of_session, texts = vars(expression).setdefault(_BOUND, WeakKeyDictionary()), bound_texts()
    known: Any = of_session.get(spark) or texts.get(key)
    if known is None:
        names = KeptNames(spark)
        known = texts[key] = (make(names), names)
    of_session[spark] = known
    return str(known[0])


def _with_names(spark: SparkSession, text: str, names: KeptNames) -> str:
    if may_need_names(text):
        return str(Subqueries(spark, "", names, partial(with_tables, spark)).alone(text))
    return with_kept_names(spark, text, names)


def joined(ctes: str, query: str) -> str:
    """Put common table expressions before a query, which may have its own.

    >>> joined("WITH a AS (SELECT 1)", "WITH b AS (SELECT 2) SELECT * FROM a, b")
    'WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a, b'
    """
    cursor = Cursor(query)
    if not ctes or not cursor.accept("WITH"):
        return f"{ctes} {query}" if ctes else query
    return f"{ctes},{query[cursor.end :]}"
