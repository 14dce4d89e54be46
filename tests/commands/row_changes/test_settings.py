from __future__ import annotations

from typing import Any

import pytest

from puredelta.commands.row_changes.settings import ExecutionSettings, parse_bytes
from puredelta.errors import ErrorCode, InvalidRequestError

PREFIX = "spark.databricks.delta."


class Session:
    """As much of a session as is asked."""

    def __init__(self, **settings: str) -> None:
        self.conf = self
        self._settings = {f"{PREFIX}{k.replace('_', '.')}": v for k, v in settings.items()}

    def get(self, key: str, default: str | None) -> str | None:
        return self._settings.get(key, default)


def settings(**values: str) -> ExecutionSettings:
    session: Any = Session(**values)
    return ExecutionSettings.of(session)


def test_defaults_are_those_of_the_reference() -> None:
    found = settings()
    assert found == ExecutionSettings(
        broadcast_bytes_max=-1, rebalance=True, marker=None, user_metadata=None
    )


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
