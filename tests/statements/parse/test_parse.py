"""Statement text into statements: every kind, text that is none, and errors, without a session."""

from __future__ import annotations

import pickle
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import ParseException

from puredelta.commands.dml.spec import (
    Assignment,
    Delete,
    DeleteSpec,
    Matched,
    MergeSpec,
    UpdateSpec,
)
from puredelta.commands.optimize import OptimizeSpec
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    AlterStatement,
    CloneStatement,
    ConvertStatement,
    CreateSchema,
    DeleteStatement,
    DescribeDetail,
    DescribeHistory,
    DescribeSchema,
    DescribeTable,
    DropFeature,
    DropNamedStatement,
    DropPathStatement,
    DropSchema,
    ExplainStatement,
    GenerateStatement,
    LikeStatement,
    MergeStatement,
    OptimizeStatement,
    Rejected,
    RenameTable,
    ReorgStatement,
    RestoreStatement,
    ShowCatalogs,
    ShowColumns,
    ShowCreate,
    ShowCurrent,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
    SourceTable,
    SparkParsedStatement,
    Statement,
    TableInText,
    Target,
    TruncateStatement,
    UpdateStatement,
    UseNamespace,
    VacuumStatement,
    ViewLifetime,
    ViewStatement,
)
from puredelta.statements.parse.table_name import ComputedName, TableName, TimeTravel
from tests.statements.parse.reading import rejected

T, S = TableName(("t",)), TableName(("s",))
PATH = TableName(("delta", "/table"))

ONE_OF_EACH: dict[str, Statement] = {
    "MERGE INTO t USING s ON a WHEN MATCHED THEN DELETE": MergeStatement(
        target=Target(name=T),
        source=SourceTable(name=S),
        spec=MergeSpec(on="a", clauses=(Matched(Delete()),)),
    ),
    "UPDATE t SET a = 1": UpdateStatement(
        target=Target(name=T), spec=UpdateSpec(assignments=(Assignment("a", "1"),))
    ),
    "DELETE FROM t": DeleteStatement(target=Target(name=T), spec=DeleteSpec()),
    "CONVERT TO DELTA parquet.`/a`": ConvertStatement(source=TableName(("parquet", "/a"))),
    "OPTIMIZE t": OptimizeStatement(table=T, spec=OptimizeSpec()),
    "REORG TABLE t WHERE p = 1 APPLY (purge)": ReorgStatement(table=T, predicates=("p = 1",)),
    "VACUUM t": VacuumStatement(table=T),
    "RESTORE t TO VERSION AS OF 1": RestoreStatement(table=T, state=TimeTravel(version="1")),
    "GENERATE symlink_format_manifest FOR TABLE t": GenerateStatement(
        table=T, mode="symlink_format_manifest"
    ),
    "DESCRIBE HISTORY t": DescribeHistory(table=T),
    "DESCRIBE DETAIL t": DescribeDetail(table=T),
    "CREATE TABLE t SHALLOW CLONE s": CloneStatement(
        target=T, source=S, shallow=True, creates=True, replaces=False, if_not_exists=False
    ),
    "CREATE TABLE t LIKE s": LikeStatement(target=T, source=S, if_not_exists=False),
    "ALTER TABLE t DROP FEATURE x": AlterStatement(
        table=T, change=DropFeature(name="x"), known_to_spark=False
    ),
    "TRUNCATE TABLE t": TruncateStatement(table=T),
    "DROP TABLE delta.`/table`": DropPathStatement(table=PATH, path="/table"),
    "DROP TABLE IF EXISTS main.sales.orders": DropNamedStatement(
        table=TableName(("main", "sales", "orders")), if_exists=True
    ),
    "SHOW TBLPROPERTIES t": ShowProperties(table=T),
    "SHOW COLUMNS IN t": ShowColumns(table=T),
    "SHOW CREATE TABLE t": ShowCreate(table=T),
    "SHOW PARTITIONS t": ShowPartitions(table=T),
    "SHOW PARTITIONS t PARTITION (p = 1, `q r` == -2.5)": ShowPartitions(
        table=T, values=(("p", "1"), ("q r", "-2.5"))
    ),
    "SHOW PARTITIONS t PARTITION (a = 'x', b = DATE '2025-01-31', c = null)": ShowPartitions(
        table=T, values=(("a", "'x'"), ("b", "DATE '2025-01-31'"), ("c", "null"))
    ),
    "SHOW TABLES IN main.sales LIKE 'o*'": ShowTables(namespace=("main", "sales"), pattern="o*"),
    "ALTER TABLE t RENAME TO main.u": RenameTable(table=TableName(("t",)), new_name=("main", "u")),
    "CREATE SCHEMA IF NOT EXISTS main.s COMMENT 'c' WITH DBPROPERTIES (a = 'b')": CreateSchema(
        namespace=("main", "s"), if_not_exists=True, comment="c", properties={"a": "b"}
    ),
    "DESCRIBE DATABASE EXTENDED main.s": DescribeSchema(namespace=("main", "s"), extended=True),
    "DROP NAMESPACE IF EXISTS s CASCADE": DropSchema(
        namespace=("s",), if_exists=True, cascade=True
    ),
    "SHOW CATALOGS LIKE 'm*'": ShowCatalogs(pattern="m*"),
    "SHOW CURRENT SCHEMA": ShowCurrent(),
    "USE CATALOG main": UseNamespace(parts=("main",), is_catalog=True),
    "SHOW DATABASES FROM main": ShowSchemas(namespace=("main",)),
    "DESCRIBE t": DescribeTable(table=T),
    "CREATE VIEW v AS SELECT 1": ViewStatement(lifetime=ViewLifetime.PERMANENT),
    "INSERT INTO t VALUES (1)": SparkParsedStatement(
        defines=False, targets=(TableInText(name=T, start=12, end=13),), start=0
    ),
}


@pytest.mark.parametrize("text", ONE_OF_EACH)
def test_one_statement_of_each_kind(text: str) -> None:
    for spelling in (text, f" -- nightly\n{text} ;;"):
        statement = parse(spelling)
        if not isinstance(statement, SparkParsedStatement):  # whose places move
            assert statement == ONE_OF_EACH[text]
    assert parse(text) == ONE_OF_EACH[text]


def test_every_kind_is_tested() -> None:
    assert {*map(type, ONE_OF_EACH.values()), Rejected} == {*get_args(Statement)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1",
        "SELECT 'MERGE INTO x'",
        "-- MERGE INTO x\nSELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "WITH a AS (SELECT 1) VALUES (1)",
        "WITH a AS (SELECT 1) ALTER TABLE t DROP COLUMN c",
        "WITH a AS (SELECT 1",
        "`MERGE` INTO x",
        "/*+ x */ DELETE FROM x",
        "BEGIN DELETE FROM x; END",
        "DROP TABLE IDENTIFIER('t')",
        "CREATE FUNCTION f AS 'x'",
        "DESCRIBE QUERY SELECT 1",
        "FROM t SELECT *",
    ],
)
def test_other_statements(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "table", "known_to_spark"),
    [
        # Spark says what is wrong, whatever the table is.
        ("MERGE nonsense", None, True),
        ("UPDATE", None, True),
        ("ALTER TABLE 'text' DROP COLUMN a", None, True),
        ("SHOW PARTITIONS t PARTITION (p = q)", None, True),
        ("SHOW PARTITIONS t PARTITION (p = f(1))", None, True),
        ("SHOW PARTITIONS t PARTITION (p = 1 + 1)", None, True),
        ("SHOW PARTITIONS t PARTITION (p = DATE 1)", None, True),
        ("SHOW PARTITIONS t PARTITION (p)", None, True),
        ("SHOW PARTITIONS t PARTITION (p = 1, p = 2)", None, True),
        ("DESCRIBE t AS JSON", None, True),
        ("CREATE TABLE {rows} (a INT)", None, True),
        # Spark is asked first if the table is a Delta table.
        ("MERGE INTO t USING s ON", T, True),
        ("DELETE FROM t WHERE", T, True),
        ("ALTER TABLE t ADD COLUMN", T, True),
        ("TRUNCATE TABLE t now", T, True),
        ("DROP TABLE delta.`/table` now", PATH, True),
        ("ALTER TABLE IDENTIFIER(:n) ADD COLUMN", ComputedName(":n"), True),
        # Spark does not know the clause, or the statement.
        ("ALTER TABLE t CLUSTER BY", T, False),
        ("VACUUM t RETAIN :hours HOURS", None, False),
        ("DESCRIBE HISTORY t LIMIT one", None, False),
        ("CREATE TABLE t SHALLOW CLONE", None, False),
    ],
)
def test_who_judges_text_that_is_wrong(
    text: str, table: TableName | None, *, known_to_spark: bool
) -> None:
    found = rejected(text)
    assert (found.table, found.known_to_spark) == (table, known_to_spark)
    assert found.error.code is ErrorCode.PARSE_SYNTAX_ERROR


@given(st.text(max_size=30), st.sampled_from(["", "MERGE ", "WITH a AS (", "CONVERT TO DELTA a "]))
def test_any_text_is_parsed_or_rejected(text: str, before: str) -> None:
    parse(before + text)


def test_common_table_expressions_stand_before_few_statements() -> None:
    ctes = "WITH a AS (SELECT 1 k), update (x) MAX RECURSION LEVEL 9 AS (VALUES (')'))"
    for text in ("MERGE INTO t USING a ON b WHEN MATCHED THEN DELETE", "UPDATE t SET a = 1"):
        statement = parse(f"{ctes} {text}")
        assert isinstance(statement, MergeStatement | UpdateStatement)
        assert statement.ctes == ctes
    inserted = parse(f"{ctes} INSERT INTO t TABLE a")
    assert isinstance(inserted, SparkParsedStatement)
    assert inserted.start == len(ctes) + 1
    assert "expected VACUUM" in str(rejected(f"{ctes} VACUUM t").error)


def test_a_syntax_error_points_at_its_place() -> None:
    error = rejected("CONVERT TO DELTA parquet.`/a`\n  STATISTICS").error
    assert isinstance(error, ParseException)
    assert isinstance(error, InvalidRequestError)
    assert error.getSqlState() == "42601"
    assert str(error) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'STATISTICS': expected the end of the "
        "statement. SQLSTATE: 42601 (line 2, pos 2)\n\n"
        "== SQL ==\nCONVERT TO DELTA parquet.`/a`\n  STATISTICS\n--^^^\n"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("text", "form"),
    [("EXPLAIN", ""), ("explain formatted", "FORMATTED"), ("EXPLAIN EXTENDED", "EXTENDED")],
)
def test_explain_of_what_changes_a_table(text: str, form: str) -> None:
    inner = "MERGE INTO delta.`/table` USING s ON true WHEN MATCHED THEN DELETE"
    read = parse(f"{text} {inner}")
    assert isinstance(read, ExplainStatement)
    assert (read.format.value, read.text) == (form, inner)
    assert read.statement == parse(inner)


@pytest.mark.parametrize("text", ["EXPLAIN SELECT 1", "EXPLAIN EXPLAIN DELETE FROM t", "EXPLAIN"])
def test_explain_of_a_query_is_left_to_spark(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("USE catalog", UseNamespace(parts=("catalog",))),
        ("USE catalog.s", UseNamespace(parts=("catalog", "s"))),
        ("USE SCHEMA s;", UseNamespace(parts=("s",), is_catalog=False)),
        ("SET CATALOG 'main'", UseNamespace(parts=("main",), is_catalog=True)),
        ("SET CATALOG = 1", None),
        ("SET a.b = 1", None),
        ("SHOW TABLES", ShowTables()),
        ("SHOW VIEWS", None),
        ("DROP VIEW v", None),
        ("DESCRIBE schema", DescribeTable(table=TableName(("schema",)))),
        ("CREATE SCHEMA s MANAGED LOCATION 'x'", None),
    ],
)
def test_statements_about_namespaces(text: str, expected: object) -> None:
    assert parse(text) == expected
