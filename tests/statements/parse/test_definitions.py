"""ALTER TABLE text into statements, without a session."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.schema.schema_edit import After, End
from puredelta.statements.parse.column_text import ColumnDefinition
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    AddCheck,
    AddColumns,
    AlterStatement,
    Change,
    ChangeColumns,
    ClusterBy,
    ColumnAction,
    DropColumns,
    DropConstraint,
    DropFeature,
    RenameColumn,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    SyncIdentity,
    UnsetProperties,
)
from puredelta.statements.parse.table_name import ComputedName, TableName
from tests.statements.parse.reading import rejected

TABLE = TableName(("delta", "/t"))
UNKNOWN_TO_SPARK = AddCheck | DropConstraint | DropFeature | ClusterBy | SyncIdentity


CHANGES: dict[str, Change] = {
    "SET TBLPROPERTIES ('a' = 'b''s', c.d 'e', `f` 1.5, g = -3, h = TRUE, \"i\" == 'x\\ty');": (
        SetProperties({"a": "b's", "c.d": "e", "f": "1.5", "g": "-3", "h": "true", "i": "x\ty"})
    ),
    "REPLACE COLUMNS (a INT, b STRING COMMENT 'c')": ReplaceColumns(
        (
            ColumnDefinition(path=("a",), data_type="INT"),
            ColumnDefinition(path=("b",), data_type="STRING", comment="c"),
        )
    ),
    "ALTER COLUMN id SYNC IDENTITY": SyncIdentity(("id",)),
    "ALTER sync SYNC IDENTITY": SyncIdentity(("sync",)),
    "UNSET TBLPROPERTIES IF EXISTS ('a', b.c)": UnsetProperties(keys=("a", "b.c"), if_exists=True),
    "ADD COLUMN a INT": AddColumns((ColumnDefinition(path=("a",), data_type="INT"),)),
    "ADD COLUMNS (a.element.b STRUCT<x: ARRAY<INT NOT NULL>, `y,>`: DECIMAL(1, 0)> COMMENT 'it''s' "
    "AFTER `c d`, comment STRING FIRST, first INT NOT NULL DEFAULT concat('a', ',') )": AddColumns(
        (
            ColumnDefinition(
                path=("a", "element", "b"),
                data_type="STRUCT<x: ARRAY<INT NOT NULL>, `y,>`: DECIMAL(1, 0)>",
                comment="it's",
                position=After("c d"),
            ),
            ColumnDefinition(path=("comment",), data_type="STRING", position=End.FIRST),
            ColumnDefinition(
                path=("first",), data_type="INT", nullable=False, default="concat('a', ',')"
            ),
        )
    ),
    "ADD COLUMNS a INT, b TIMESTAMP_NTZ": AddColumns(
        (
            ColumnDefinition(path=("a",), data_type="INT"),
            ColumnDefinition(path=("b",), data_type="TIMESTAMP_NTZ"),
        )
    ),
    "ALTER COLUMN a.b COMMENT 'c'": ChangeColumns((ColumnAction(path=("a", "b"), comment="c"),)),
    "ALTER a TYPE DECIMAL(10, 2)": ChangeColumns(
        (ColumnAction(path=("a",), data_type="DECIMAL(10, 2)"),)
    ),
    "CHANGE COLUMN a SET NOT NULL": ChangeColumns((ColumnAction(path=("a",), nullable=False),)),
    "ALTER COLUMN a DROP NOT NULL": ChangeColumns((ColumnAction(path=("a",), nullable=True),)),
    "ALTER COLUMN a SET DEFAULT CASE WHEN 1 > 0 THEN 'x' END, b DROP DEFAULT, c AFTER d": (
        ChangeColumns(
            (
                ColumnAction(path=("a",), default="CASE WHEN 1 > 0 THEN 'x' END"),
                ColumnAction(path=("b",), drops_default=True),
                ColumnAction(path=("c",), position=After("d")),
            )
        )
    ),
    "CHANGE a a BIGINT COMMENT 'c' FIRST": ChangeColumns(
        (ColumnAction(path=("a",), data_type="BIGINT", comment="c", position=End.FIRST),)
    ),
    "CHANGE COLUMN s.first first INT": ChangeColumns(
        (ColumnAction(path=("s", "first"), data_type="INT"),)
    ),
    "RENAME COLUMN a.b TO `c d`": RenameColumn(("a", "b"), "c d"),
    "DROP COLUMN a": DropColumns(paths=(("a",),)),
    "DROP COLUMNS IF EXISTS (a.b, c)": DropColumns(paths=(("a", "b"), ("c",)), if_exists=True),
    "ADD CONSTRAINT `odd, name` CHECK (a IN (1, ')') AND b /* ) */ > 0)": AddCheck(
        "odd, name", "a IN (1, ')') AND b /* ) */ > 0"
    ),
    "DROP CONSTRAINT IF EXISTS c": DropConstraint(name="c", if_exists=True),
    "DROP FEATURE 'deletionVectors' TRUNCATE HISTORY": DropFeature(
        name="deletionVectors", truncate_history=True
    ),
    "DROP FEATURE v2Checkpoint": DropFeature(name="v2Checkpoint"),
    "CLUSTER BY (a, s.x)": ClusterBy((("a",), ("s", "x"))),
    "CLUSTER BY NONE": ClusterBy(()),
}


@pytest.mark.parametrize("clause", CHANGES)
def test_changes(clause: str) -> None:
    change = CHANGES[clause]
    assert parse(f"alter table delta.`/t` {clause}") == AlterStatement(
        table=TABLE, change=change, known_to_spark=not isinstance(change, UNKNOWN_TO_SPARK)
    )


@pytest.mark.parametrize(("text", "comment"), [("'text'", "text"), ("NULL", "")])
def test_comment_on_table(text: str, comment: str) -> None:
    assert parse(f"COMMENT ON TABLE a.b IS {text}") == AlterStatement(
        table=TableName(("a", "b")), change=SetProperties({"comment": comment})
    )


def test_a_location() -> None:
    statement = parse("ALTER TABLE t SET LOCATION '/x'")
    assert isinstance(statement, AlterStatement)
    assert statement.change == SetLocation("/x")
    assert parse("ALTER TABLE t PARTITION (p = 1) SET LOCATION '/x'") is None


def test_a_name_may_be_computed() -> None:
    statement = parse("ALTER TABLE IDENTIFIER('a' || 'b') DROP COLUMN c")
    assert isinstance(statement, AlterStatement)
    assert statement.table == ComputedName("'a' || 'b'")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD PARTITION (p = 1)",
        "ALTER TABLE t SET SERDEPROPERTIES ('a' = 'b')",
        "ALTER VIEW t SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE t",
        "COMMENT ON COLUMN t.a IS 'x'",
        "COMMENT ON DATABASE t IS 'x'",
    ],
)
def test_other_statements(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("clause", "place"),
    [
        ("SET TBLPROPERTIES ('a')", "line 2, pos 22"),
        ("SET TBLPROPERTIES ('a' = 1, a = 2)", "line 2, pos 28"),
        ("ADD COLUMN a", "line 2, pos 12"),
        ("ADD COLUMN a INT, ", "line 2, pos 17"),
        ("ADD COLUMN (a INT", "line 2, pos 17"),
        ("ALTER COLUMN a", "line 2, pos 14"),
        ("ALTER COLUMN a DROP", "line 2, pos 15"),
        ("ADD CONSTRAINT c DEFAULT 1", "line 2, pos 17"),
        ("ADD CONSTRAINT c CHECK a > 0", "line 2, pos 23"),
        ("ADD CONSTRAINT c CHECK (a > 0", "line 2, pos 29"),
        ("DROP FEATURE f TRUNCATE", "line 2, pos 15"),
        ("CLUSTER BY a", "line 2, pos 11"),
        ("RENAME COLUMN a b", "line 2, pos 16"),
        ("DROP COLUMN a b", "line 2, pos 14"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(clause: str, place: str) -> None:
    message = str(rejected(f"ALTER TABLE t\n{clause}").error)
    assert place in message
    assert "\n== SQL ==\n" in message
    assert "^^^" in message


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("ADD CONSTRAINT c PRIMARY KEY (a)", ErrorCode.TABLE_OPERATION_NOT_SUPPORTED),
        ("ADD CONSTRAINT c UNIQUE (a)", ErrorCode.TABLE_OPERATION_NOT_SUPPORTED),
        ("ADD CHECK (a > 0)", ErrorCode.TABLE_OPERATION_NOT_SUPPORTED),
        (
            "ADD CONSTRAINT c CHECK (a > 0) NOT ENFORCED",
            ErrorCode.UNSUPPORTED_CONSTRAINT_CHARACTERISTIC,
        ),
    ],
)
def test_constraints_that_no_delta_table_has(clause: str, code: ErrorCode) -> None:
    error = rejected(f"ALTER TABLE t {clause}").error
    assert isinstance(error, UnsupportedError)
    assert error.code is code
