"""Columns that may hold values near the days that the old calendar lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.calendar_gap import gap_columns
from puredelta.protocol.schema.types import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    StructField,
    StructType,
)
from tests.log.skipping.test_pruning import config, file

_CONFIG = config(
    {
        "d": DATE,
        "ts": TIMESTAMP,
        "ntz": TIMESTAMP_NTZ,
        "s": StructType((StructField("d", DATE), StructField("text", STRING))),
        "p": DATE,
    },
    partition_columns=["p"],
)
_MODERN = {
    "d": "2024-01-01",
    "ts": "2024-01-01T00:00:00.000Z",
    "s": {"text": '{"d":"2024-01-01"}', "d": "2024-01-01"},
}


def _stats(low: dict[str, Any], high: dict[str, Any], **more: Any) -> str:
    return json.dumps({"numRecords": 2, "minValues": low, "maxValues": high, **more})


def _found(*stats: str | None, names: tuple[str, ...] = ("d", "ts", "ntz", "s", "p")) -> set[str]:
    files = FileTable.of(file(text, p="1582-10-10") for text in stats)
    fields = [field for field in _CONFIG.schema.fields if field.name in names]
    return {".".join(path) for path in gap_columns(files, _CONFIG, fields)}


def test_columns_of_other_days_are_none() -> None:
    assert _found(_stats(_MODERN, _MODERN)) == set()
    assert _found() == set()
    old = {"d": "0001-01-01", "ts": "0001-01-01T00:00:00.000Z", "s": {"d": "1500-01-01"}}
    before = {"d": "1582-10-04", "ts": "1582-10-03T23:00:00.000Z", "s": {"d": "1582-10-04"}}
    assert _found(_stats(old, before), _stats(_MODERN, _MODERN)) == set()
    after = {"d": "1582-10-16", "ts": "1582-10-18T00:00:00.000Z", "s": {"d": "1583-01-01"}}
    assert _found(_stats(after, _MODERN)) == set()


@pytest.mark.parametrize(
    ("low", "high"),
    [("1582-10-05", "1582-10-05"), ("1582-10-15", "2024-01-01"), ("0001-01-01",) * 2],
)
def test_columns_near_the_days_are_found_in_any_file(low: str, high: str) -> None:
    is_near = not low.startswith("0001")
    lows = {**_MODERN, "d": low, "ts": f"{low}T12:00:00.000Z", "s": {"d": low}}
    highs = {**_MODERN, "d": high, "ts": f"{high}T12:00:00.000Z", "s": {"d": high}}
    found = _found(_stats(_MODERN, _MODERN), _stats(lows, highs))
    assert found == ({"d", "ts", "s.d"} if is_near else set())


def test_a_sentinel_and_a_later_day_in_one_file_are_a_doubt() -> None:
    assert _found(_stats({**_MODERN, "d": "0001-01-01"}, _MODERN)) == {"d"}


def test_what_the_log_does_not_say_is_a_doubt() -> None:
    assert _found(None) == {"d", "ts", "s.d"}
    assert _found("no JSON", names=("d",)) == {"d"}
    unknown = {**_MODERN, "s": {"text": '{"d":"2024-01-01"}'}}
    assert _found(_stats(unknown, unknown)) == {"s.d"}
    # What looks like a bound is text of another column, or a bound of another struct.
    text = {"s": {"text": '"minValues":{"d":"2024-01-01"', "d": "2024-01-01"}}
    assert _found(_stats(text, text), names=("d", "ts")) == {"d", "ts"}
    assert _found(_stats({"d": "later"}, {"d": "later"}), names=("d",)) == {"d"}


def test_a_column_without_values_is_no_doubt() -> None:
    nulls = {"d": 2, "ts": 0}
    assert (
        _found(
            _stats({"ts": _MODERN["ts"]}, {"ts": _MODERN["ts"]}, nullCount=nulls), names=("d", "ts")
        )
        == set()
    )
