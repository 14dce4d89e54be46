"""Table properties as typed values."""

from __future__ import annotations

from datetime import timedelta

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.features.properties import (
    PROPERTY_KEYS,
    CheckpointPolicy,
    ColumnMappingMode,
    TableProperties,
    parse_columns,
    parse_interval,
)


def test_defaults_are_the_reference_s() -> None:
    """Printed by delta-spark 4.4.0 from its own list of properties."""
    properties = TableProperties.of({})
    assert properties.checkpoint_interval == 10
    assert properties.append_only is False
    assert properties.enable_change_data_feed is False
    assert properties.enable_deletion_vectors is False
    assert properties.column_mapping_mode is ColumnMappingMode.NONE
    assert properties.data_skipping_indexed_cols == 32
    assert properties.data_skipping_stats_columns is None
    assert properties.in_commit_timestamps is False
    assert properties.log_retention == timedelta(days=30)
    assert properties.deleted_file_retention == timedelta(weeks=1)
    assert properties.write_stats_as_json is True
    assert properties.write_stats_as_struct is True
    assert properties.checkpoint_policy is CheckpointPolicy.CLASSIC
    assert properties.random_prefix_length == 2
    assert properties.isolation_level == "Serializable"
    assert properties.set_transaction_retention is None
    properties.validate()


@pytest.mark.parametrize(
    ("attribute", "text", "value"),
    [
        ("append_only", "TRUE", True),
        ("checkpoint_interval", "1", 1),
        ("checkpoint_policy", "v2", CheckpointPolicy.V2),
        ("column_mapping_mode", "id", ColumnMappingMode.ID),
        ("compression_codec", "ZSTD", "zstd"),
        ("data_skipping_indexed_cols", "-1", -1),
        ("data_skipping_stats_columns", "a,b.c", (("a",), ("b", "c"))),
        ("log_retention", "interval 12 hours", timedelta(hours=12)),
        ("in_commit_timestamp_enablement_version", "7", 7),
        ("in_commit_timestamp_enablement_version", "4294967296", 1 << 32),
        ("isolation_level", "serializable", "serializable"),
        ("checkpoint_interval", " 10 ", 10),  # of a table that has it
    ],
)
def test_texts_become_values(attribute: str, text: str, value: object) -> None:
    properties = TableProperties.of({PROPERTY_KEYS[attribute]: text})
    assert getattr(properties, attribute) == value


@pytest.mark.parametrize(
    ("attribute", "text", "problem"),
    [
        ("append_only", "yes", "true or false"),
        ("checkpoint_interval", "0", "at least 1"),
        ("checkpoint_interval", "often", "at least 1"),
        ("checkpoint_policy", "v3", "classic, v2"),
        ("column_mapping_mode", "position", "none, name, id"),
        ("data_skipping_indexed_cols", "-2", "at least -1"),
        ("data_skipping_stats_columns", "a,,b", "list of column names"),
        ("isolation_level", "SnapshotIsolation", "Serializable"),
        ("log_retention", "interval 1 month", "without months"),
    ],
)
def test_a_bad_text_is_named_only_when_it_is_asked_for(
    attribute: str, text: str, problem: str
) -> None:
    key = PROPERTY_KEYS[attribute]
    properties = TableProperties.of({key: text})
    assert properties.deleted_file_retention  # another property is readable
    for ask in (lambda: getattr(properties, attribute), properties.validate):
        with pytest.raises(InvalidRequestError, match=problem) as caught:
            ask()
        assert caught.value.code is ErrorCode.INVALID_TABLE_PROPERTY
        assert key in str(caught.value)
        assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("interval 1 week", timedelta(weeks=1)),
        ("30 DAYS", timedelta(days=30)),
        (" interval  1 day  12 hours 3 minutes ", timedelta(days=1, hours=12, minutes=3)),
        ("interval 0 seconds", timedelta()),
        ("interval 2 days -1 day", timedelta(days=1)),
        ("interval 5 milliseconds 7 microseconds", timedelta(milliseconds=5, microseconds=7)),
    ],
)
def test_intervals(text: str, value: timedelta) -> None:
    assert parse_interval(text) == value


@pytest.mark.parametrize(
    "text", ["", "interval", "7", "interval 1 month", "1 year", "interval -1 day", "1 day 2"]
)
def test_intervals_without_fixed_length_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="without months or years"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", ()),
        ("a", (("a",),)),
        (" a , b.c ", (("a",), ("b", "c"))),
        ("`a.b`.`c,d`,e", (("a.b", "c,d"), ("e",))),
        ("`a``b`, `my column` /* x */", (("a`b",), ("my column",))),
    ],
)
def test_column_lists(text: str, columns: tuple[tuple[str, ...], ...]) -> None:
    assert parse_columns(text) == columns


@pytest.mark.parametrize("text", [",", "a,", "a..b", "`a", "a.", "``", "my column", "a-b"])
def test_broken_column_lists(text: str) -> None:
    with pytest.raises(ValueError, match="list of column names"):
        parse_columns(text)


def test_constraints_and_features_are_collected_by_name() -> None:
    properties = TableProperties.of(
        {
            "delta.constraints.positive": "id > 0",
            "delta.feature.deletionVectors": "supported",
            "delta.feature.other": "no",
            "mine": "1",
        }
    )
    assert properties.check_constraints == {"positive": "id > 0"}
    assert properties.requested_features == {"deletionVectors"}
