"""Partition values as directory names (X-84, C-42, C-46)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.schema.partition_values import (
    HIVE_NULL,
    escape_partition_text,
    partition_directory,
    unescape_partition_text,
)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_name_survives_escaping(text: str) -> None:
    escaped = escape_partition_text(text)
    assert unescape_partition_text(escaped) == text
    assert "/" not in escaped
    assert "=" not in escaped


def test_the_characters_spark_escapes() -> None:
    # Directory of delta-spark 4.4.0 for this value: p=é%25%3A%3F x
    assert escape_partition_text("é%:? x") == "é%25%3A%3F x"
    assert escape_partition_text("""a"b#c'd*e\\f{g[h]i^j\x7fk\nl""") == (
        "a%22b%23c%27d%2Ae%5Cf%7Bg%5Bh%5Di%5Ej%7Fk%0Al"
    )
    assert escape_partition_text("%!@#$^&*-?.+<_>|/ ") == "%25!@%23$%5E&%2A-%3F.+<_>|%2F "  # C-46


@pytest.mark.parametrize(("text", "plain"), [("100%", "100%"), ("%zz", "%zz"), ("%E9", "é")])
def test_unescaping_is_forgiving(text: str, plain: str) -> None:
    assert unescape_partition_text(text) == plain


def test_null_and_empty_have_the_same_directory() -> None:
    assert partition_directory([("a=b", "1"), ("c", ""), ("d", None)]) == (
        f"a%3Db=1/c={HIVE_NULL}/d={HIVE_NULL}"
    )
    assert partition_directory([]) == ""
