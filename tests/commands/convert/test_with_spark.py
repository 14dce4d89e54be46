from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.commands.convert.plan import cast_texts, read_parquet_schema
from puredelta.commands.convert.schema import schema_of_message
from puredelta.errors import UnsupportedError
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import BOOLEAN, DATE, INTEGER, TIMESTAMP
from tests.commands.convert import footers as f
from tests.commands.convert.footers import Node
from tests.commands.convert.test_parquet_schema import (
    DEFAULTS,
    GROUPS,
    ILLEGAL,
    LEAVES,
    message,
)


@pytest.mark.parametrize("node", [*(n for n, _ in LEAVES + GROUPS)], ids=str)
def test_spark_agrees(spark, tmp_path: Path, node: Node) -> None:
    """The rules are Spark's own, nullability included."""
    path = tmp_path / "f.parquet"
    path.write_bytes(f.empty_file(node))
    theirs = read_parquet_schema(spark, f"file:{path}")
    ours = schema_of_message(message(path.read_bytes()), DEFAULTS)
    assert simple_string(ours) == simple_string(theirs)


def test_names_with_glob_characters_reach_spark(spark, tmp_path: Path) -> None:
    path = tmp_path / "p=[a]{b,c}*?" / "f[1] \\x.parquet"
    path.parent.mkdir()
    path.write_bytes(f.empty_file(Node("a b", f.INT32)))
    assert read_parquet_schema(spark, f"file:{path}").names == ("a b",)


@pytest.mark.parametrize("node", ILLEGAL, ids=str)
def test_illegal_types_name_the_file(spark, tmp_path: Path, node: Node) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(f.empty_file(node))
    with pytest.raises(UnsupportedError, match=r"PARQUET_TYPE_ILLEGAL.*f\.parquet") as refused:
        read_parquet_schema(spark, f"file:{path}")
    assert refused.value.code.error_class == "PARQUET_TYPE_ILLEGAL"


@pytest.mark.parametrize(
    ("data_type", "texts", "expected"),
    [
        (INTEGER, [" 7", "x", "99999999999"], ["7", None, None]),
        (BOOLEAN, ["yes", "0", "maybe"], ["true", "false", None]),
        (DATE, ["2024-1-2", "2024-13-01"], ["2024-01-02", None]),
        (TIMESTAMP, ["2024-01-02T03:04:05+01:00"], ["2024-01-02 02:04:05"]),
    ],
    ids=str,
)
def test_odd_spellings_are_cast_as_spark_casts(spark, data_type, texts, expected) -> None:
    """C-44."""
    assert cast_texts(spark, data_type, texts) == dict(zip(texts, expected, strict=True))
