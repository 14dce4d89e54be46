"""``CREATE TABLE ... SHALLOW CLONE source`` and ``CREATE TABLE ... LIKE source``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.property_text import read_properties
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import TableReference
from puredelta.sql.text.text_literal import accept_text, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """``VERSION AS OF n`` or ``TIMESTAMP AS OF 'time'``; one of the two."""

    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneStatement:
    """A table over the files of another one."""

    target: TableReference
    source: TableReference
    shallow: bool
    creates: bool
    """Whether there may be no table at the target."""
    replaces: bool
    """Whether there may be one."""
    if_not_exists: bool
    moment: Moment | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeStatement:
    """A table without rows that is defined as another one."""

    target: TableReference
    source: TableReference
    if_not_exists: bool
    provider: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


CopyStatement: TypeAlias = CloneStatement | LikeStatement

_COPIES = re.compile(r"\b(?:like|clone)\b", re.IGNORECASE)


def may_copy(text: str) -> bool:
    """Tell from a glance whether a text could be one of these statements."""
    return _COPIES.search(text) is not None and _accept_head(Cursor(text)) is not None


def parse_copy(text: str) -> CopyStatement | None:
    """Read a statement; None if it makes a table in another way.

    Raises:
        SqlSyntaxError: it goes on as something else. Of LIKE only what is ours is known:
            None for ``STORED AS`` and ``ROW FORMAT``.
    """
    cursor = Cursor(text)
    head = _accept_head(cursor)
    if head is None:
        return None
    creates, replaces = head
    if_not_exists = not replaces and cursor.accept("IF", "NOT", "EXISTS")
    try:
        target = cursor.table()
    except SqlSyntaxError:
        return None  # Spark's own parser says it best
    if not replaces and cursor.accept("LIKE"):
        return _like(cursor, target, if_not_exists=if_not_exists)
    shallow = cursor.accept("SHALLOW", "CLONE")
    if not shallow and not cursor.accept("DEEP", "CLONE") and not cursor.accept("CLONE"):
        return None
    source, moment = cursor.table(), accept_moment(cursor)
    properties = read_properties(cursor) if cursor.accept("TBLPROPERTIES") else {}
    location = read_text(cursor) if cursor.accept("LOCATION") else None
    cursor.expect_end()
    return CloneStatement(
        target=target,
        source=source,
        shallow=shallow,
        creates=creates,
        replaces=replaces,
        if_not_exists=if_not_exists,
        moment=moment,
        properties=properties,
        location=location,
    )


def _accept_head(cursor: Cursor) -> tuple[bool, bool] | None:
    """Step over the words up to TABLE; return whether it creates, and whether it replaces."""
    creates = cursor.accept("CREATE")
    replaces = cursor.accept("OR", "REPLACE") if creates else cursor.accept("REPLACE")
    return (creates, replaces) if (creates or replaces) and cursor.accept("TABLE") else None


def accept_moment(cursor: Cursor) -> Moment | None:
    """Step over ``[FOR] VERSION AS OF n`` or ``[FOR] TIMESTAMP AS OF 'time'``.

    Raises:
        SqlSyntaxError: there is no number or text behind it.
    """
    starts_with_for = cursor.accept("FOR")
    for word in ("VERSION", "SYSTEM_VERSION"):
        if cursor.accept(word, "AS", "OF"):
            return Moment(version=_version(cursor))
    for word in ("TIMESTAMP", "SYSTEM_TIME"):
        if cursor.accept(word, "AS", "OF"):
            return Moment(timestamp=read_text(cursor, expected="a time in quotes"))
    if starts_with_for:
        raise cursor.error(expected="VERSION AS OF or TIMESTAMP AS OF")
    return None


def _version(cursor: Cursor) -> int:
    error = cursor.error(expected="a version number")
    text = accept_text(cursor)
    if text is None:
        token = cursor.peek()
        text = "" if token is None else token.text
        cursor.skip()
    if not text.isdecimal():
        raise error
    return int(text)


def _like(cursor: Cursor, target: TableReference, *, if_not_exists: bool) -> LikeStatement | None:
    source = cursor.table()
    provider, location = None, None
    properties: Mapping[str, str] = {}
    while not (cursor.is_done or cursor.sees(";")):
        if provider is None and cursor.accept("USING"):
            provider = cursor.identifier()
        elif location is None and cursor.accept("LOCATION"):
            location = read_text(cursor)
        elif not properties and cursor.accept("TBLPROPERTIES"):
            properties = read_properties(cursor)
        else:
            return None
    cursor.expect_end()
    return LikeStatement(
        target=target,
        source=source,
        if_not_exists=if_not_exists,
        provider=provider,
        properties=properties,
        location=location,
    )
