"""What SQL text says of the rows that it reads of a table, without an analyzer.

Conditions are those of WHERE, and of ON in inner joins: each is true of every row that its query
needs, whatever the rest of the query does. They are read from each query in a text whose relations
are plain; of a table that a text reads in several places the rows of each are needed.

The optimizer may know more: conditions that joins infer, of groups, with folded constants. It does
not where no column of the table, and none that is compared with one or is another name of it, is
compared with a constant elsewhere in the text. A relation of the server's, such as a view, may show
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from puredelta.protocol.schema.predicates import And, Or, Predicate, conjuncts
from puredelta.protocol.schema.sql_lexer import (
    Token,
    TokenCursor,
    TokenKind,
    is_identifier,
    keywords,
    tokenize,
    unquoted,
)
from puredelta.spark.resolve.predicate_from_message import is_understood
from puredelta.spark.resolve.predicate_from_sql import Names, parse_predicate
from puredelta.spark.resolve.select_text import accept_plain_name

_AFTER_FROM = keywords(
    "GROUP ORDER HAVING LIMIT OFFSET WINDOW QUALIFY CLUSTER DISTRIBUTE SORT UNION INTERSECT EXCEPT "
    "MINUS )"
)
_NO_ALIAS = _AFTER_FROM | keywords(
    "WHERE ON USING JOIN INNER CROSS LEFT RIGHT FULL NATURAL SEMI ANTI LATERAL PIVOT UNPIVOT "
    "TABLESAMPLE FOR VERSION TIMESTAMP CHANGES SELECT INSERT MAP REDUCE MATCH_RECOGNIZE"
)
_AFTER_ON = _NO_ALIAS | keywords(",")
_CONDITIONS = keywords("WHERE AND OR ON HAVING QUALIFY NOT")
_CUTS = _CONDITIONS | keywords(
    "SELECT FROM JOIN GROUP ORDER BY LIMIT WHEN THEN ELSE END CASE UNION INTERSECT EXCEPT MINUS "
    "VALUES , ;"
)
_RELATIONS = keywords("FROM JOIN TABLE")
_COMPARES = keywords("= == < > <= >= <=> <> != IN BETWEEN LIKE ILIKE RLIKE IS !")
_CONSTANTS = keywords("TRUE FALSE NULL : ?")
_LITERALS = frozenset({TokenKind.NUMBER, TokenKind.STRING, TokenKind.DOUBLE_QUOTED})

AliasNames: TypeAlias = Callable[[str], Names]
"""Returns the names of a table's columns, which are those of TARGET, under an alias."""
_Span: TypeAlias = tuple[int, int]
"""The first token of a condition, and the one after its last."""


@dataclass(frozen=True, slots=True)
class TextConditions:
    """The conditions of a text on one of its tables."""

    conditions: tuple[Predicate, ...]
    may_be_more: bool
    """Whether the optimizer may know more of them."""


def text_conditions(
    text: str, table: str, columns: Iterable[str], names: AliasNames, *, tables: frozenset[str]
) -> TextConditions:
    """Return what a text says of the rows of a relation that it names ``table``.

    ``tables`` are all names of relations in the text that are no names of the server's.
    """
    tokens = tokenize(text)
    after = [*tokens[1:], None]
    places = [
        token
        for token, dot in zip(tokens, after, strict=True)
        if _is_name(token, table) and not (dot and dot.means("."))
    ]
    known = frozenset(name.lower() for name in columns)
    spans: set[_Span] = set()
    uses: list[tuple[Predicate, ...]] = []
    cursor = TokenCursor(text, tokens)
    for alias, others, conditions in _uses(cursor, tokens, table):
        found: list[Predicate] = []
        # A field of a struct is no column of another relation that has the name of the struct.
        for first, end in () if known & others else conditions:
            part = text[tokens[first].start : tokens[end - 1].end]
            tree = parse_predicate(part, names(alias))
            if tree is not None and is_understood(tree):
                found += conjuncts(tree)
                spans.add((first, end))
        uses.append(tuple(found))
    said: tuple[Predicate, ...] = ()
    if len(uses) == len(places) and all(uses):
        said = uses[0] if len(uses) == 1 else (Or(tuple(map(And, uses))),)
    # Of two scans of a table the optimizer's answer is not understood.
    may_be_more = len(places) == 1 and (
        _names_others(cursor, tokens, tables) or _may_be_more(tokens, known, spans)
    )
    return TextConditions(said, may_be_more)


# --- conditions that are surely true ---------------------------------------------------------


def _uses(
    cursor: TokenCursor, tokens: Sequence[Token], table: str
) -> Iterator[tuple[str, frozenset[str], list[_Span]]]:
    """Yield the places that read a table: its alias, those of other relations, the conditions."""
    for at, token in enumerate(tokens):
        if token.means("FROM"):
            relations, conditions = _From(cursor, at + 1).read() or ([], [])
            for n, (name, alias) in enumerate(relations):
                if name == table:
                    others = relations[:n] + relations[n + 1 :]
                    yield alias, frozenset(other.lower() for _, other in others), conditions


class _From:
    """Reads relations, joined by inner joins, and the conditions on them."""

    def __init__(self, cursor: TokenCursor, position: int) -> None:
        self._cursor = cursor
        cursor.position = position
        self._conditions: list[_Span] = []

    def read(self) -> tuple[list[tuple[str, str]], list[_Span]] | None:
        """Return names and aliases, and conditions; None where anything else comes."""
        cursor, relations = self._cursor, []
        while True:
            relation = self._relation()
            if relation is None:
                return None
            relations.append(relation)
            if cursor.accept("ON"):
                self._condition(_AFTER_ON)
            elif cursor.accept("USING"):
                self._skip_group()
            is_joined = cursor.accept("INNER", "JOIN") or cursor.accept("CROSS", "JOIN")
            if not (is_joined or cursor.accept("JOIN") or cursor.accept(",")):
                break
        if cursor.accept("WHERE"):
            self._condition(_AFTER_FROM)
        is_end = cursor.is_done or cursor.word in _AFTER_FROM
        return (relations, self._conditions) if is_end else None

    def _relation(self) -> tuple[str, str] | None:
        cursor, name = self._cursor, ""
        if cursor.sees("("):
            self._skip_group()
        elif (found := accept_plain_name(cursor)) is not None:
            name = found
        else:
            return None
        explicit = cursor.accept("AS")
        named = explicit or cursor.word not in _NO_ALIAS
        alias = accept_plain_name(cursor) if named else None
        if (explicit and alias is None) or cursor.sees("(") or cursor.sees("."):
            return None
        return name, name if alias is None else alias

    def _condition(self, ends: frozenset[str]) -> None:
        """Step over a condition and note its parts."""
        cursor, depth, read = self._cursor, 0, list[Token]()
        first = cursor.position
        while (token := cursor.peek()) is not None:
            if depth == 0 and cursor.word in ends:
                break
            depth += token.means("(") - token.means(")")
            read.append(token)
            cursor.skip()
        self._conditions += [(first + one, first + end) for one, end in _conjuncts(read)]

    def _skip_group(self) -> None:
        depth = 0
        while (token := self._cursor.peek()) is not None:
            depth += token.means("(") - token.means(")")
            self._cursor.skip()
            if depth == 0:
                return


def _conjuncts(tokens: Sequence[Token]) -> list[_Span]:
    """Return the parts of a condition that AND joins; one part where they are not certain."""
    depth = betweens = 0
    starts = [0]
    for at, token in enumerate(tokens):
        depth += token.means("(") - token.means(")")
        if depth == 0 and (token.means("OR") or token.means("CASE")):
            return [(0, len(tokens))]
        if depth == 0 and token.means("BETWEEN"):
            betweens += 1
        elif depth == 0 and token.means("AND"):
            if betweens:
                betweens -= 1
            else:
                starts.append(at + 1)
    ends = [start - 1 for start in starts[1:]] + [len(tokens)]
    return [(start, stop) for start, stop in zip(starts, ends, strict=True) if start < stop]


# --- conditions that there may be ------------------------------------------------------------


def _names_others(cursor: TokenCursor, tokens: Sequence[Token], tables: frozenset[str]) -> bool:
    """Return whether a text names further relations; names of its own are none."""
    own = {unquoted(one) for one, two in pairwise(tokens) if two.means("AS") and is_identifier(one)}
    found: set[str] = set()
    for at, token in enumerate(tokens):
        if token.means("FROM"):
            relations, _ = _From(cursor, at + 1).read() or ([], [])
            found |= {name for name, _ in relations}
        if _is_one_of(token, _RELATIONS) and at + 1 < len(tokens) and is_identifier(tokens[at + 1]):
            found.add(unquoted(tokens[at + 1]))
    return bool(found - tables - own - {""})


def _may_be_more(tokens: Sequence[Token], columns: frozenset[str], known: set[_Span]) -> bool:
    """Return whether a condition with a constant may reach a column, those known aside."""
    compared: set[str] = set()
    linked: list[frozenset[str]] = []
    for before, part in _parts(tokens, known):
        names = _names_in(part, columns)
        compares = any(_is_one_of(token, _COMPARES) for token in part)
        if _renames_columns(part):
            return True
        if (compares and _has_constant(part)) or (not compares and before in _CONDITIONS):
            compared |= names
        else:
            linked.append(names)
    while more := {name for some in linked if some & compared for name in some} - compared:
        compared |= more
    return bool(compared & columns)


def _parts(tokens: Sequence[Token], known: set[_Span]) -> Iterator[tuple[str, list[Token]]]:
    """Yield the parts of a text between its keywords, each with the keyword before it."""
    skipped = {at for first, end in known for at in range(first, end)}
    before, part = "", list[Token]()
    for at, token in enumerate(tokens):
        if at in skipped or _is_one_of(token, _CUTS):
            if part:
                yield before, part
            before, part = token.text.upper(), []
        else:
            part.append(token)
    if part:
        yield before, part


def _names_in(part: Sequence[Token], columns: frozenset[str]) -> frozenset[str]:
    """Return the last parts of names, in lower case, and first ones that may be structs."""
    names = set()
    for token, dot in zip(part, [*part[1:], None], strict=True):
        name = unquoted(token).lower()
        if _is_word(token) and (name in columns or not (dot and dot.means("."))):
            names.add(name)
    return frozenset(names)


def _renames_columns(part: Sequence[Token]) -> bool:
    """Return whether several columns get new names: ``AS v(a, b)``."""
    return any(one.means("AS") and two.means("(") for one, two in zip(part, part[2:], strict=False))


def _has_constant(part: Sequence[Token]) -> bool:
    calls_nothing = any(one.means("(") and two.means(")") for one, two in pairwise(part))
    is_there = any(token.kind in _LITERALS or _is_one_of(token, _CONSTANTS) for token in part)
    return is_there or calls_nothing


def _is_word(token: Token) -> bool:
    return is_identifier(token) and not _is_one_of(token, _COMPARES | _CONSTANTS)


def _is_name(token: Token, name: str) -> bool:
    return is_identifier(token) and unquoted(token) == name


def _is_one_of(token: Token, words: frozenset[str]) -> bool:
    if token.kind is TokenKind.WORD:
        return token.text.upper() in words
    return token.kind is TokenKind.SYMBOL and token.text in words
