"""SQL text of a simple condition as the predicate tree, where no analyzer shows its own.

A strict parser of a small grammar: names, numbers, texts without escapes, days, comparisons, AND,
OR, NOT, IN, BETWEEN, LIKE, IS NULL, arithmetic and function calls (both ``Opaque``). A text with
anything else is not understood, and prunes no files.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.log.files.value_order import FLOATING, LONG_MAX, single_precision
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Opaque,
    Or,
    Predicate,
    Ref,
    Side,
    StartsWith,
    conjuncts,
    references,
)
from puredelta.protocol.schema.sql_lexer import Token, TokenCursor, TokenKind, keywords, unquoted
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructType,
)

_COMPARISONS = {
    "=": CompareOp.EQUAL,
    "==": CompareOp.EQUAL,
    "<=>": CompareOp.NULL_SAFE_EQUAL,
    "<": CompareOp.LESS,
    "<=": CompareOp.LESS_OR_EQUAL,
    ">": CompareOp.GREATER,
    ">=": CompareOp.GREATER_OR_EQUAL,
}
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[LSYDFlsydf]|BD|bd)?", re.ASCII)
_LARGEST = {"L": LONG_MAX, "S": (1 << 15) - 1, "Y": (1 << 7) - 1}
"""Of a number with a suffix; one more with a minus before it is left to the analyzer, too."""
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_RESERVED = keywords("AND OR NOT IN IS BETWEEN CASE SELECT INTERVAL")
_NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSide:
    """The columns of one side and how they may be qualified."""

    side: Side
    qualifier: tuple[str, ...]
    """The longest one: catalog, database and table, the last of them, or nothing."""
    columns: Sequence[tuple[str, Ref, StructType | None]]
    """Name, reference, and the type where it is a struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Who owns a name: a qualifier wins over a struct column of the same name."""

    sides: Sequence[NamedSide]
    case_sensitive: bool

    def find(self, parts: Sequence[str]) -> Ref | None:
        """Return what a name means, ``None`` if it is nothing or could be several things."""
        qualified = [
            ref
            for side in self.sides
            for length in range(1, min(len(side.qualifier), len(parts) - 1) + 1)
            if all(map(self._is_same, side.qualifier[-length:], parts))
            for ref in self._in_side(side, parts[length:])
        ]
        found = qualified or [ref for side in self.sides for ref in self._in_side(side, parts)]
        return found[0] if len(found) == 1 else None

    def _in_side(self, side: NamedSide, parts: Sequence[str]) -> list[Ref]:
        matches = [c for c in side.columns if self._is_same(c[0], parts[0])]
        return [ref for _, top, struct in matches if (ref := self._inside(top, struct, parts[1:]))]

    def _inside(self, top: Ref, struct: StructType | None, parts: Sequence[str]) -> Ref | None:
        ref = top
        for part in parts:
            fields = () if struct is None else struct.fields
            found = next((f for f in fields if self._is_same(f.name, part)), None)
            if found is None:
                return None
            ref = Ref(ref.side, (*ref.path, found.name), found.type)
            struct = found.type if isinstance(found.type, StructType) else None
        return ref

    def _is_same(self, one: str, other: str) -> bool:
        return one == other if self.case_sensitive else one.lower() == other.lower()


def parse_predicate(text: str, names: Names) -> Predicate | None:
    """Return the tree of a condition, ``None`` if any part of it is not understood."""
    try:
        parser = _Parser(text, names)
        tree = parser.disjunction()
        parser.expect_end()
    except (_NotUnderstoodError, RecursionError):
        return None
    return tree


def is_surely_boolean(tree: Predicate) -> bool:
    """Return whether Spark's analyzer takes a condition for sure, without being asked.

    Only comparisons of columns that have one plain type, with each other or with constants of that
    type, and what is built of them.
    """
    match tree:
        case Ref(type=kind):
            return kind == BOOLEAN
        case Const(bool()):
            return True
        case IsNull(Ref(type=kind)):
            return kind is not None
        case StartsWith(Ref(type=kind, path=(_,))):
            return kind == STRING
        case Compare(_, Ref(type=one, path=(_,)), Ref(type=other, path=(_,))):
            return one in _PLAIN and (one == other or (one in INTEGRAL and other in INTEGRAL))
        case Compare(_, Ref(type=kind, path=(_,)), Const(value)):
            return _surely_compares(kind, value)
        case OneOf(Ref(type=kind, path=(_,)), values):
            return bool(values) and all(_surely_compares(kind, value) for value in values)
        case And(parts) | Or(parts):
            return all(map(is_surely_boolean, parts))
        case Not(part):
            return is_surely_boolean(part)
        case _:
            return False


_PLAIN = frozenset({*INTEGRAL, BOOLEAN, DATE, STRING})


def _surely_compares(kind: DataType | None, value: object) -> bool:
    match value:
        case bool() | None:
            return False
        case int():
            return kind in INTEGRAL and abs(value) <= LONG_MAX
        case str():
            return kind == STRING
        case dt.date():
            return kind == DATE and not isinstance(value, dt.datetime)
        case _:
            return False


class _NotUnderstoodError(Exception):
    """The text leaves the small grammar."""


class _Parser(TokenCursor):
    """Parser of one text; methods that find no rule raise `_NotUnderstoodError`."""

    def __init__(self, text: str, names: Names) -> None:
        super().__init__(text)
        self._names = names

    def disjunction(self) -> Predicate:
        parts = [self.conjunction()]
        while self.accept("OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def conjunction(self) -> Predicate:
        parts = [self.negation()]
        while self.accept("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(tuple(c for p in parts for c in conjuncts(p)))

    def negation(self) -> Predicate:
        return Not(self.negation()) if self.accept("NOT") else self.comparison()

    def comparison(self) -> Predicate:
        left = self.arithmetic()
        if self.accept("IS"):
            negated = self.accept("NOT")
            self.expect("NULL")
            made: Predicate = IsNull(left) if isinstance(left, Ref) else opaque(left)
            return Not(made) if negated else made
        negated = self.accept("NOT")
        if self.accept("IN"):
            made = one_of(left, self._list())
        elif self.accept("BETWEEN"):
            low = self.arithmetic()
            self.expect("AND")
            made = And(
                (
                    compare(CompareOp.GREATER_OR_EQUAL, left, low),
                    compare(CompareOp.LESS_OR_EQUAL, left, self.arithmetic()),
                )
            )
        elif self.accept("LIKE"):
            made = like_prefix(left, self.operand())
        elif negated:
            raise _NotUnderstoodError
        else:
            return self._compared(left)
        return Not(made) if negated else made

    def _compared(self, left: Predicate) -> Predicate:
        if self.accept("<>") or self.accept("!="):
            return Not(compare(CompareOp.EQUAL, left, self.arithmetic()))
        op = next((op for sign, op in _COMPARISONS.items() if self.accept(sign)), None)
        return left if op is None else compare(op, left, self.arithmetic())

    def arithmetic(self) -> Predicate:
        parts = [self.operand()]
        while any(self.accept(sign) for sign in ("+", "-", "*", "/", "%")):
            parts.append(self.operand())
        return parts[0] if len(parts) == 1 else opaque(*parts)

    def operand(self) -> Predicate:
        if self.accept("-"):
            match self.operand():
                case Const(int() | float() | decimal.Decimal() as value):
                    return Const(-value)
                case other:
                    return opaque(other)
        if self.accept("("):
            inner = self.disjunction()
            self.expect(")")
            return inner
        token = self.peek()
        match token:
            case Token(kind=TokenKind.NUMBER) if _NUMBER.fullmatch(token.text):
                self.skip()
                return Const(_number(token.text))
            case Token(kind=TokenKind.STRING):
                return Const(self._text())
            case Token(kind=TokenKind.WORD):
                return self._keyword(token) or self._name()
            case Token(kind=TokenKind.QUOTED):
                return self._name()
            case _:
                raise _NotUnderstoodError

    def _keyword(self, token: Token) -> Predicate | None:
        """Read what begins with a keyword or the name of a function; None before a column."""
        after = self.peek(1)
        if token.means("DATE") and after is not None and after.kind is TokenKind.STRING:
            self.skip()
            day = _day(self._text())
            if day is None:
                raise _NotUnderstoodError
            return Const(day)
        is_name = after is not None and (after.means(".") or after.means("("))
        if token.text.upper() in _CONSTANTS and not is_name:
            self.skip()
            return Const(_CONSTANTS[token.text.upper()])
        if token.text.upper() in _RESERVED:
            raise _NotUnderstoodError
        if after is not None and after.means("("):
            self.skip()
            return opaque(*self._list())
        return None

    def _text(self) -> str:
        """Read a text without escapes, which is not continued by another one."""
        token, after = self.peek(), self.peek(1)
        text = "" if token is None else token.text[1:-1]
        is_plain = token is not None and token.text.startswith("'")
        is_whole = after is None or after.kind not in {TokenKind.STRING, TokenKind.DOUBLE_QUOTED}
        if not (is_plain and is_whole) or "\\" in text or "'" in text:
            raise _NotUnderstoodError
        self.skip()
        return text

    def _name(self) -> Predicate:
        parts = [self._part()]
        while self.accept("."):
            parts.append(self._part())
        found = self._names.find(parts)
        if found is None or self.sees("("):
            raise _NotUnderstoodError
        return found

    def _part(self) -> str:
        token = self.peek()
        if token is None or token.kind not in _NAMES:
            raise _NotUnderstoodError
        self.skip()
        return unquoted(token)

    def _list(self) -> list[Predicate]:
        self.expect("(")
        items: list[Predicate] = []
        if not self.accept(")"):
            items.append(self.disjunction())
            while self.accept(","):
                items.append(self.disjunction())
            self.expect(")")
        return items

    def expect(self, keyword: str) -> None:
        if not self.accept(keyword):
            raise _NotUnderstoodError

    def expect_end(self) -> None:
        if not self.is_done:
            raise _NotUnderstoodError


def opaque(*parts: Predicate) -> Predicate:
    """Return an expression of these parts of which nothing else is known."""
    return Opaque(frozenset[Ref]().union(*(references(p) for p in parts)))


def _day(text: str) -> dt.date | None:
    """Return the day that a text names in full; Spark reads other spellings, too."""
    try:
        return dt.date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _like(left: Predicate, right: Predicate) -> Predicate:
    """Return what stands beside a column; Spark compares a day with text as a day."""
    match left, right:
        case Ref(type=kind), Const(str() as text) if kind == DATE and _day(text) is not None:
            return Const(_day(text))
    return right


def one_of(left: Predicate, several: Sequence[Predicate]) -> Predicate:
    """Return ``left IN (several)``; `Opaque` where Spark changes the column first."""
    values = [_like(left, value) for value in several]
    constants = [v for v in values if isinstance(v, Const) and _is_comparable(left, v)]
    if isinstance(left, Ref) and len(constants) == len(values):
        return OneOf(left, tuple(v.value for v in constants))
    return opaque(left, *values)


def compare(op: CompareOp, left: Predicate, right: Predicate) -> Predicate:
    """Return ``left op right``; `Opaque` where Spark changes the column first."""
    if isinstance(left, Const) and isinstance(right, Ref):
        return compare(op.flipped, right, left)
    right = _like(left, right)
    return Compare(op, left, right) if _is_comparable(left, right) else opaque(left, right)


def like_prefix(left: Predicate, pattern: Predicate) -> Predicate:
    """Return ``left LIKE pattern`` for a prefix or a plain text; `Opaque` for other patterns."""
    match left, pattern:
        case Ref(type=kind), Const(str() as text) if kind == STRING:
            if _PLAIN_PATTERN.fullmatch(text):
                return Compare(CompareOp.EQUAL, left, pattern)
            if text.endswith("%") and _PLAIN_PATTERN.fullmatch(text[:-1]):
                return StartsWith(left, text[:-1])
    return opaque(left, pattern)


_PLAIN_PATTERN = re.compile(r"[^%_\\]*", re.DOTALL)


def _is_comparable(left: Predicate, right: Predicate) -> bool:
    """Return whether Spark compares the two without changing the column first."""
    match left, right:
        case Ref(type=None), _:
            return False
        case Ref(type=one), Ref(type=other):
            return one == other or (one in INTEGRAL and other in INTEGRAL)
        case Ref(type=kind), Const(value):
            return _fits(kind, value)
        case _:
            return False


def _fits(kind: object, value: object) -> bool:
    """Return whether a constant is compared with a column by its value.

    Numbers of other types are: `puredelta.log.files.value_order` knows what Spark makes of them.
    """
    match value:
        case bool():
            return kind == BOOLEAN
        case int() | decimal.Decimal():
            return kind in INTEGRAL or kind in FLOATING or isinstance(kind, DecimalType)
        case float():
            return kind in INTEGRAL or kind in FLOATING
        case str():
            return kind == STRING
        case bytes():
            return kind == BINARY
        case dt.datetime():
            return kind == (TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP)
        case dt.date():
            return kind == DATE
        case _:
            return value is None


def _number(text: str) -> int | float | decimal.Decimal:
    """Return the value of a number as Spark's parser reads it."""
    upper = text.upper()
    if upper.endswith("BD"):
        return decimal.Decimal(upper[:-2])
    digits = upper.rstrip("LSYDF")
    if upper[-1] in _LARGEST:
        if int(digits) > _LARGEST[upper[-1]]:
            raise _NotUnderstoodError
        return int(digits)
    if upper.endswith("F"):
        return single_precision(float(digits))
    if upper.endswith("D") or "E" in digits:
        return float(digits)
    return decimal.Decimal(digits) if "." in digits else int(digits)
