"""Parsers of statements about catalogs, schemas and the entries of tables: USE, SHOW, DROP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.statements.parse.column_text import read_properties
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.definitions import read_alter, read_create
from puredelta.statements.parse.literals import accept_text, read_text
from puredelta.statements.parse.maintenance import accept_in, read_describe, read_show
from puredelta.statements.parse.statement import (
    CreateSchema,
    DescribeSchema,
    DropNamedStatement,
    DropPathStatement,
    DropSchema,
    Rejected,
    RenameTable,
    ShowCatalogs,
    ShowCurrent,
    ShowSchemas,
    ShowTables,
    Statement,
    UseNamespace,
    read_or_reject,
)
from puredelta.statements.parse.table_name import TableName, read_table

Named = TypeVar("Named")

_SCHEMA = keywords("SCHEMA DATABASE NAMESPACE")
_SCHEMAS = keywords("SCHEMAS DATABASES NAMESPACES")


def read_use(cursor: Cursor) -> UseNamespace | None:
    """Read ``USE [CATALOG | SCHEMA] name``; ``USE catalog`` is of a schema that has this name."""
    cursor.expect("USE")
    has_kind = cursor.peek(1) is not None and not cursor.sees(".", ahead=1)
    is_catalog = None
    if has_kind and cursor.accept("CATALOG"):
        is_catalog = True
    elif has_kind and _accept_any(cursor, _SCHEMA):
        is_catalog = False
    return _to_end(cursor, lambda at: UseNamespace(parts=at.name(), is_catalog=is_catalog))


def read_set(cursor: Cursor) -> UseNamespace | None:
    """Read ``SET CATALOG name``; None for any other SET."""
    cursor.expect("SET")
    if not cursor.accept("CATALOG") or cursor.sees("=") or cursor.is_done:
        return None

    def read(at: Cursor) -> UseNamespace:
        text = accept_text(at)
        return UseNamespace(parts=(at.identifier() if text is None else text,), is_catalog=True)

    return _to_end(cursor, read)


def read_show_any(cursor: Cursor) -> Statement | None:
    """Read a SHOW of a table, of tables, schemas or catalogs; None for any other."""
    cursor.expect("SHOW")
    if cursor.accept("TABLES"):
        namespace = cursor.name() if accept_in(cursor) else ()
        return _to_end(cursor, lambda at: ShowTables(namespace=namespace, pattern=_pattern(at)))
    if _accept_any(cursor, _SCHEMAS):
        namespace = cursor.name() if accept_in(cursor) else ()
        return _to_end(cursor, lambda at: ShowSchemas(namespace=namespace, pattern=_pattern(at)))
    if cursor.accept("CATALOGS"):
        return _to_end(cursor, lambda at: ShowCatalogs(pattern=_pattern(at)))
    if cursor.accept("CURRENT"):
        return ShowCurrent() if _accept_any(cursor, _SCHEMA) else None
    statement = read_show(cursor)
    if statement is not None:
        cursor.expect_end()
    return statement


def read_describe_any(cursor: Cursor) -> Statement | None:
    """Read DESCRIBE of a schema, or of a table as `read_describe`."""
    if cursor.peek(2) is not None and cursor.peek(1) is not None:
        ahead = cursor.peek(1)
        if ahead is not None and ahead.text.upper() in _SCHEMA and not cursor.sees(".", ahead=2):
            cursor.skip(2)
            extended = cursor.peek(1) is not None and cursor.accept("EXTENDED")
            return _to_end(
                cursor, lambda at: DescribeSchema(namespace=at.name(), extended=extended)
            )
    return read_describe(cursor)


def read_create_any(cursor: Cursor) -> Statement | None:
    """Read ``CREATE SCHEMA``, or as `read_create`."""
    if cursor.word != "CREATE" or not any(cursor.sees(word, ahead=1) for word in _SCHEMA):
        return read_create(cursor)
    cursor.skip(2)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    namespace = cursor.name()
    comment, location, properties = "", "", {}
    while not (cursor.is_done or cursor.sees(";")):
        if cursor.accept("COMMENT"):
            comment = read_text(cursor)
        elif cursor.accept("LOCATION"):
            location = read_text(cursor)
        elif cursor.accept("WITH", "DBPROPERTIES") or cursor.accept("WITH", "PROPERTIES"):
            properties = dict(read_properties(cursor))
        else:
            return None
    return CreateSchema(
        namespace=namespace,
        if_not_exists=if_not_exists,
        comment=comment,
        location=location,
        properties=properties,
    )


def read_alter_any(cursor: Cursor) -> Statement | None:
    """Read ``ALTER TABLE table RENAME TO name``, or as `read_alter`."""
    start = cursor.position
    if cursor.accept("ALTER", "TABLE"):
        table = read_table(cursor)
        if cursor.accept("RENAME", "TO"):
            return _to_end(cursor, lambda at: RenameTable(table=table, new_name=at.name()))
    cursor.position = start
    return read_alter(cursor)


def read_drop(
    cursor: Cursor,
) -> DropPathStatement | DropNamedStatement | DropSchema | Rejected | None:
    """Read ``DROP TABLE`` and ``DROP SCHEMA``; None for any other object."""
    cursor.expect("DROP")
    if _accept_any(cursor, _SCHEMA):
        if_exists = cursor.accept("IF", "EXISTS")
        namespace = cursor.name()
        cascade = not cursor.accept("RESTRICT") and cursor.accept("CASCADE")
        made = DropSchema(namespace=namespace, if_exists=if_exists, cascade=cascade)
        return _to_end(cursor, lambda _: made)
    if not cursor.accept("TABLE"):
        return None
    if_exists = cursor.accept("IF", "EXISTS")
    table = read_table(cursor)
    if not isinstance(table, TableName):
        return None
    cursor.accept("PURGE")
    if table.path is not None:
        statement = DropPathStatement(table=table, path=table.path, if_exists=if_exists)
        return read_or_reject(cursor, lambda _: statement, table=table)
    named = DropNamedStatement(table=table, if_exists=if_exists)
    return read_or_reject(cursor, lambda _: named, table=table)


def _accept_any(cursor: Cursor, words: frozenset[str]) -> bool:
    if cursor.word not in words:
        return False
    cursor.skip()
    return True


def _pattern(cursor: Cursor) -> str:
    cursor.accept("LIKE")
    return accept_text(cursor) or "*"


def _to_end(cursor: Cursor, read: Callable[[Cursor], Named]) -> Named:
    """Return what ``read`` makes of the rest of the text."""
    made = read(cursor)
    cursor.expect_end()
    return made
