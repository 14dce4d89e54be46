from __future__ import annotations

from typing import Any

import pytest

from puredelta.commands.row_changes.settings import ExecutionSettings, why_staged
from puredelta.commands.settings import parse_bytes
from puredelta.errors import ErrorCode, InvalidRequestError

PREFIX = "spark.databricks.delta."


class Session:
    """As much of a session as is asked."""

    def __init__(self, **settings: str) -> None:
        self.conf = self
        self.getAll = {f"{PREFIX}{k.replace('_', '.')}": v for k, v in settings.items()}

    def get(self, key: str, default: str | None) -> str | None:
        return self.getAll.get(key, default)

    def unset(self, key: str) -> None:
        del self.getAll[key]


def settings(**values: str) -> ExecutionSettings:
    session: Any = Session(**values)
    return ExecutionSettings.of(session)


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
    found = settings(
        merge_repartitionBeforeWrite_enabled="FALSE",
        write_txnAppId="app",
        write_txnVersion="3",
        commitInfo_userMetadata="because",
    )
    assert (found.rebalance, found.user_metadata) == (False, "because")
    assert found.marker is not None
    assert (found.marker.app_id, found.marker.version) == ("app", 3)


@pytest.mark.parametrize("resets", ["true", "false"])
def test_the_version_of_an_application_is_unset_if_the_user_wants_that(resets: str) -> None:
    session: Any = Session(
        write_txnAppId="app", write_txnVersion="3", write_txnVersion_autoReset_enabled=resets
    )
    found = ExecutionSettings.of(session)
    found.reset_marker(session)
    assert session.get(f"{PREFIX}write.txnAppId", None) == "app"
    assert session.get(f"{PREFIX}write.txnVersion", None) == (None if resets == "true" else "3")


def test_settings_that_turn_something_off() -> None:
    found = settings(
        skipRecordingEmptyCommits="false",
        history_metricsEnabled="false",
        numRecordsValidation_enabled="false",
        stats_skipping="false",
        stats_collect="false",
    )
    assert found == ExecutionSettings(
        skips_empty_commits=False,
        records_metrics=False,
        checks_row_counts=False,
        skips_by_statistics=False,
        collects_statistics=False,
    )


@pytest.mark.parametrize(
    "half",
    [{"write_txnAppId": "a"}, {"write_txnVersion": "1"},
     {"write_txnAppId": "a", "write_txnVersion": "one"}],
)  # fmt: skip
def test_half_of_an_application_version_is_refused(half: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="set both") as refused:
        settings(**half)
    assert refused.value.code is ErrorCode.INVALID_IDEMPOTENT_WRITES_OPTIONS


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("10485760b", 10485760), ("10MB", 10485760), ("1g", 1 << 30), ("64k", 65536), ("-1", -1),
     ("5", 5), ("much", -1)],
)  # fmt: skip
def test_sizes_as_spark_spells_them(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


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
        ("spark.sql.parquet.fieldId.read.enabled", "true"),
    ],
)
def test_files_that_are_read_in_an_unusual_way_are_read_once(key: str, value: str) -> None:
    """M-151."""
    assert why_staged({key: value}) == f"{key} is {value}"
    assert why_staged({"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}) is None
