from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.replay.commit_files import read_actions, read_commit_info
from puredelta.protocol.actions.actions import Add, CommitInfo, SetTransaction
from tests.faults import MemoryStore
from tests.log.log_files import add, lines

PATH = "_delta_log/00000000000000000000.json"


def _store(content: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put(PATH, content)
    return store


def test_order_is_kept_and_unknown_actions_are_left_out() -> None:
    txn = {"txn": {"appId": "a", "version": 1}}
    content = lines([add("x"), {"future": {"a": 1}}, txn])
    assert [type(a) for a in read_actions(_store(content), PATH)] == [Add, SetTransaction]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r\n", b"\n \t\n"])
def test_line_ends(end: bytes) -> None:
    content = lines([add("x"), add("y")]).replace(b"\n", b"\r\n").rstrip() + end
    assert len(read_actions(_store(content), PATH)) == 2


def test_line_separators_of_unicode_do_not_split_a_line() -> None:
    content = '{"txn":{"appId":"a\u2028b\x85","version":1}}'
    (action,) = read_actions(_store(content.encode()), PATH)
    assert isinstance(action, SetTransaction)
    assert action.app_id == "a\u2028b\x85"


def test_an_empty_commit_has_no_actions() -> None:  # as delta-spark 4.4.0 reads it
    assert read_actions(_store(b""), PATH) == []


@pytest.mark.parametrize(
    "line",
    [b'{"add":{"path":"a"', b"garbage", b"[]", b"\xff\xfe", b'{"add":{"size":1}}', b'{"txn":7}'],
)
def test_a_malformed_line_is_named_by_file_and_number(line: bytes) -> None:
    content = lines([add("x")]) + b"\n" + line + b"\n" + lines([add("y")])
    with pytest.raises(CorruptTableError, match=rf"memory:/table/{PATH}, line 3: ") as caught:
        read_actions(_store(content), PATH)
    assert caught.value.code is ErrorCode.LOG_CORRUPTED
    assert caught.value.details["line_number"] == 3


def test_a_vanished_file_is_named() -> None:
    with pytest.raises(CorruptTableError, match=PATH) as caught:
        read_actions(MemoryStore(), PATH)
    assert caught.value.code is ErrorCode.LOG_FILE_NOT_FOUND


def test_commit_info_is_found_without_parsing_the_rest() -> None:
    info = {"commitInfo": {"operation": "WRITE", "timestamp": 3}}
    decoy = add('x"commitInfo"')
    content = lines([decoy, info]) + b"not parsed"
    found = read_commit_info(_store(content), PATH)
    assert isinstance(found, CommitInfo)
    assert (found.operation, found.timestamp_ms) == ("WRITE", 3)
    assert read_commit_info(_store(lines([decoy])), PATH) is None
