"""``char(n)`` and ``varchar(n)`` in a schema: type string, with the limits in metadata (M-106).

The declared type is kept as text in the field's metadata. It describes a whole column, nested types
included: ``struct<a:char(3),b:array<varchar(2)>>``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from typing_extensions import assert_never

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.schema.sql_lexer import BACK_TICKED, without_back_ticks

_LIMIT = re.compile(r"(var)?char\((\d{1,10})\)", re.IGNORECASE)
_NAME = re.compile(rf"({BACK_TICKED}|[^:`]+):")
_OTHER = re.compile(r"[^<>,()]*(?:\([^()]*\))?")


@dataclass(frozen=True, slots=True)
class Limited:
    """Text of at most ``length`` characters."""

    length: int
    is_padded: bool
    """Whether shorter text counts as padded with blanks: ``char(n)``."""


@dataclass(frozen=True, slots=True)
class LimitedStruct:
    """A struct with limited text inside."""

    fields: tuple[tuple[str, Limits], ...]


@dataclass(frozen=True, slots=True)
class LimitedArray:
    """An array of limited text."""

    element: Limits


@dataclass(frozen=True, slots=True)
class LimitedMap:
    """A map with limited text as keys or values."""

    key: Limits
    value: Limits


Limits: TypeAlias = Limited | LimitedStruct | LimitedArray | LimitedMap | None
"""``None`` means that no text is limited."""


def parse_limits(text: str) -> Limits:
    """Read the description of a column.

    >>> parse_limits("array<varchar(2)>")
    LimitedArray(element=Limited(length=2, is_padded=False))

    Raises:
        CorruptTableError: the text is no such description.
    """
    parser = _Parser(text)
    try:
        limits = parser.read()
    except RecursionError:
        raise parser.error() from None
    if parser.position != len(text):
        raise parser.error()
    return limits


def limits_of(value: object) -> Limits:
    """Read a value of a column's metadata that any engine may have written: others limit nothing.

    >>> limits_of("char(3)")
    Limited(length=3, is_padded=True)
    >>> limits_of("array<char(3)"), limits_of(3), limits_of(None)
    (None, None, None)
    """
    try:
        return parse_limits(value) if isinstance(value, str) else None
    except CorruptTableError:
        return None


def has_padded(limits: Limits) -> bool:
    """Return whether there is a ``char(n)`` anywhere."""
    match limits:
        case None:
            return False
        case Limited():
            return limits.is_padded
        case LimitedStruct(fields):
            return any(has_padded(kind) for _, kind in fields)
        case LimitedArray(element):
            return has_padded(element)
        case LimitedMap(key, value):
            return has_padded(key) or has_padded(value)
        case _:
            assert_never(limits)


class _Parser:
    """Parses one type at a time from the left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = 0

    def read(self) -> Limits:
        if (limit := _LIMIT.match(self._text, self.position)) is not None:
            self.position = limit.end()
            return Limited(int(limit[2]), is_padded=limit[1] is None)
        if self._accept("array<"):
            element = self.read()
            self._expect(">")
            return None if element is None else LimitedArray(element)
        if self._accept("map<"):
            key = self.read()
            self._expect(",")
            value = self.read()
            self._expect(">")
            return None if key is None and value is None else LimitedMap(key, value)
        if self._accept("struct<"):
            return self._struct()
        other = _OTHER.match(self._text, self.position)
        self.position = self.position if other is None else other.end()
        return None

    def error(self) -> CorruptTableError:
        return CorruptTableError(
            Message.LOG_CORRUPTED_CHAR_VARCHAR, position=self.position, type=self._text
        )

    def _struct(self) -> Limits:
        fields: list[tuple[str, Limits]] = []
        while not self._accept(">"):
            if fields:
                self._expect(",")
            name = _NAME.match(self._text, self.position)
            if name is None:
                raise self.error()
            self.position = name.end()
            text = without_back_ticks(name[1]) if name[1].startswith("`") else name[1]
            fields.append((text, self.read()))
        limited = tuple((name, kind) for name, kind in fields if kind is not None)
        return LimitedStruct(limited) if limited else None

    def _accept(self, token: str) -> bool:
        end = self.position + len(token)
        if self._text[self.position : end].lower() != token:
            return False
        self.position = end
        return True

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise self.error()
