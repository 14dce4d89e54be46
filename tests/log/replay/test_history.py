from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError
from puredelta.log.replay.history import file_times
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import classic_checkpoint_name, commit_name, log_path
from puredelta.store.base import StoredFile
from tests.faults import Meddling, MemoryStore
from tests.log.log_files import (
    METADATA,
    PROTOCOL,
    Json,
    add,
    metadata,
    write_checkpoint,
    write_commit,
)

WRITER_7 = {
    "protocol": {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp"],
    }
}


def _table(*times_ms: int) -> MemoryStore:
    store = MemoryStore()
    for version, time_ms in enumerate(times_ms):
        head = (PROTOCOL, METADATA) if version == 0 else ()
        write_commit(store, version, _info(operation=f"OP{version}"), *head, add(f"f{version}"))
        _touch(store, version, time_ms)
    return store


def _info(**values: object) -> Json:
    return {"commitInfo": values}


def _touch(store: MemoryStore, version: int, time_ms: int) -> None:
    store.modified_ms[log_path(commit_name(version))] = time_ms


def _at(log: TableLog, time_ms: int) -> int:
    return log.snapshot(timestamp_ms=time_ms).version


@pytest.mark.parametrize(
    ("times", "adjusted"),
    [
        ([], []),
        ([5], [5]),
        ([1, 2, 3], [1, 2, 3]),
        ([5, 5, 5], [5, 6, 7]),
        ([9, 1, 2, 20], [9, 10, 11, 20]),
    ],
)
def test_times_grow_with_versions(times: list[int], adjusted: list[int]) -> None:
    commits = {
        version: StoredFile(path="", size_bytes=1, modified_ms=time_ms)
        for version, time_ms in reversed(list(enumerate(times)))
    }
    assert file_times(commits) == dict(enumerate(adjusted))


def test_time_travel() -> None:
    log = TableLog(_table(1000, 2000, 3000))
    assert [_at(log, t) for t in (1000, 1999, 2000, 2999, 3000)] == [0, 0, 1, 1, 2]


def test_time_travel_over_a_clock_that_went_back() -> None:
    log = TableLog(_table(1000, 5000, 2000, 3000, 9000))
    assert [_at(log, t) for t in (1000, 4999, 5000, 5001, 5002, 8999, 9000)] == [
        0,
        0,
        1,
        2,
        3,
        3,
        4,
    ]


@pytest.mark.parametrize(
    ("time_ms", "code", "named"),
    [
        (999, ErrorCode.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION, "1970-01-01 00:00:01.000 UTC"),
        (3001, ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT, "1970-01-01 00:00:03.000 UTC"),
        (10**17, ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT, "100000000000000000 ms"),
    ],
)
def test_times_outside(time_ms: int, code: ErrorCode, named: str) -> None:
    with pytest.raises(InvalidRequestError, match=named) as caught:
        _at(TableLog(_table(1000, 2000, 3000)), time_ms)
    assert caught.value.code is code


def test_time_travel_reaches_back_to_what_can_be_rebuilt() -> None:
    store = _table(*range(1000, 9000, 1000))
    write_checkpoint(store, 4, PROTOCOL, METADATA, *(add(f"f{v}") for v in range(5)))
    for version in (0, 1, 2):
        store.delete(log_path(commit_name(version)))
    log = TableLog(store)
    assert _at(log, 5000) == 4
    with pytest.raises(InvalidRequestError, match=r"1970-01-01 00:00:05\.000 UTC"):
        _at(log, 4999)
    assert [e.version for e in log.history()] == [7, 6, 5, 4, 3]
    for version in range(3, 8):
        store.delete(log_path(commit_name(version)))
    assert TableLog(store).snapshot().version == 4
    with pytest.raises(CorruptTableError) as caught:
        _at(TableLog(store), 5000)
    assert caught.value.code is ErrorCode.LOG_FILE_NOT_FOUND
    assert store.exists(log_path(classic_checkpoint_name(4)))


def test_history_is_newest_first_and_limited() -> None:
    store = _table(1000, 5000, 2000)
    write_commit(store, 3, add("f3"))
    _touch(store, 3, 9000)
    history = TableLog(store).history()
    assert [(e.version, e.timestamp_ms) for e in history] == [
        (3, 9000),
        (2, 5001),
        (1, 5000),
        (0, 1000),
    ]
    assert [e.commit_info and e.commit_info.operation for e in history] == [
        None,
        "OP2",
        "OP1",
        "OP0",
    ]
    assert [e.version for e in TableLog(store).history(limit=2)] == [3, 2]


def test_history_goes_on_while_a_clean_up_runs() -> None:
    store = _table(1000, 2000, 3000)

    def clean_up(operation: str) -> None:
        if operation == "read" and reading:
            store.files.pop(log_path(commit_name(0)), None)

    reading = False
    log = TableLog(Meddling(store, before=clean_up))
    log.snapshot()
    reading = True
    assert [e.version for e in log.history()] == [2, 1]


def _timestamped(*times_ms: int | None) -> MemoryStore:
    """Versions with these in-commit timestamps; file times run backwards, to be ignored."""
    store = MemoryStore()
    for version, time_ms in enumerate(times_ms):
        head = (WRITER_7, metadata(delta__enableInCommitTimestamps="true")) if version == 0 else ()
        stamp = {} if time_ms is None else {"inCommitTimestamp": time_ms}
        write_commit(store, version, _info(operation="WRITE", **stamp), *head, add(f"f{version}"))
        _touch(store, version, 99_000 - version)
    return store


def test_in_commit_timestamps_are_the_times() -> None:
    log = TableLog(_timestamped(1000, 2000, 3000))
    snapshot = log.snapshot()
    assert (snapshot.timestamp_ms, snapshot.in_commit_timestamp_ms) == (3000, 3000)
    assert [_at(log, t) for t in (1000, 1999, 2000, 3000)] == [0, 0, 1, 2]
    for outside in (999, 3001):
        with pytest.raises(InvalidRequestError):
            _at(log, outside)
    assert [e.timestamp_ms for e in log.history()] == [3000, 2000, 1000]


def test_in_commit_timestamps_under_a_checkpoint_and_on_refresh() -> None:
    store = _timestamped(1000, 2000)
    head = (WRITER_7, metadata(delta__enableInCommitTimestamps="true"))
    write_checkpoint(store, 1, *head, add("f0"), add("f1"))
    log = TableLog(store)
    assert log.snapshot().in_commit_timestamp_ms == 2000
    write_commit(store, 2, _info(inCommitTimestamp=2500), add("f2"))
    assert log.snapshot().timestamp_ms == 2500


def test_a_commit_without_its_timestamp_still_reads() -> None:
    snapshot = TableLog(_timestamped(1000, None)).snapshot()
    assert snapshot.in_commit_timestamp_ms is None
    assert snapshot.timestamp_ms == 98_999


def test_in_commit_timestamps_enabled_later() -> None:
    store = _table(1000, 2000, 50_000)
    enabled = metadata(
        delta__enableInCommitTimestamps="true",
        delta__inCommitTimestampEnablementVersion="3",
        delta__inCommitTimestampEnablementTimestamp="30000",
    )
    # The clock of the file system was ahead: version 2 has a later time than version 3.
    write_commit(store, 3, _info(inCommitTimestamp=30_000), WRITER_7, enabled)
    write_commit(store, 4, _info(inCommitTimestamp=40_000), add("f4"))
    _touch(store, 3, 1)
    _touch(store, 4, 1)
    log = TableLog(store)
    assert [_at(log, t) for t in (1000, 2999, 29_999, 30_000, 39_999, 40_000)] == [0, 1, 1, 3, 3, 4]
    assert [e.timestamp_ms for e in log.history()] == [40_000, 30_000, 50_000, 2000, 1000]
