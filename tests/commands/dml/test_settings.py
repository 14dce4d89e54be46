from __future__ import annotations

import pytest

from puredelta.commands.dml.settings import ExecutionSettings, why_staged

PREFIX = "spark.databricks.delta."


def settings(**values: str) -> ExecutionSettings:
    return ExecutionSettings.parse(
        {f"{PREFIX}{key.replace('_', '.')}": value for key, value in values.items()}
    )


def test_defaults_are_those_of_the_reference() -> None:
    found = settings()
    assert found == ExecutionSettings()


def test_sources_are_broadcast_up_to_the_size_up_to_which_spark_does() -> None:
    """10 MB where nobody has set it, which Spark's own ``get`` with a default does not tell."""
    assert settings().broadcast_bytes_max == 10 * 1024 * 1024
    threshold = "spark.sql.autoBroadcastJoinThreshold"
    assert ExecutionSettings.parse({threshold: "-1"}).broadcast_bytes_max == -1
    assert ExecutionSettings.parse({threshold: "1g"}).broadcast_bytes_max == 1 << 30


def test_what_the_user_sets() -> None:
    assert settings(merge_repartitionBeforeWrite_enabled="FALSE").rebalance is False


def test_settings_that_turn_something_off() -> None:
    found = settings(
        skipRecordingEmptyCommits="false",
        numRecordsValidation_enabled="false",
        stats_skipping="false",
        stats_collect="false",
    )
    assert found == ExecutionSettings(
        skips_empty_commits=False,
        checks_row_counts=False,
        skips_by_statistics=False,
        collects_statistics=False,
    )


@pytest.mark.parametrize("value", ["auto", "NONE"])
def test_a_source_may_be_read_where_it_lies(value: str) -> None:
    assert settings(merge_materializeSource=value).must_stage is None


@pytest.mark.parametrize("value", ["all", "", "sometimes"])
def test_a_source_is_always_copied_if_the_user_wants_that(value: str) -> None:
    """M-150: what is unknown is the safe choice."""
    assert "materializeSource" in (settings(merge_materializeSource=value).must_stage or "")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.files.ignoreMissingFiles", "TRUE"),
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.int96RebaseModeInRead", "EXCEPTION"),
        ("spark.sql.parquet.int96TimestampConversion", "True"),
        ("spark.sql.parquet.fieldId.read.enabled", "true"),
    ],
)
def test_files_that_are_read_in_an_unusual_way_are_read_once(key: str, value: str) -> None:
    """M-151."""
    assert why_staged({key: value}) == f"{key} is {value}"
    assert why_staged({"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}) is None
