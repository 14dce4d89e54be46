from __future__ import annotations

import json

import pytest

from puredelta.log.replay.checkpoint_read import checkpoint_hint_checksum, read_checkpoint_hint
from puredelta.store.base import StorageError
from tests.data_dir import require_data
from tests.faults import FailAt, MemoryStore

PATH = "_delta_log/_last_checkpoint"


def _hint(text: str) -> int | None:
    store = MemoryStore()
    store.put(PATH, text.encode())
    hint = read_checkpoint_hint(store)
    return None if hint is None else hint.version


def test_checksum_is_that_of_the_protocol_example() -> None:  # X-36, section "JSON checksum"
    content = {
        "k0": "'v 0'",
        "checksum": "adsaskfljadfkjadfkj",
        "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
    }
    assert checkpoint_hint_checksum(content) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_hints_of_delta_spark_are_accepted() -> None:
    table = require_data("golden", "v2-checkpoint-parquet")
    assert _hint((table / "delta" / PATH).read_text()) == 2


def test_good_hint() -> None:
    assert _hint('{"version":7,"size":3}') == 7
    content = {"version": 7, "size": 3, "tags": {"a b": "ü"}, "checkpointSchema": {"x": [None]}}
    checksum = checkpoint_hint_checksum(content)
    assert _hint(json.dumps({**content, "checksum": checksum})) == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "7",
        "{}",
        '{"version":"7"}',
        '{"version":true}',
        '{"version":-1}',
        '{"version":7,"version":8}',
        '{"version":7,"checksum":"0"}',
        "\ufeff{}",
    ],
)
def test_bad_hints_are_none(text: str) -> None:
    assert _hint(text) is None


def test_bytes_that_are_no_text_and_stores_that_fail_are_none() -> None:
    store = MemoryStore()
    store.put(PATH, b"\xff\xfe{")
    assert read_checkpoint_hint(store) is None
    assert read_checkpoint_hint(MemoryStore()) is None
    assert read_checkpoint_hint(FailAt(store, 1, error=StorageError)) is None
