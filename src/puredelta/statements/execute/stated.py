"""CREATE TABLE and INSERT as text: their meaning, and the rows of the queries inside.

In a classic session Spark's parser in the JVM reads the text. Over Connect that parser is on the
server: it accepts the text before the client reads the clauses here, in the values of a classic
session. Types and constants are the server's (`ServerValues`). Queries stay text, with the common
table expressions and the FROM that are written before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.schema.sql_lexer import TokenKind, keywords, tokenize
from puredelta.spark.jvm.statement_plans import (
    InsertInto,
    SeveralInserts,
    StatedColumn,
    StatedTable,
)
from puredelta.spark.resolve.sql_text import require_parsable
from puredelta.spark.session.names import quote
from puredelta.statements.parse.changes_clause import without_changes_clauses
from puredelta.statements.parse.column_text import (
    ColumnDefinition,
    read_column,
    read_options,
    read_properties,
)
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.definitions import INSERTS
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.literals import accept_text, read_text
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import SparkParsedStatement, TableInText
from puredelta.statements.parse.table_name import TableName


class ServerValues(Protocol):
    """Parts of a text that only the server can read."""

    def types(self, texts: Sequence[str]) -> Sequence[T.DataType]:
        """Return the types that texts mean; ``char(n)`` and ``varchar(n)`` stay as they are."""

    def constant(self, text: str) -> str | None:
        """Return a constant as text, as Spark casts it; None for NULL."""


def read_stated(
    text: str, statement: SparkParsedStatement, values: ServerValues
) -> StatedTable | InsertInto | SeveralInserts | None:
    """Return what a text says; ``statement`` is the same text, of which the targets were read.

    None if a target's name is not known here.

    Raises:
        UnsupportedError: the server's parser knows a clause that is not known here.
        SqlSyntaxError: the text is none that the server's parser takes.
    """
    if not all(isinstance(target.name, TableName) for target in statement.targets):
        return None
    if statement.defines:
        return _read_table(text, statement, values)
    inserts = _read_inserts(text, statement, values)
    return inserts[0] if len(inserts) == 1 else SeveralInserts(inserts)


# --- CREATE and REPLACE ---------------------------------------------------------------------

_CONSTRAINTS = (("CHECK", "("), ("PRIMARY", "KEY"), ("UNIQUE",), ("FOREIGN", "KEY"))
_TABLE_CONSTRAINTS = (("CHECK", "("), ("PRIMARY", "KEY"), ("UNIQUE", "("), ("FOREIGN", "KEY"))


@dataclass(slots=True)
class _Clauses:
    """What has been read of a CREATE TABLE so far."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    provider: str | None = None
    partition_by: list[str] = field(default_factory=list)
    cluster_by: tuple[tuple[str, ...], ...] | None = None
    other_layout: str | None = None
    buckets: bool = False
    location: str | None = None
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    has_constraints: bool = False
    query: str | None = None


def _read_table(text: str, statement: SparkParsedStatement, values: ServerValues) -> StatedTable:
    cursor = Cursor(text)
    creates = cursor.accept("CREATE")
    replaces = cursor.accept("OR", "REPLACE") or (not creates and cursor.accept("REPLACE"))
    cursor.accept("EXTERNAL")
    cursor.expect("TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _skip_target(cursor, statement.targets[0])
    said = _Clauses()
    if cursor.sees("(") and not _begins_query(cursor, 1):
        cursor.items_in_brackets(lambda at: _read_element(at, said), optional=False)
    while not (cursor.is_done or cursor.sees(";")):
        if not _read_clause(cursor, said):
            cursor.accept("AS")
            said.query = text[cursor.start :]
            break
    types = values.types([column.data_type for column in said.columns])
    columns = zip(said.columns, types, strict=True)
    return StatedTable(
        name=name,
        provider=said.provider,
        creates=creates,
        replaces=replaces,
        if_not_exists=if_not_exists,
        columns=tuple(_stated(column, kind) for column, kind in columns),
        partition_by=tuple(said.partition_by),
        cluster_by=said.cluster_by,
        other_layout=said.other_layout,
        buckets=said.buckets,
        location=said.location,
        comment=said.comment,
        properties=said.properties,
        options=said.options,
        has_constraints=said.has_constraints,
        query=said.query,
    )


def _stated(column: ColumnDefinition, kind: T.DataType) -> StatedColumn:
    return StatedColumn(
        name=column.path[0],
        type=kind,
        nullable=column.nullable,
        comment=column.comment,
        default=column.default,
        generated_as=column.generated_as,
    )


def _read_element(cursor: Cursor, said: _Clauses) -> None:
    """Read a column, or a constraint between columns."""
    is_named = cursor.sees("CONSTRAINT") and any(
        cursor.sees(*words, ahead=2) for words in _TABLE_CONSTRAINTS
    )
    if is_named or any(cursor.sees(*words) for words in _TABLE_CONSTRAINTS):
        said.has_constraints = True
        cursor.skip_to(",", ")")
        return
    said.columns.append(read_column(cursor, may_be_generated=True))
    if cursor.sees("CONSTRAINT") or any(cursor.sees(*words) for words in _COLUMN_CONSTRAINTS):
        said.has_constraints = True
        cursor.skip_to(",", ")")


_COLUMN_CONSTRAINTS = (*_CONSTRAINTS, ("REFERENCES",))


def _read_clause(cursor: Cursor, said: _Clauses) -> bool:
    """Read the clause that comes next; False if none does, but the query."""
    if cursor.accept("USING"):
        said.provider = ".".join(cursor.name())
    elif cursor.accept("OPTIONS"):
        said.options = read_options(cursor)
    elif cursor.accept("TBLPROPERTIES"):
        said.properties = read_properties(cursor)
    elif cursor.accept("PARTITIONED", "BY"):
        cursor.items_in_brackets(lambda at: _read_partition(at, said), optional=False)
    elif cursor.accept("CLUSTER", "BY"):
        names = cursor.items_in_brackets(lambda at: at.name(), optional=False)
        said.cluster_by = tuple(names)
    elif cursor.sees("CLUSTERED", "BY"):
        start = cursor.start
        while not (cursor.is_done or cursor.accept("BUCKETS")):
            cursor.skip()
        said.buckets, said.other_layout = True, cursor.text[start : cursor.end]
    elif cursor.accept("LOCATION"):
        said.location = read_text(cursor)
    elif cursor.accept("COMMENT"):
        said.comment = read_text(cursor)
    elif cursor.sees("AS") or _begins_query(cursor, 0):
        return False
    else:
        raise _unknown_clause(cursor)
    return True


def _read_partition(cursor: Cursor, said: _Clauses) -> None:
    """Read a column's name, a column with its type, or another transform."""
    start = cursor.position
    after = cursor.name_length()
    if cursor.sees(",", ahead=after) or cursor.sees(")", ahead=after):
        name = cursor.name()
        if len(name) == 1:
            said.partition_by.append(name[0])
        else:
            said.other_layout = cursor.between(start)
    elif cursor.sees("(", ahead=1):
        said.buckets = said.buckets or cursor.sees("BUCKET")
        cursor.skip()
        cursor.group()
        said.other_layout = cursor.between(start)
    else:
        column = read_column(cursor)
        said.columns.append(column)
        said.partition_by.append(column.path[0])


# --- INSERT ---------------------------------------------------------------------------------

_QUERIES = keywords("SELECT WITH FROM VALUES TABLE MAP REDUCE")


def _begins_query(cursor: Cursor, ahead: int) -> bool:
    """Tell whether a query begins some tokens from here, brackets around it included."""
    while cursor.sees("(", ahead=ahead):
        ahead += 1
    token = cursor.peek(ahead)
    is_word = token is not None and token.kind is TokenKind.WORD
    after = cursor.peek(ahead + 1)
    is_name = after is not None and any(map(after.means, (",", ")", ".")))
    return is_word and not is_name and token is not None and token.text.upper() in _QUERIES


def _read_inserts(
    text: str, statement: SparkParsedStatement, values: ServerValues
) -> tuple[InsertInto, ...]:
    cursor = Cursor(text)
    while cursor.start < statement.start:
        cursor.skip()
    before = text[: statement.start]
    found = []
    for target in statement.targets:
        insert = _read_insert(cursor, target, values)
        start, end = cursor.start, len(text)
        if target is not statement.targets[-1]:
            cursor.skip_to("INSERT")
            end = cursor.start
        query = text[start:end]
        found.append(replace(insert, query=f"{before}{query}"))
    return tuple(found)


def _read_insert(cursor: Cursor, target: TableInText, values: ServerValues) -> InsertInto:
    """Read an INSERT up to its query."""
    words = next(words for words in INSERTS if cursor.accept(*words))
    cursor.accept("TABLE")
    said: dict[str, Any] = {
        "name": _skip_target(cursor, target),
        "query": "",
        "by_name": False,
        "evolves": "EVOLUTION" in words,
        "overwrite": "OVERWRITE" in words,
    }
    if cursor.sees("WITH", "("):
        cursor.skip()
        said["options"] = read_options(cursor)
    if cursor.accept("PARTITION"):
        parts = cursor.items_in_brackets(_partition_value, optional=False)
        said["open_partition"] = tuple(name for name, value in parts if value is None)
        said["partition"] = {
            name: _constant(value, values) for name, value in parts if value is not None
        }
    said["if_not_exists"] = cursor.accept("IF", "NOT", "EXISTS")
    said["by_name"] = cursor.accept("BY", "NAME")
    if _sees_columns(cursor):
        said["columns"] = tuple(
            cursor.items_in_brackets(lambda at: at.identifier(), optional=False)
        )
    if cursor.accept("REPLACE", "WHERE"):
        said["overwrite"] = False
        where = read_expression(cursor, lambda at: _begins_query(at, 0))
        if _expects_more(where):
            raise InvalidRequestError(Message.OVERWRITE_BY_SUBQUERY)
        said["replace_where"] = where
    elif cursor.sees("REPLACE") or not _begins_query(cursor, 0):
        said["beyond"] = "REPLACE ON or REPLACE USING"
    return InsertInto(**said)


_BEFORE_OPERAND = keywords("IN EXISTS NOT AND OR ANY SOME ALL LIKE BETWEEN")


def _expects_more(condition: str) -> bool:
    """Tell whether a condition has no end, so that the query after it belongs to it."""
    *_, last = tokenize(condition)
    if last.kind is TokenKind.SYMBOL:
        return not (last.means(")") or last.means("]"))
    return last.kind is TokenKind.WORD and last.text.upper() in _BEFORE_OPERAND


def _sees_columns(cursor: Cursor) -> bool:
    """Tell whether a list of columns comes next, and no query in brackets."""
    if not cursor.sees("("):
        return False
    ahead, depth = 1, 1
    while depth and (token := cursor.peek(ahead)) is not None:
        depth += token.means("(") - token.means(")")
        ahead += 1
    return _begins_query(cursor, ahead) or cursor.sees("REPLACE", ahead=ahead)


def _partition_value(cursor: Cursor) -> tuple[str, str | None]:
    """Read ``column`` or ``column = constant``; return the constant's text."""
    name = cursor.identifier()
    if not (cursor.accept("=") or cursor.accept("==")):
        return name, None
    return name, read_expression(cursor, lambda at: at.sees(","))


def _constant(text: str, values: ServerValues) -> str | None:
    cursor = Cursor(text)
    if (plain := accept_text(cursor)) is not None and cursor.is_done:
        return plain
    return text if text.isdecimal() and str(int(text)) == text else values.constant(text)


def _skip_target(cursor: Cursor, target: TableInText) -> tuple[str, ...]:
    name = target.name
    assert isinstance(name, TableName)  # noqa: S101 - read_stated has looked
    while cursor.start < target.end and not cursor.is_done:
        cursor.skip()
    return name.parts


def _unknown_clause(cursor: Cursor) -> UnsupportedError:
    return UnsupportedError(Message.OPERATION_NOT_ALLOWED_CLAUSE, clause=cursor.word)


def read_by_client(
    spark: SparkSession, text: str
) -> StatedTable | InsertInto | SeveralInserts | None:
    """Return what a text says whose validity the parser of a Connect server judges."""
    require_parsable(spark, without_changes_clauses(text))
    statement = parse(text)
    if not isinstance(statement, SparkParsedStatement):
        return None
    return read_stated(text, statement, _OfServer(spark))


@dataclass(frozen=True, slots=True)
class _OfServer:
    """Types and constants as the server reads them."""

    spark: SparkSession

    def types(self, texts: Sequence[str]) -> Sequence[T.DataType]:
        if not texts:
            return ()
        named = (f"{quote(f'c{n}')} {text}" for n, text in enumerate(texts))
        schema = T.DataType.fromDDL(", ".join(named))
        assert isinstance(schema, T.StructType)  # noqa: S101 - names and types are no other type
        return [found.dataType for found in schema.fields]

    def constant(self, text: str) -> str | None:
        [row] = self.spark.sql(f"SELECT string({text}) AS value").collect()
        found: str | None = row["value"]
        return found
