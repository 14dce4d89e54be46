r"""The conditions and columns with which the optimizer would read a table, asked over Connect.

The plan is explained with another scan in the place of the table's: one of a file at most, whose
columns have random names below a projection to the real ones. The physical plan names the filters
that Spark pushes into that scan, and the columns that it reads::

    Output [1]: [x3fa0#7L]
    PushedFilters: [IsNotNull(x3fa0), EqualTo(x3fa0,5)]
    ReadSchema: struct<x3fa0:bigint>

Values are printed without quotes and line ends as they are. No value can be taken for a condition
or for the end of the conditions: these have random names. The grammar is strict, and a text
outside of it says nothing. A list of texts with commas can be read in several ways: every one
counts. Timestamps are printed in the time zone of the server's JVM.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import secrets
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

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
)
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructType,
)

_COMPARISONS = {
    "EqualTo": CompareOp.EQUAL,
    "EqualNullSafe": CompareOp.NULL_SAFE_EQUAL,
    "LessThan": CompareOp.LESS,
    "LessThanOrEqual": CompareOp.LESS_OR_EQUAL,
    "GreaterThan": CompareOp.GREATER,
    "GreaterThanOrEqual": CompareOp.GREATER_OR_EQUAL,
}
_OTHERS = frozenset({"StringEndsWith", "StringContains"})
_SCAN = re.compile(r"^\(\d+\) (?:Batch)?Scan .*?(?=^\(\d+\) |\Z)", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"\(\d+\) (?:Batch)?Scan [^\n]*\nOutput \[(\d+)\]: \[([^\n]*)\]\n")
_PUSHED = re.compile(r"^PushedFilters: (?:\[(.*)\]\nReadSchema: struct<(?:(\w+):)?)?", re.MULTILINE)
_NAME = re.compile(r"(\w+)#")
_HEAD = re.compile(r"(\w+)\(")
_VALUE = re.compile(r"[^()\[\],]*")
_PATH = re.compile(r"\w+(?:\.\w+)*")
_TIMESTAMP = re.compile(r"(\d{4})-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?")
_FIRST_YEAR = 1900
"""Before it the calendars and zones of Java and Python may differ."""
_RUNS_MAX = 40
"""Texts of a list up to which each way to read their commas is tried."""

Zone: TypeAlias = Callable[[], dt.tzinfo | None]
"""Returns the time zone of the server's JVM; None if it cannot be had."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The columns of such a scan, with random names."""

    columns: Mapping[str, tuple[str, DataType]]
    """The names and types of the table's columns, by the random names."""

    @classmethod
    def of(cls, schema: StructType) -> Skeleton:
        """Return other names for the columns of a table."""
        return cls({f"x{secrets.token_hex(8)}": (f.name, f.type) for f in schema.fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What the optimizer would read of a table."""

    conditions: tuple[Predicate, ...] = ()
    columns: frozenset[str] | None = None
    """None: any."""


def needed_of(explained: str, skeletons: Sequence[Skeleton], zone: Zone) -> list[Needed]:
    """Return what a physical plan, explained as formatted text, reads by each scan.

    Nothing is known of a scan that the plan does not have, or has several times.
    """
    sections = [found[0] for found in _SCAN.finditer(explained)]
    return [_needed(skeleton, sections, zone) for skeleton in skeletons]


def _needed(skeleton: Skeleton, sections: Sequence[str], zone: Zone) -> Needed:
    own = [text for text in sections if any(name in text for name in skeleton.columns)]
    if len(own) != 1:
        return Needed()
    return Needed(
        conditions=_conditions(own[0], skeleton, zone), columns=_columns(own[0], skeleton)
    )


def _columns(section: str, skeleton: Skeleton) -> frozenset[str] | None:
    found = _OUTPUT.match(section)
    names = [] if found is None else _NAME.findall(found[2])
    if found is None or len(names) != int(found[1]) or not skeleton.columns.keys() >= set(names):
        return None  # a long list is cut
    return frozenset(skeleton.columns[name][0] for name in names)


def _conditions(section: str, skeleton: Skeleton, zone: Zone) -> tuple[Predicate, ...]:
    lines = list(_PUSHED.finditer(section))
    if len(lines) != 1 or lines[0][2] not in skeleton.columns:
        return ()
    try:
        return tuple(_Filters(lines[0][1], skeleton, zone).all())
    except (_UnknownTextError, RecursionError):
        return ()


class _UnknownTextError(Exception):
    """The text leaves the grammar."""


@dataclass(slots=True)
class _Filters:
    """The parser of one list of filters."""

    text: str
    skeleton: Skeleton
    zone: Zone
    at: int = field(default=0)
    negations: int = field(default=0)

    def all(self) -> Iterator[Predicate]:
        yield self._filter()
        while self.at < len(self.text):
            self._expect(", ")
            yield self._filter()

    def _filter(self) -> Predicate:
        head = _HEAD.match(self.text, self.at)
        if head is None:
            raise _UnknownTextError
        self.at = head.end()
        made = self._called(head[1])
        self._expect(")")
        return made

    def _called(self, name: str) -> Predicate:
        match name:
            case "And" | "Or":
                one = self._filter()
                self._expect(",")
                parts = (one, self._filter())
                return And(parts) if name == "And" else Or(parts)
            case "Not":
                self.negations += 1
                inner = self._filter()
                self.negations -= 1
                return Not(inner)
            case _:
                return self._of_column(name)

    def _of_column(self, name: str) -> Predicate:
        ref = self._column()
        if name in {"IsNull", "IsNotNull"}:
            return IsNull(ref) if name == "IsNull" else Not(IsNull(ref))
        if name == "In":
            self._expect(", [")
            texts = self._values()
            self._expect("]")
            return self._one_of(ref, texts)
        self._expect(",")
        text = self._value()
        if name == "StringStartsWith" and ref.type == STRING:
            return StartsWith(ref, text)
        if name in _COMPARISONS:
            value = self._constant(text, ref.type)
            return _unknown(ref) if value is None else Compare(_COMPARISONS[name], ref, value)
        if name in _OTHERS:
            return _unknown(ref)
        raise _UnknownTextError

    def _column(self) -> Ref:
        found = _PATH.match(self.text, self.at)
        first, *fields = found[0].split(".") if found else [""]
        if found is None or first not in self.skeleton.columns:
            raise _UnknownTextError
        self.at = found.end()
        name, kind = self.skeleton.columns[first]
        ref = Ref(Side.TARGET, (name,), kind)
        for part in fields:
            inner = ref.type.find(part) if isinstance(ref.type, StructType) else None
            if inner is None:
                raise _UnknownTextError
            ref = Ref(Side.TARGET, (*ref.path, inner.name), inner.type)
        return ref

    def _value(self) -> str:
        if self.text.startswith("[B@", self.at):  # bytes, as Java names their address
            self.at += 1
        found = _VALUE.match(self.text, self.at)
        text = found[0] if found else ""
        self.at += len(text)
        return text

    def _values(self) -> list[str]:
        found = [self._value()]
        while self.text.startswith(",", self.at):
            self.at += 1
            found.append(self._value())
        return found

    def _one_of(self, ref: Ref, texts: Sequence[str]) -> Predicate:
        if ref.type == STRING:
            return _unknown(ref) if self.negations else _one_of_texts(ref, texts)
        values = [self._constant(text, ref.type) for text in texts if text != "null"]
        has_null = len(values) < len(texts)
        known = [value.value for value in values if value is not None]
        if len(known) < len(values) or (has_null and self.negations):
            return _unknown(ref)
        return OneOf(ref, tuple(known))

    def _constant(self, text: str, kind: DataType | None) -> Const | None:
        try:
            value = _parsed(text, kind, self.zone)
        except (ValueError, ArithmeticError):
            return None
        return None if value is None else Const(value)

    def _expect(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise _UnknownTextError
        self.at += len(text)


def _unknown(ref: Ref) -> Predicate:
    return Opaque(frozenset({ref}))


def _one_of_texts(ref: Ref, texts: Sequence[str]) -> Predicate:
    """Return that a text is one of a list that commas separate; any of them may hold commas."""
    if len(texts) > _RUNS_MAX:
        return Compare(CompareOp.GREATER_OR_EQUAL, ref, Const(min(texts)))
    every = range(len(texts))
    runs = {",".join(texts[first : last + 1]) for first in every for last in every[first:]}
    return OneOf(ref, tuple(sorted(runs)))


def _parsed(text: str, kind: DataType | None, zone: Zone) -> object:
    """Return the value of a text as Java prints it; None for a type whose texts say too little."""
    match kind:
        case DecimalType():
            return decimal.Decimal(text)
        case _ if kind in INTEGRAL:
            return int(text)
        case _ if kind in {FLOAT, DOUBLE}:
            return float(text)
        case _ if kind == STRING:
            return text
        case _ if kind == BOOLEAN:
            return {"true": True, "false": False}.get(text)
        case _ if kind == DATE:
            day = dt.date.fromisoformat(text)
            return day if day.year >= _FIRST_YEAR else None
        case _ if kind == TIMESTAMP_NTZ:
            moment = dt.datetime.fromisoformat(_six_digits(text))
            return moment if moment.year >= _FIRST_YEAR and moment.tzinfo is None else None
        case _ if kind == TIMESTAMP:
            return _instant(text, zone)
    return None


def _six_digits(text: str) -> str:
    """Return a time with microseconds: Python 3.10 reads no other fractions."""
    seconds, dot, fraction = text.partition(".")
    if not dot:
        return seconds
    if not fraction.isdigit() or len(fraction) > len("000000"):
        raise ValueError(text)
    return f"{seconds}.{fraction.ljust(6, '0')}"


def _instant(text: str, zone: Zone) -> dt.datetime | None:
    """Return a timestamp printed in a zone; None in an hour that comes twice, or never."""
    found = _TIMESTAMP.fullmatch(text)
    there = zone() if found is not None and int(found[1]) >= _FIRST_YEAR else None
    if there is None:
        return None
    local = dt.datetime.fromisoformat(_six_digits(text)).replace(tzinfo=there)
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        return None
    return local.astimezone(dt.timezone.utc)


def zone_in(text: str) -> dt.tzinfo | None:
    """Return the zone in what Java prints of a ``TimeZone``; None if this machine lacks it.

    >>> zone_in('sun.util.calendar.ZoneInfo[id="Etc/UTC",offset=0]').key
    'Etc/UTC'
    """
    found = re.search(r'id="([^"]+)"', text)
    try:
        return None if found is None else zoneinfo.ZoneInfo(found[1])
    except (ValueError, zoneinfo.ZoneInfoNotFoundError):
        return None
