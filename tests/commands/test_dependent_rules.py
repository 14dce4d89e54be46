"""M-55: columns that rules of the table read keep their types; texts of delta-spark 4.4.0."""

from __future__ import annotations

import pytest

from puredelta.commands.dependent_rules import require_same_types
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    SHORT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig


def struct(**fields: DataType) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


TABLE = StructType(
    (
        *struct(
            a=INTEGER,
            b=struct(x=INTEGER, y=INTEGER),
            l=ArrayType(struct(z=INTEGER)),
            m=MapType(INTEGER, INTEGER),
            free=INTEGER,
        ).fields,
        StructField("g", INTEGER, metadata={"delta.generationExpression": "size(L) + m[1]"}),
    )
)
CONFIG = TableConfig.of(
    Protocol(min_reader_version=1, min_writer_version=4),
    Metadata(
        id="t",
        schema_string=encode_schema(TABLE),
        partition_columns=(),
        configuration={"delta.constraints.pos": "A > 0 AND b . `x` <> 1 AND 'free' = 'b.y'"},
    ),
)


@pytest.mark.parametrize(
    "update",
    [
        struct(a=INTEGER, free=LONG, new=LONG),
        struct(b=struct(x=INTEGER, y=SHORT)),
        struct(b=struct(x=INTEGER, z=INTEGER)),
        struct(l=ArrayType(struct(z=INTEGER, more=INTEGER))),
        struct(a=VOID),
    ],
)
def test_what_may_come(update: StructType) -> None:
    require_same_types(CONFIG, update)


@pytest.mark.parametrize(
    ("update", "column", "rule"),
    [
        (struct(A=SHORT), "a", "delta.constraints.pos -> A > 0 AND"),
        (struct(a=LONG), "a", "delta.constraints.pos -> A > 0 AND"),
        (struct(B=struct(X=LONG)), "b.x", "delta.constraints.pos -> A > 0 AND"),
        (struct(b=LONG), "b", "delta.constraints.pos -> A > 0 AND"),
        (struct(l=ArrayType(struct(z=LONG))), "l", r"g -> size\(L\) \+ m\[1\]"),
        (struct(m=MapType(INTEGER, LONG)), "m", r"g -> size\(L\) \+ m\[1\]"),
    ],
)
def test_what_is_refused(update: StructType, column: str, rule: str) -> None:
    with pytest.raises(InvalidRequestError, match=rule) as caught:
        require_same_types(CONFIG, update)
    assert caught.value.message.startswith(f"Column {column} has data type ")
    assert caught.value.code is (
        ErrorCode.GENERATED_COLUMNS_DATA_TYPE_MISMATCH
        if rule.startswith("g ->")
        else ErrorCode.CONSTRAINT_DATA_TYPE_MISMATCH
    )


def test_names_in_expressions() -> None:
    schema = struct(a=INTEGER, b=struct(x=INTEGER), upper=LONG)
    assert referenced_paths("upper(B.X) > 'a' and \"b\" = b.nope", schema) == [
        ("b", "x"),
        ("b",),
    ]
