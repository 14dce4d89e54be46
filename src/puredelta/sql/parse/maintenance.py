"""CONVERT, OPTIMIZE, REORG, VACUUM, RESTORE, GENERATE, TRUNCATE and DROP."""

from __future__ import annotations

from puredelta.commands.optimize.spec import OptimizeSpec
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.sql.parse.statement import (
    ConvertStatement,
    DropPathStatement,
    GenerateStatement,
    OptimizeStatement,
    Rejected,
    ReorgStatement,
    RestoreStatement,
    TruncateStatement,
    VacuumStatement,
    read_or_reject,
)
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.expression import read_expression
from puredelta.sql.text.table_name import TableName, TableReference, read_table, read_table_argument
from puredelta.sql.text.time_travel import accept_time_travel


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
    """Read ``REORG TABLE table [WHERE condition] APPLY (PURGE)``."""
    cursor.expect("TABLE")
    table = read_table_argument(cursor)
    predicates: tuple[str, ...] = ()
    if cursor.accept("WHERE"):
        predicates = (read_expression(cursor, lambda rest: rest.sees("APPLY")),)
    cursor.expect("APPLY")
    mode = cursor.group()
    if mode.strip().upper() != "PURGE":
        raise cursor.error(expected="(PURGE) before it")
    return ReorgStatement(table=table, predicates=predicates)


def read_vacuum(cursor: Cursor) -> VacuumStatement:
    """Read ``VACUUM table [RETAIN n HOURS] [DRY RUN]``, the clauses in any order."""
    table = read_table_argument(cursor)
    hours, dry_run = None, False
    while not (cursor.is_done or cursor.sees(";")):
        if hours is None and cursor.accept("RETAIN"):
            hours = float(cursor.number())
            cursor.expect("HOURS")
        elif not dry_run and cursor.accept("DRY", "RUN"):
            dry_run = True
        else:
            raise cursor.error(expected="RETAIN n HOURS or DRY RUN")
    return VacuumStatement(table=table, retention_hours=hours, dry_run=dry_run)


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
        raise InvalidRequestError(
            "Operation not allowed: TRUNCATE TABLE on Delta tables does not support partition "
            "predicates; use DELETE to delete specific partitions or rows.",
            code=ErrorCode.TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED,
        )
    return TruncateStatement(table=table)


def read_drop(cursor: Cursor) -> DropPathStatement | Rejected | None:
    """Read ``DROP TABLE [IF EXISTS] delta.`/path` ``; None for a table that has a name."""
    if not cursor.accept("DROP", "TABLE"):
        return None
    if_exists = cursor.accept("IF", "EXISTS")
    table = read_table(cursor)
    if not isinstance(table, TableName) or table.path is None:
        return None
    cursor.accept("PURGE")
    statement = DropPathStatement(table=table, path=table.path, if_exists=if_exists)
    return read_or_reject(cursor, lambda _: statement, table=table)
