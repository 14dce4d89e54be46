"""Column names as text: parsed, quoted with back-ticks, and as messages show them.

The rules are Spark's for attribute names (``UnresolvedAttribute.parseAttributeName``), not
those of SQL expressions: ``lower(a)`` is one odd name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from puredelta.errors import ErrorCode, InvalidRequestError

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]*)")
_PLAIN = re.compile(r"(?!\d+\Z)[a-zA-Z0-9_]+")


def parse_name(text: str) -> tuple[str, ...]:
    """Split ``a.`b.c`.d`` into its parts.

    Raises:
        InvalidRequestError: a back-tick stands where none may.

    Examples:
        >>> parse_name("t.`a.b`")
        ('t', 'a.b')
    """
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None:  # cannot be: the pattern matches the empty text
            break
        quoted, plain = match.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            break
        at += 1
    raise InvalidRequestError(
        f"Syntax error in the column name {text!r}: back-ticks come in pairs and quote a whole "
        "part; double one that is part of the name.",
        code=ErrorCode.INVALID_ATTRIBUTE_NAME_SYNTAX,
        attribute_name=text,
    )


def quote(part: str) -> str:
    """Return one part in back-ticks."""
    return "`" + part.replace("`", "``") + "`"


def quote_name(parts: Iterable[str]) -> str:
    """Return ``a.b.c`` with every part in back-ticks: safe in any position."""
    return ".".join(quote(p) for p in parts)


def display_name(parts: Iterable[str]) -> str:
    """Return ``a.b.c`` with back-ticks only where they are needed, as messages show names."""
    return ".".join(p if _PLAIN.fullmatch(p) else quote(p) for p in parts)
