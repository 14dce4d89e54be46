"""Parsers of maintenance statements, SHOW and DESCRIBE."""

from __future__ import annotations

import re
from dataclasses import replace

from puredelta.commands.optimize import OptimizeSpec
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.sql_lexer import TokenKind, keywords
from puredelta.statements.parse.column_text import read_property_keys
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.statement import (
    ConvertStatement,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    GenerateStatement,
    OptimizeStatement,
    Rejected,
    ReorgStatement,
    RestoreStatement,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    ShowStatement,
    TruncateStatement,
    VacuumStatement,
    read_or_reject,
)
from puredelta.statements.parse.table_name import (
    TableName,
    TableReference,
    accept_time_travel,
    read_table,
    read_table_argument,
)


def read_convert(cursor: Cursor) -> ConvertStatement:
    """Read ``CONVERT TO DELTA source [NO STATISTICS] [PARTITIONED BY (...)] [DRY RUN|VERIFY]``."""
    cursor.expect("TO", "DELTA")
    source = read_table(cursor)
    if not isinstance(source, TableName):
        raise Cursor(cursor.text).error(expected="CONVERT TO DELTA and a name")
    collect_stats = not cursor.accept("NO", "STATISTICS")
    partition_schema = None
    if cursor.accept("PARTITIONED", "BY"):
        partition_schema = cursor.group()
        if not partition_schema:
            raise cursor.error(expected="names and types of columns before it")
    if collect_stats and cursor.sees("NO"):
        raise cursor.error(expected="NO STATISTICS before PARTITIONED BY")
    dry_run = cursor.accept("DRY", "RUN")
    return ConvertStatement(
        source=source,
        partition_schema=partition_schema,
        collect_stats=collect_stats,
        dry_run=dry_run,
        verify=not dry_run and cursor.accept("VERIFY"),
    )


def read_optimize(cursor: Cursor) -> OptimizeStatement:
    """Read ``OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY columns]``."""
    table = read_table_argument(cursor)
    full = cursor.accept("FULL")
    predicates: tuple[str, ...] = ()
    if cursor.accept("WHERE"):
        predicates = (read_expression(cursor, lambda rest: rest.sees("ZORDER", "BY")),)
    columns: list[str] = []
    if cursor.accept("ZORDER", "BY"):
        columns = cursor.items_in_brackets(Cursor.column, optional=True)
    spec = OptimizeSpec(predicates=predicates, z_order_by=tuple(columns), full=full)
    return OptimizeStatement(table=table, spec=spec)


def read_reorg(cursor: Cursor) -> ReorgStatement:
    """Read ``REORG TABLE table [WHERE condition] APPLY (PURGE | UPGRADE UNIFORM
    (ICEBERG_COMPAT_VERSION = n))``.
    """
    cursor.expect("TABLE")
    table = read_table_argument(cursor)
    predicates: tuple[str, ...] = ()
    if cursor.accept("WHERE"):
        predicates = (read_expression(cursor, lambda rest: rest.sees("APPLY")),)
    cursor.expect("APPLY")
    mode = cursor.group()
    if upgrade := _UPGRADE.fullmatch(mode):
        if predicates:
            raise cursor.error(expected="no WHERE: UPGRADE UNIFORM is for whole tables")
        return ReorgStatement(table=table, iceberg_compat=int(upgrade[1]))
    if mode.strip().upper() != "PURGE":
        raise cursor.error(
            expected="(PURGE) or (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)) before it"
        )
    return ReorgStatement(table=table, predicates=predicates)


_UPGRADE = re.compile(
    r"\s*UPGRADE\s+UNIFORM\s*\(\s*ICEBERG_COMPAT_VERSION\s*=\s*(\d+)\s*\)\s*", re.IGNORECASE
)


def read_vacuum(cursor: Cursor) -> VacuumStatement:
    """Read ``VACUUM table [LITE | FULL] [USING INVENTORY table | (query)] [RETAIN n HOURS]
    [DRY RUN]``, the clauses in any order, each at most once.

    Raises:
        InvalidRequestError: LITE, which lists nothing, with an inventory.
    """
    statement = VacuumStatement(table=read_table_argument(cursor))
    seen: set[str] = set()
    while not (cursor.is_done or cursor.sees(";")):
        clause = next((c for c in _VACUUM_CLAUSES if cursor.sees(*c.split())), None)
        kind = _VACUUM_CLAUSES.get(clause or "")
        if clause is None or kind is None or kind in seen:
            raise cursor.error(expected=_EXPECTED)
        cursor.expect(*clause.split())
        seen.add(kind)
        statement = _with_vacuum_clause(statement, clause, cursor)
    if statement.lite and statement.inventory is not None:
        raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_INVENTORY)
    return statement


_EXPECTED = "LITE, FULL, USING INVENTORY, RETAIN n HOURS or DRY RUN, each once"
_VACUUM_CLAUSES = {
    "LITE": "type",
    "FULL": "type",
    "USING INVENTORY": "inventory",
    "RETAIN": "retention",
    "DRY RUN": "dry run",
}


def _with_vacuum_clause(statement: VacuumStatement, clause: str, cursor: Cursor) -> VacuumStatement:
    match clause:
        case "RETAIN":
            hours = float(cursor.number())
            cursor.expect("HOURS")
            return replace(statement, retention_hours=hours)
        case "DRY RUN":
            return replace(statement, dry_run=True)
        case "USING INVENTORY":
            if cursor.sees("("):
                return replace(statement, inventory=cursor.group())
            start = cursor.position
            cursor.name()
            return replace(statement, inventory=f"TABLE {cursor.between(start)}")
        case _:
            return replace(statement, lite=clause == "LITE")


def read_restore(cursor: Cursor) -> RestoreStatement:
    """Read ``RESTORE [TABLE] table [TO] VERSION AS OF n`` or ``TIMESTAMP AS OF 'time'``."""
    cursor.accept("TABLE")
    table = read_table_argument(cursor)
    cursor.accept("TO")
    state = accept_time_travel(cursor)
    if state is None:
        raise cursor.error(expected="VERSION AS OF or TIMESTAMP AS OF")
    return RestoreStatement(table=table, state=state)


def read_generate(cursor: Cursor) -> GenerateStatement:
    """Read ``GENERATE mode FOR TABLE table``."""
    mode = cursor.identifier()
    cursor.expect("FOR", "TABLE")
    return GenerateStatement(table=read_table_argument(cursor), mode=mode)


def read_truncate(cursor: Cursor) -> TruncateStatement | Rejected | None:
    """Read ``TRUNCATE TABLE table``; the partitions of a Delta table cannot be named."""
    if not cursor.accept("TRUNCATE", "TABLE"):
        return None
    table = read_table(cursor)
    return read_or_reject(cursor, lambda rest: _truncate(rest, table), table=table)


def _truncate(cursor: Cursor, table: TableReference) -> TruncateStatement:
    if cursor.sees("PARTITION"):
        raise InvalidRequestError(Message.TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED)
    return TruncateStatement(table=table)


def read_show(cursor: Cursor) -> ShowStatement | None:
    """Read the part of a SHOW of one table after this word; None for any other."""
    if cursor.accept("TBLPROPERTIES"):
        table = read_table(cursor)
        key = ".".join(read_property_keys(cursor)) if cursor.sees("(") else None
        return ShowProperties(table=table, key=key)
    if cursor.accept("CREATE", "TABLE"):
        statement = ShowCreate(table=read_table(cursor))
        cursor.accept("AS", "SERDE")
        return statement
    if cursor.accept("PARTITIONS"):
        table = read_table(cursor)
        values: list[tuple[str, str]] = []
        if cursor.accept("PARTITION"):
            values = cursor.items_in_brackets(_partition_value, optional=False)
            if len({name for name, _ in values}) < len(values):
                raise cursor.error(expected="each column once")
        return ShowPartitions(table=table, values=tuple(values))
    if not cursor.accept("COLUMNS") or not accept_in(cursor):
        return None
    table = read_table(cursor)
    return ShowColumns(table=table, database=cursor.name() if accept_in(cursor) else ())


def _partition_value(cursor: Cursor) -> tuple[str, str]:
    """Read ``column = constant``: a number, a text, a typed text, NULL or a truth value."""
    name = cursor.identifier()
    if not (cursor.accept("=") or cursor.accept("==")):
        raise cursor.error(expected="=")
    start = cursor.position
    if cursor.accept("-"):
        cursor.number()
    elif not any(cursor.accept(word) for word in ("NULL", "TRUE", "FALSE")):
        one, two = cursor.peek(), cursor.peek(1)
        if one is not None and one.kind is TokenKind.WORD:  # DATE '2025-01-31'
            cursor.skip()
            one = two if two is not None and two.kind in _TEXTS else None
        if one is None or one.kind not in (TokenKind.NUMBER, *_TEXTS):
            raise cursor.error(expected="a constant")
        cursor.skip()
    return name, cursor.between(start)


_TEXTS = (TokenKind.STRING, TokenKind.DOUBLE_QUOTED)


def accept_in(cursor: Cursor) -> bool:
    """Step over IN or FROM, if one comes next."""
    return cursor.accept("IN") or cursor.accept("FROM")


_OTHER_THINGS = keywords("DATABASE SCHEMA NAMESPACE CATALOG FUNCTION QUERY VARIABLE PROCEDURE")
"""Other objects of DESCRIBE."""


def read_describe(
    cursor: Cursor,
) -> DescribeHistory | DescribeDetail | DescribeTable | Rejected | None:
    """Read DESCRIBE of a table, of its history or of its detail; None for any other object.

    ``DESCRIBE history`` is of a table that has this name.
    """
    cursor.skip()  # DESCRIBE or DESC
    after = cursor.peek(1)
    if after is not None and not after.means(";") and not after.means("."):
        if cursor.accept("HISTORY"):
            return read_or_reject(cursor, _history, known_to_spark=False)
        if cursor.accept("DETAIL"):
            return read_or_reject(cursor, _detail, known_to_spark=False)
    statement = _describe(cursor)
    if statement is not None:
        cursor.expect_end()
    return statement


def _history(cursor: Cursor) -> DescribeHistory:
    table = read_table_argument(cursor)
    limit = int(cursor.number(whole=True)) if cursor.accept("LIMIT") else None
    return DescribeHistory(table=table, limit=limit)


def _detail(cursor: Cursor) -> DescribeDetail:
    return DescribeDetail(table=read_table_argument(cursor))


def _describe(cursor: Cursor) -> DescribeTable | None:
    has_more = cursor.peek(1) is not None
    if cursor.word in _OTHER_THINGS and has_more:
        return None
    if cursor.sees("TABLE") and has_more:
        cursor.skip()
    extended = False
    if (cursor.sees("EXTENDED") or cursor.sees("FORMATTED")) and cursor.peek(1) is not None:
        cursor.skip()
        extended = True
    table = read_table(cursor)
    done = cursor.is_done or cursor.sees(";")
    return DescribeTable(table=table, extended=extended, column=None if done else cursor.name())
