"""What a session says of commits, and of the one application that may make them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from puredelta.commands.file_options import CommitSettings, parse_bytes, require_no_arbiter
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError

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


def settings(**values: str) -> CommitSettings:
    return CommitSettings.parse_idempotent(Session(**values).getAll)


def test_what_the_user_sets() -> None:
    found = settings(
        write_txnAppId="app",
        write_txnVersion="3",
        commitInfo_userMetadata="because",
        history_metricsEnabled="false",
    )
    assert (found.user_metadata, found.records_metrics) == ("because", False)
    assert found.set_transaction is not None
    assert (found.set_transaction.app_id, found.set_transaction.version) == ("app", 3)
    alone = CommitSettings.parse(Session(write_txnAppId="app").getAll)
    assert alone.set_transaction is None


@pytest.mark.parametrize("resets", ["true", "false"])
def test_the_version_of_an_application_is_unset_if_the_user_wants_that(resets: str) -> None:
    session: Any = Session(
        write_txnAppId="app", write_txnVersion="3", write_txnVersion_autoReset_enabled=resets
    )
    found = CommitSettings.parse_idempotent(session.getAll)
    found.reset_set_transaction(session)
    assert session.get(f"{PREFIX}write.txnAppId", None) == "app"
    assert session.get(f"{PREFIX}write.txnVersion", None) == (None if resets == "true" else "3")


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


@pytest.mark.parametrize(
    ("root", "key"),
    [
        ("s3a://b/t", "spark.delta.logStore.s3a.impl"),
        ("s3://b/t", "spark.delta.logStore.s3a.impl"),
        ("S3://b/t", "delta.logStore.s3.impl"),
        ("s3a://b/t", "spark.delta.logStore.class"),
    ],
)
def test_a_table_that_dynamodb_arbitrates_is_not_written(root: str, key: str) -> None:
    store = "io.delta.storage.S3DynamoDBLogStore "
    with pytest.raises(UnsupportedError, match=re.escape(key)) as caught:
        require_no_arbiter(root, {key: store})
    assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE
    require_no_arbiter("file:/t", {key: store})
    require_no_arbiter(root, {key: "io.delta.storage.S3SingleDriverLogStore"})
