"""Columns that a SQL expression of a table mentions: a constraint, a generation expression.

The text is read token by token as Spark's lexer reads it, without a parser. No column is missed.
What only Spark's grammar or the session's settings can tell apart from a column is taken for one:
a unit of time (``day``), the name after an operand without AS, text in double quotes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from puredelta.protocol.schema.sql_lexer import (
    IDENTIFIERS,
    Token,
    TokenKind,
    keywords,
    tokenize,
    unquoted,
)
from puredelta.protocol.schema.types import DataType, StructType

_Path = tuple[str, ...]
_CASTS = keywords("CAST TRY_CAST")
_OPENING = keywords("( [ /*+")
_CLOSING = keywords(") ] */")
_NAMES_FOLLOW = keywords("AS COLLATE")
"""Keywords after which an identifier is no column."""


def referenced_paths(sql: str, schema: StructType) -> list[tuple[str, ...]]:
    r"""Return the columns and fields that an expression names, in order of first mention.

    A star and a computed name, ``IDENTIFIER(a || b)``, mention every column.

    >>> from puredelta.protocol.schema.types import INTEGER, StructField
    >>> schema = StructType((StructField("a", INTEGER), StructField("b c", INTEGER)))
    >>> referenced_paths("abs(A) > 0 -- it's positive\n AND `b c` <> 'a'", schema)
    [('a',), ('b c',)]
    """
    found: dict[_Path, None] = {}
    for parts in _names(tokenize(sql)):
        if not parts:
            found |= {(field.name,): None for field in schema.fields}
        elif path := _resolve(parts, schema):
            found[path] = None
    return list(found)


def _names(tokens: Sequence[Token]) -> Iterator[Sequence[str]]:
    """Yield the parts of each name that may be a column; no parts stand for every column."""
    variables = _lambda_variables(tokens)
    no_names = _type_places(tokens)
    at = 0
    while at < len(tokens):
        length = _name_length(tokens, at)
        before = tokens[at - 1] if at else None
        after = tokens[at + length] if at + length < len(tokens) else None
        if tokens[at].means("IDENTIFIER") and after is not None and after.means("("):
            yield _computed_name(tokens[at + 2 : at + 4])
        elif tokens[at].means("*") and (before is None or before.text in {"(", ","}):
            yield ()
        elif length and at not in no_names and _may_be_column(before, tokens[at], after):
            parts = [unquoted(token) for token in tokens[at : at + length : 2]]
            if parts[0].lower() not in variables.get(at, ()):
                yield parts
        at += max(length, 1)


def _name_length(tokens: Sequence[Token], at: int) -> int:
    """Return how many tokens the name at a place has, with its dots; 0 if there is none."""
    if tokens[at].kind not in IDENTIFIERS:
        return 0
    end = at + 1
    while end + 1 < len(tokens) and tokens[end].means(".") and tokens[end + 1].kind in IDENTIFIERS:
        end += 2
    return end - at


def _may_be_column(before: Token | None, name: Token, after: Token | None) -> bool:
    if before is not None:
        if before.means(".") or before.means(":"):  # of a value: f(a).b, a[0].b, a:b; or :parameter
            return False
        if before.kind is TokenKind.WORD and before.text.upper() in _NAMES_FOLLOW:
            return False
    if after is None:
        return True
    is_typed_literal = name.kind is TokenKind.WORD and after.kind is TokenKind.STRING
    return not (is_typed_literal or after.means("(") or after.means("=>") or after.means("->"))


def _computed_name(tokens: Sequence[Token]) -> Sequence[str]:
    """Return the name in ``IDENTIFIER('a.b')``; no parts if Spark has to compute it."""
    match tokens:
        case [Token(kind=TokenKind.STRING, text=text), end] if end.means(")") and "\\" not in text:
            inside = tokenize(text.strip("rR")[1:-1])
            return [unquoted(token) for token in inside if token.kind in IDENTIFIERS]
        case _:
            return ()


def _lambda_variables(tokens: Sequence[Token]) -> Mapping[int, frozenset[str]]:
    """Return the variables of lambda functions, in lower case, by the places that see them."""
    seen: dict[int, frozenset[str]] = {}
    for arrow, token in enumerate(tokens):
        if not token.means("->"):
            continue
        first = arrow - 1
        if first >= 0 and tokens[first].means(")"):
            while first > 0 and not tokens[first].means("("):
                first -= 1
        names = frozenset(unquoted(t).lower() for t in tokens[first:arrow] if t.kind in IDENTIFIERS)
        for place in (*range(max(first, 0), arrow), *_argument(tokens, arrow + 1)):
            seen[place] = seen.get(place, frozenset()) | names
    return seen


def _type_places(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the places that are parts of a type: ``CAST(a AS date)``, ``a::date``."""
    places: set[int] = set()
    calls: list[bool] = []
    for at, token in enumerate(tokens):
        if token.text in _OPENING and token.kind is TokenKind.SYMBOL:
            before = tokens[at - 1] if at else None
            calls.append(before is not None and before.text.upper() in _CASTS)
        elif token.text in _CLOSING and token.kind is TokenKind.SYMBOL:
            del calls[-1:]
        elif token.means("::"):
            places.add(at + 1)
        elif token.means("AS") and calls and calls[-1]:
            places |= set(_argument(tokens, at + 1, is_type=True))
    return frozenset(places)


def _argument(tokens: Sequence[Token], start: int, *, is_type: bool = False) -> range:
    """Return the places up to the comma or bracket that ends an argument; types have commas."""
    depth = 0
    for at in range(start, len(tokens)):
        token = tokens[at]
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth < 0 or (depth == 0 and token.means(",") and not is_type):
                return range(start, at)
    return range(start, len(tokens))


def _resolve(names: Sequence[str], schema: StructType) -> _Path:
    path: _Path = ()
    level: DataType = schema
    for name in names:
        field = level.find_ignoring_case(name) if isinstance(level, StructType) else None
        if field is None:
            break
        path, level = (*path, field.name), field.type
    return path
