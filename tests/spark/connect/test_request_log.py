"""Keys of stores in the log of a Connect client, which shows whole requests at its level DEBUG."""

from __future__ import annotations

import logging
import sys
from types import ModuleType

import pytest

from puredelta.spark.connect.messages import hide_in_log
from puredelta.store.registry import Storage

NAME = "pyspark.sql.connect.logging"


def test_keys_are_stars_in_requests(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, NAME, ModuleType(NAME))
    logger = logging.getLogger(NAME)
    monkeypatch.setattr(logger, "disabled", False)
    hide_in_log(["very-secret", "true"])
    hide_in_log(["another-secret"])
    with caplog.at_level(logging.DEBUG, NAME):
        logger.debug(r"Request: command { \224very-secret\224 %s true }", "another-secret")
        logger.debug("%d bytes", 7)
    assert caplog.messages == [r"Request: command { \224***\224 *** true }", "7 bytes"]
    assert len(logger.filters) == 1
    logger.filters.clear()


def test_nothing_happens_without_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    hide_in_log(["very-secret-too"])
    assert not logging.getLogger(NAME).filters


def test_secrets_of_a_storage_are_known_by_their_keys() -> None:
    storage = Storage(
        settings={"fs.s3a.secret.key": "a", "fs.s3a.endpoint": "h", "fs.s3a.session.token": ""},
        options={"secret_access_key": "b", "region": "r"},
    )
    assert set(storage.secrets) == {"a", "b"}
