"""Targets of statements that are certainly no Delta table."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, TableNotFoundError
from puredelta.statements.names.names import not_found, require_target
from puredelta.statements.parse.table_name import parse_table_name


def test_parquet_files_are_named_and_not_the_source() -> None:
    with pytest.raises(TableNotFoundError, match=r"CONVERT TO DELTA `?parquet`?\.`/p`") as caught:
        require_target(parse_table_name("parquet.`/p`"))
    assert caught.value.code is ErrorCode.MISSING_DELTA_TABLE


def test_a_relative_path_is_said_to_be_one() -> None:
    name = parse_table_name("delta.`data/rel`")
    with pytest.raises(TableNotFoundError, match="must be absolute"):
        require_target(name)
    assert "must be absolute" in str(not_found(name))


@pytest.mark.parametrize("text", ["events", "db.events", "delta.events", "csv.`/p`"])
def test_other_names_are_left_to_spark(text: str) -> None:
    require_target(parse_table_name(text))
    assert "absolute" not in str(not_found(parse_table_name(text)))
