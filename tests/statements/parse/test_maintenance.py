"""Statements that look after a table as text, without a session."""

from __future__ import annotations

import pytest

from puredelta.commands.optimize import OptimizeSpec
from puredelta.errors import ErrorCode
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    ConvertStatement,
    DropPathStatement,
    GenerateStatement,
    OptimizeStatement,
    RestoreStatement,
    Statement,
    VacuumStatement,
)
from puredelta.statements.parse.table_name import ComputedName, QuotedPath, TableName, TimeTravel
from tests.statements.parse.reading import rejected

A, T = TableName(("delta", "/a")), TableName(("t",))


def optimize(**asked: object) -> OptimizeStatement:
    return OptimizeStatement(table=A, spec=OptimizeSpec(**asked))  # type: ignore[arg-type]


STATEMENTS: dict[str, Statement] = {
    "convert to delta parquet.`/a` partitioned by (day DATE, `x y` struct<a:int>);": (
        ConvertStatement(
            source=TableName(("parquet", "/a")), partition_schema="day DATE, `x y` struct<a:int>"
        )
    ),
    "CONVERT TO DELTA db.t NO STATISTICS PARTITIONED BY (a int)": ConvertStatement(
        source=TableName(("db", "t")), partition_schema="a int", collect_stats=False
    ),
    "CONVERT TO DELTA db.t PARTITIONED BY (a int) VERIFY": ConvertStatement(
        source=TableName(("db", "t")), partition_schema="a int", verify=True
    ),
    "CONVERT TO DELTA db.t DRY RUN": ConvertStatement(source=TableName(("db", "t")), dry_run=True),
    "optimize '/a';": OptimizeStatement(table=QuotedPath("/a"), spec=OptimizeSpec()),
    "OPTIMIZE delta.`/a` FULL": optimize(full=True),
    "OPTIMIZE delta.`/a` WHERE p = 'zorder by' ZORDER BY (id, s.`x`)": optimize(
        predicates=("p = 'zorder by'",), z_order_by=("id", "s.`x`")
    ),
    "OPTIMIZE delta.`/a` ZORDER BY id, v": optimize(z_order_by=("id", "v")),
    "VACUUM t RETAIN 1.5 HOURS DRY RUN": VacuumStatement(
        table=T, retention_hours=1.5, dry_run=True
    ),
    'VACUUM "/it\'s" DRY RUN RETAIN 0 HOURS': VacuumStatement(
        table=QuotedPath("/it's"), retention_hours=0, dry_run=True
    ),
    "VACUUM t LITE RETAIN 5 HOURS DRY RUN": VacuumStatement(
        table=T, retention_hours=5, dry_run=True, lite=True
    ),
    "VACUUM t DRY RUN FULL": VacuumStatement(table=T, dry_run=True, lite=False),
    "VACUUM t USING INVENTORY (SELECT * FROM f(1)) FULL": VacuumStatement(
        table=T, inventory="SELECT * FROM f(1)", lite=False
    ),
    "VACUUM t RETAIN 0 HOURS USING INVENTORY db.`files`": VacuumStatement(
        table=T, retention_hours=0, inventory="TABLE db.`files`"
    ),
    "RESTORE TABLE delta.`/a` TO TIMESTAMP AS OF '2025-01-01'": RestoreStatement(
        table=A, state=TimeTravel(timestamp="2025-01-01")
    ),
    "RESTORE '/a' FOR SYSTEM_VERSION AS OF '3'": RestoreStatement(
        table=QuotedPath("/a"), state=TimeTravel(version="3")
    ),
    "GENERATE mode FOR TABLE IDENTIFIER('t')": GenerateStatement(
        table=ComputedName("'t'"), mode="mode"
    ),
    "DROP TABLE IF EXISTS spark_catalog.delta.`/a` PURGE": DropPathStatement(
        table=TableName(("spark_catalog", "delta", "/a")), path="/a", if_exists=True
    ),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(text: str) -> None:
    assert parse(text) == STATEMENTS[text]


@pytest.mark.parametrize(
    ("text", "near", "position"),
    [
        ("CONVERT TO DELTA", "end of input", 16),
        ("CONVERT TO DELTA parquet.", "end of input", 25),
        ("CONVERT TO DELTA 'x'", "''x''", 17),
        ("CONVERT TO DELTA IDENTIFIER('x')", "'CONVERT'", 0),
        ("CONVERT parquet.`/a`", "'parquet'", 8),
        ("CONVERT TO DELTA a PARTITIONED BY", "end of input", 33),
        ("CONVERT TO DELTA a PARTITIONED BY (b int", "end of input", 40),
        ("CONVERT TO DELTA a PARTITIONED BY ()", "end of input", 36),
        ("CONVERT TO DELTA a PARTITIONED BY (b int) NO STATISTICS", "'NO'", 42),
        ("OPTIMIZE", "end of input", 8),
        ("OPTIMIZE delta.`/a` VERSION AS OF 1", "'VERSION'", 20),
        ("OPTIMIZE delta.`/a` WHERE", "end of input", 25),
        ("OPTIMIZE delta.`/a` ZORDER BY ()", "')'", 31),
        ("OPTIMIZE delta.`/a` ZORDER BY (id", "end of input", 33),
    ],
)
def test_syntax_errors(text: str, near: str, position: int) -> None:
    error = rejected(text).error
    assert error.details["error"] == near
    assert f"(line 1, pos {position})" in str(error)


VACUUM_CLAUSES = "LITE, FULL, USING INVENTORY, RETAIN n HOURS or DRY RUN, each once"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VACUUM t RETAIN soon", "a number"),
        ("VACUUM t RETAIN 1 DAYS", "HOURS"),
        ("VACUUM t DRY RUN DRY RUN", VACUUM_CLAUSES),
        ("VACUUM t LITE FULL", VACUUM_CLAUSES),
        ("VACUUM t USING INVENTORY (SELECT 1) USING INVENTORY t", VACUUM_CLAUSES),
        ("VACUUM t NOW", VACUUM_CLAUSES),
        ("RESTORE t", "VERSION AS OF or TIMESTAMP AS OF"),
        ("RESTORE t TO VERSION AS OF 1.5", "a version number"),
        ("RESTORE t TO TIMESTAMP AS OF now", "a time in quotes"),
        ("GENERATE mode TABLE t", "FOR TABLE"),
    ],
)
def test_what_was_expected(text: str, expected: str) -> None:
    assert rejected(text).error.details["expected"] == expected


def test_partitions_of_delta_tables_are_not_truncated() -> None:
    found = rejected("TRUNCATE TABLE t PARTITION (p = 1)")
    assert found.error.code is ErrorCode.TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED
    assert found.table == T


def test_lite_takes_no_inventory() -> None:
    error = rejected("VACUUM t LITE USING INVENTORY (SELECT 1)").error
    assert error.code is ErrorCode.OPERATION_NOT_ALLOWED
