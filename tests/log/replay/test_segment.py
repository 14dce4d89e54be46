from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, ErrorCode, TableNotFoundError
from puredelta.log.replay.segment import LogSegment, find_segment, list_log
from puredelta.protocol.actions.log_paths import log_path
from puredelta.store.base import Store
from tests.faults import MemoryStore


def _store(*names: str) -> MemoryStore:
    store = MemoryStore()
    for name in names:
        store.put(log_path(name), b"x")
    return store


def _names(*versions: int) -> list[str]:
    return [f"{v:020d}.json" for v in versions]


def _checkpoint(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def _segment(store: Store, version: int | None = None) -> LogSegment:
    return find_segment(list_log(store), store.root_uri, version=version)


def _shape(segment: LogSegment) -> tuple[int, int | None, list[tuple[int, int]]]:
    checkpoint = None if segment.checkpoint is None else segment.checkpoint.version
    return segment.version, checkpoint, [(r.low, r.high) for r in segment.ranges]


def test_commits_only() -> None:
    assert _shape(_segment(_store(*_names(0, 1, 2)))) == (2, None, [(0, 0), (1, 1), (2, 2)])


def test_the_newest_checkpoint_at_or_below_the_version_is_used() -> None:
    store = _store(*_names(*range(13)), _checkpoint(5), _checkpoint(10))
    assert _shape(_segment(store)) == (12, 10, [(11, 11), (12, 12)])
    assert _shape(_segment(store, 10)) == (10, 10, [])
    assert _shape(_segment(store, 9)) == (9, 5, [(v, v) for v in range(6, 10)])
    assert _shape(_segment(store, 4)) == (4, None, [(v, v) for v in range(5)])


def test_a_checkpoint_alone_is_enough() -> None:
    segment = _segment(_store(_checkpoint(10)))
    assert _shape(segment) == (10, 10, [])
    assert segment.commit is None
    assert segment.modified_ms > 0


def test_unknown_names_checksums_and_sidecars_are_passed_over() -> None:
    store = _store(
        *_names(0, 1),
        f"{1:020d}.crc",
        "_last_checkpoint",
        "_sidecars/x.parquet",
        "_staged_commits/00000000000000000002.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        "2.json",
        f"{2:020d}.json.tmp",
        f".{2:020d}.json.crc",
    )
    assert _shape(_segment(store)) == (1, None, [(0, 0), (1, 1)])


def test_incomplete_and_empty_checkpoints_are_ignored() -> None:
    parts = [f"{3:020d}.checkpoint.{p:010d}.{3:010d}.parquet" for p in (1, 3)]
    store = _store(*_names(0, 1, 2, 3, 4), _checkpoint(1), *parts)
    store.put(log_path(_checkpoint(2)), b"")
    assert _shape(_segment(store)) == (4, 1, [(2, 2), (3, 3), (4, 4)])


def test_parts_of_different_writers_do_not_complete_each_other() -> None:
    mixed = [
        f"{1:020d}.checkpoint.{1:010d}.{2:010d}.parquet",
        f"{1:020d}.checkpoint.{2:010d}.{3:010d}.parquet",
        f"{1:020d}.checkpoint.{3:010d}.{3:010d}.parquet",
    ]
    assert _shape(_segment(_store(*_names(0, 1), *mixed)))[1] is None


def test_parts_come_in_order_and_formats_rank() -> None:
    parts = [f"{1:020d}.checkpoint.{p:010d}.{12:010d}.parquet" for p in range(1, 13)]
    store = _store(*_names(0, 1), _checkpoint(1), *reversed(parts))
    checkpoint = _segment(store).checkpoint
    assert checkpoint is not None
    assert [f.name for f in checkpoint.files] == parts
    v2 = f"{1:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    store.put(log_path(v2), b"x")
    checkpoint = _segment(store).checkpoint
    assert checkpoint is not None
    assert [f.name for f in checkpoint.files] == [v2]


def _compacted(low: int, high: int) -> str:
    return f"{low:020d}.{high:020d}.compacted.json"


@pytest.mark.parametrize(
    ("compacted", "version", "ranges"),
    [
        ([(1, 3)], None, [(0, 0), (1, 3), (4, 4), (5, 5)]),
        ([(1, 2), (1, 4)], None, [(0, 0), (1, 4), (5, 5)]),
        ([(0, 1), (2, 5)], None, [(0, 1), (2, 5)]),
        ([(1, 3), (2, 5)], None, [(0, 0), (1, 3), (4, 4), (5, 5)]),
        ([(1, 4)], 3, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ([(1, 9)], None, [(v, v) for v in range(6)]),
    ],
)
def test_compaction_files_stand_for_their_commits(
    compacted: list[tuple[int, int]], version: int | None, ranges: list[tuple[int, int]]
) -> None:
    store = _store(*_names(*range(6)), *(_compacted(*c) for c in compacted))
    assert _shape(_segment(store, version))[2] == ranges


def test_compaction_that_straddles_the_checkpoint_is_not_used() -> None:
    store = _store(*_names(*range(6)), _checkpoint(2), _compacted(1, 4), _compacted(3, 4))
    assert _shape(_segment(store)) == (5, 2, [(3, 4), (5, 5)])


def test_compaction_does_not_excuse_missing_commits() -> None:
    store = _store(*_names(0, 1, 4), _compacted(1, 3))
    with pytest.raises(CorruptTableError) as caught:
        _segment(store)
    assert caught.value.code is ErrorCode.VERSIONS_NOT_CONTIGUOUS


@pytest.mark.parametrize(
    ("names", "code", "named"),
    [
        (_names(0, 1, 3), ErrorCode.VERSIONS_NOT_CONTIGUOUS, "between versions 1 and 3"),
        (_names(1, 2), ErrorCode.TRUNCATED_TRANSACTION_LOG, "00000000000000000000.json"),
        (
            [*_names(*range(11)), _checkpoint(10), *_names(12)],
            ErrorCode.TRUNCATED_TRANSACTION_LOG,
            "00000000000000000011.json",
        ),
        (
            [_checkpoint(10), *_names(11, 13)],
            ErrorCode.VERSIONS_NOT_CONTIGUOUS,
            "between versions 11 and 13",
        ),
        (
            [f"{10:020d}.checkpoint.{1:010d}.{2:010d}.parquet", *_names(10, 11)],
            ErrorCode.TRUNCATED_TRANSACTION_LOG,
            "00000000000000000000.json",
        ),
    ],
)
def test_missing_commits_are_errors_of_the_reference(
    names: list[str], code: ErrorCode, named: str
) -> None:  # X-30; codes as delta-spark 4.4.0 raises them for the same files
    with pytest.raises(CorruptTableError, match=named) as caught:
        _segment(_store(*names))
    assert caught.value.code is code


@pytest.mark.parametrize("version", [-1, 4, 9, 13])
def test_versions_that_are_not_there(version: int) -> None:
    store = _store(*_names(*range(7, 13)), _checkpoint(10))
    with pytest.raises(TableNotFoundError, match=r"Available versions: \[10, 12\]") as caught:
        _segment(store, version)
    assert caught.value.code is ErrorCode.VERSION_NOT_FOUND


def test_an_empty_listing_is_no_table() -> None:
    with pytest.raises(TableNotFoundError) as caught:
        _segment(_store("notes.txt"))
    assert caught.value.code is ErrorCode.TABLE_NOT_FOUND
