"""SQL text of a simple condition as the predicate tree, where no analyzer shows its own.

A strict parser of a small grammar: names, integers, texts without escapes, days, comparisons,
AND, OR, NOT, IN, BETWEEN, IS NULL, arithmetic and function calls (both ``Opaque``). Text that
holds anything else is not understood at all; that costs pruning and never rows.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from puredelta.protocol.schema.types import BOOLEAN, DATE, INTEGRAL, STRING, StructType
from puredelta.protocol.values.predicates import (
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
    conjuncts,
    references,
)

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_]\w*)|(?P<quoted>`(?:[^`]|``)+`)|(?P<number>\d+)(?![\w.])"
    r"|(?P<text>'[^'\\]*')(?!\s*')|(?P<mark><=>|<=|>=|<>|!=|==|[=<>(),.+*%]|-(?!-)|/(?!\*)))"
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
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_RESERVED = frozenset({"AND", "OR", "NOT", "IN", "IS", "BETWEEN", "CASE", "SELECT", "INTERVAL"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSide:
    """The columns of one side and how they may be qualified."""

    side: Side
    qualifier: str | None
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
            if len(parts) > 1 and side.qualifier and self._is_same(side.qualifier, parts[0])
            for ref in self._in_side(side, parts[1:])
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
        parser = _Parser(names=names, tokens=_tokens(text))
        tree = parser.disjunction()
        parser.expect_end()
    except (_NotUnderstoodError, RecursionError):
        return None
    return tree


class _NotUnderstoodError(Exception):
    """The text leaves the small grammar."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _NotUnderstoodError
        tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*tokens, _Token("end", "")]


@dataclass(slots=True)
class _Parser:
    names: Names
    tokens: list[_Token]
    at: int = field(default=0)

    def disjunction(self) -> Predicate:
        parts = [self.conjunction()]
        while self._accept("OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def conjunction(self) -> Predicate:
        parts = [self.negation()]
        while self._accept("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(tuple(c for p in parts for c in conjuncts(p)))

    def negation(self) -> Predicate:
        return Not(self.negation()) if self._accept("NOT") else self.comparison()

    def comparison(self) -> Predicate:
        left = self.arithmetic()
        if self._accept("IS"):
            negated = self._accept("NOT")
            self._expect("NULL")
            made: Predicate = IsNull(left) if isinstance(left, Ref) else _opaque(left)
            return Not(made) if negated else made
        negated = self._accept("NOT")
        if self._accept("IN"):
            made = _one_of(left, self._list())
        elif self._accept("BETWEEN"):
            low = self.arithmetic()
            self._expect("AND")
            made = And(
                (
                    _compare(CompareOp.GREATER_OR_EQUAL, left, low),
                    _compare(CompareOp.LESS_OR_EQUAL, left, self.arithmetic()),
                )
            )
        elif negated:
            raise _NotUnderstoodError
        else:
            return self._compared(left)
        return Not(made) if negated else made

    def _compared(self, left: Predicate) -> Predicate:
        if self._accept("<>") or self._accept("!="):
            return Not(_compare(CompareOp.EQUAL, left, self.arithmetic()))
        op = _COMPARISONS.get(self._next.text) if self._next.kind == "mark" else None
        if op is None:
            return left
        self.at += 1
        return _compare(op, left, self.arithmetic())

    def arithmetic(self) -> Predicate:
        parts = [self.operand()]
        while any(self._accept(sign) for sign in ("+", "-", "*", "/", "%")):
            parts.append(self.operand())
        return parts[0] if len(parts) == 1 else _opaque(*parts)

    def operand(self) -> Predicate:
        if self._accept("-"):
            match self.operand():
                case Const(int() as value):
                    return Const(-value)
                case other:
                    return _opaque(other)
        if self._accept("("):
            inner = self.disjunction()
            self._expect(")")
            return inner
        token = self._next
        self.at += 1
        match token.kind:
            case "number":
                return Const(int(token.text))
            case "text":
                return Const(token.text[1:-1])
            case "word" if token.keyword == "DATE" and self._next.kind == "text":
                return self._day_literal()
            case "word" if token.keyword in _CONSTANTS and self._next.text not in (".", "("):
                return Const(_CONSTANTS[token.keyword])
            case "word" if token.keyword in _RESERVED:
                raise _NotUnderstoodError
            case "word" if self._next.text == "(":
                return _opaque(*self._list())
            case "word" | "quoted":
                return self._name(token)
            case _:
                raise _NotUnderstoodError

    def _day_literal(self) -> Predicate:
        day = _day(self._next.text[1:-1])
        if day is None:
            raise _NotUnderstoodError
        self.at += 1
        return Const(day)

    def _name(self, first: _Token) -> Predicate:
        parts = [_unquoted(first)]
        while self._accept("."):
            part = self._next
            if part.kind not in ("word", "quoted"):
                raise _NotUnderstoodError
            self.at += 1
            parts.append(_unquoted(part))
        found = self.names.find(parts)
        if found is None or self._next.text == "(":
            raise _NotUnderstoodError
        return found

    def _list(self) -> list[Predicate]:
        self._expect("(")
        items: list[Predicate] = []
        if not self._accept(")"):
            items.append(self.disjunction())
            while self._accept(","):
                items.append(self.disjunction())
            self._expect(")")
        return items

    def expect_end(self) -> None:
        if self._next.kind != "end":
            raise _NotUnderstoodError

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _accept(self, keyword: str) -> bool:
        found = self._next.kind in ("word", "mark") and self._next.keyword == keyword
        self.at += found
        return found

    def _expect(self, keyword: str) -> None:
        if not self._accept(keyword):
            raise _NotUnderstoodError


def _unquoted(token: _Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def _opaque(*parts: Predicate) -> Predicate:
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


def _one_of(left: Predicate, several: Sequence[Predicate]) -> Predicate:
    values = [_like(left, value) for value in several]
    constants = [v for v in values if isinstance(v, Const) and _is_comparable(left, v)]
    if isinstance(left, Ref) and len(constants) == len(values):
        return OneOf(left, tuple(v.value for v in constants))
    return _opaque(left, *values)


def _compare(op: CompareOp, left: Predicate, right: Predicate) -> Predicate:
    if isinstance(left, Const) and isinstance(right, Ref):
        return _compare(op.flipped, right, left)
    right = _like(left, right)
    return Compare(op, left, right) if _is_comparable(left, right) else _opaque(left, right)


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
    match value:
        case bool():
            return kind == BOOLEAN
        case int():
            return kind in INTEGRAL
        case str():
            return kind == STRING
        case dt.date():
            return kind == DATE
        case _:
            return value is None
