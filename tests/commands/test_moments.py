"""Versions and moments as users give them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.read_table import parse_version
from puredelta.errors import DeltaError, ErrorCode
from puredelta.statements.parse.table_name import TimeTravel, split_time_travel


@pytest.mark.parametrize("text", ["0", "1", "+1", "-1", "007"])
def test_versions(text: str) -> None:
    assert parse_version(text) == int(text)


@pytest.mark.parametrize(
    "given", ["abc", "1.5", " 1", "1 ", "", "0x1", "1L", "9" * 30, True, 1.0, None]
)
def test_what_is_no_version(given: object) -> None:
    with pytest.raises(DeltaError) as error:
        parse_version(given)
    assert error.value.code is ErrorCode.TIME_TRAVEL_INVALID_BEGIN_VALUE


def test_words_are_no_moments(spark: SparkSession, tmp_path: Path) -> None:
    puredelta.write(spark.range(1), tmp_path)
    for word in ("yesterday", "now", " Today", "tomorrow UTC", "epoch", "abc", "", "2024-13-01"):
        with pytest.raises(DeltaError) as error:
            puredelta.read(spark, tmp_path, timestamp=word)
        assert error.value.code is ErrorCode.TIMESTAMP_INVALID, word
        with pytest.raises(DeltaError) as error:
            puredelta.sql(spark, f"SELECT 1 FROM delta.`{tmp_path}` TIMESTAMP AS OF '{word}'")
        assert error.value.code is ErrorCode.TIMESTAMP_INVALID, word


def test_a_moment_in_a_path_that_no_calendar_has() -> None:
    assert split_time_travel("/t@20251399000000000") == (
        "/t",
        TimeTravel(timestamp="20251399000000000"),
    )
