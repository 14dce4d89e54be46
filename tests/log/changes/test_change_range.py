from __future__ import annotations

import json

import pytest

from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.changes.change_range import (
    AtTime,
    AtVersion,
    ChangeRange,
    RangeBound,
    commit_times,
    last_metadata,
    require_readable_range,
    resolve_range,
)
from puredelta.log.replay.history import find_version_from
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import commit_name, log_path
from tests.faults import MemoryStore
from tests.log.log_files import METADATA, PROTOCOL, Json, add, metadata, write_commit

FEED = {"delta__enableChangeDataFeed": "true"}
TIMES = (10, 20, 30, 40)


def table(*commits: list[Json], times: tuple[int, ...] = ()) -> MemoryStore:
    """A table with the feed, with these commits after version 0."""
    store = MemoryStore()
    for version, actions in enumerate([[PROTOCOL, metadata(**FEED)], *commits]):
        write_commit(store, version, *actions)
    for version, time_ms in enumerate(times):
        store.modified_ms[log_path(commit_name(version))] = time_ms
    return store


def four_versions() -> MemoryStore:
    return table([add("a")], [add("b")], [add("c")], times=TIMES)


def resolve(
    store: MemoryStore, start: RangeBound, end: RangeBound | None = None, *, lenient: bool = False
) -> tuple[int, int] | ErrorCode | None:
    log = TableLog(store)
    try:
        found = resolve_range(
            store, list_log(store), log.snapshot(), start=start, end=end, may_exceed_newest=lenient
        )
    except DeltaError as error:
        return error.code
    return None if found is None else (found.start, found.end)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (AtVersion(0), None, (0, 3)),
        (AtVersion(2), AtVersion(2), (2, 2)),
        (AtVersion(1), AtVersion(99), (1, 3)),
        (AtVersion(2), AtVersion(1), ErrorCode.INVALID_CDC_RANGE),
        (AtVersion(4), None, ErrorCode.CDC_START_VERSION_AFTER_LATEST),
        (AtVersion(4), AtVersion(1), ErrorCode.CDC_START_VERSION_AFTER_LATEST),
        (AtVersion(-1), None, ErrorCode.LOG_FILE_NOT_FOUND),
        (AtTime(1), None, (0, 3)),
        (AtTime(20), None, (1, 3)),
        (AtTime(21), None, (2, 3)),
        (AtTime(40), None, (3, 3)),
        (AtTime(41), None, ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT),
        (AtTime(11), AtTime(39), (1, 2)),
        (AtTime(11), AtTime(30), (1, 2)),
        (AtTime(11), AtTime(12), None),  # between two commits
        (AtTime(12), AtTime(11), ErrorCode.INVALID_CDC_RANGE),
        (AtTime(35), AtTime(15), ErrorCode.INVALID_CDC_RANGE),
        (AtVersion(1), AtTime(15), ErrorCode.INVALID_CDC_RANGE),
        (AtVersion(0), AtTime(9), ErrorCode.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION),
        (AtVersion(0), AtTime(41), ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT),
    ],
)
def test_bounds(start: RangeBound, end: RangeBound | None, expected: object) -> None:
    assert resolve(four_versions(), start, end) == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (AtVersion(4), None, None),
        (AtTime(41), None, None),
        (AtTime(41), AtTime(99), None),
        (AtVersion(2), AtTime(99), (2, 3)),
        (AtTime(1), AtTime(9), ErrorCode.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION),
        (AtVersion(2), AtVersion(1), ErrorCode.INVALID_CDC_RANGE),
    ],
)
def test_bounds_beyond_the_newest_version_where_allowed(
    start: RangeBound, end: RangeBound | None, expected: object
) -> None:
    assert resolve(four_versions(), start, end, lenient=True) == expected


def test_a_start_whose_commit_was_cleaned_up() -> None:
    store = four_versions()
    TableLog(store).snapshot()
    listing, newest = list_log(store), TableLog(store).snapshot()
    store.delete(log_path(commit_name(0)))
    cleaned = list_log(store)
    with pytest.raises(DeltaError, match="oldest one that is has version 1") as raised:
        resolve_range(store, cleaned, newest, start=AtVersion(0), end=None, may_exceed_newest=False)
    assert raised.value.code is ErrorCode.LOG_FILE_NOT_FOUND
    assert 0 in listing.commits
    found = resolve_range(
        store, cleaned, newest, start=AtTime(1), end=None, may_exceed_newest=False
    )
    assert found == ChangeRange(start=1, end=3)


def test_times_of_commits_are_those_of_the_history() -> None:
    store = table([add("a")], [add("b")], times=(50, 7, 60))
    log = TableLog(store)
    times = commit_times(log.commits_after(0), list_log(store))
    history = {entry.version: entry.timestamp_ms for entry in log.history()}
    assert {v: times[v] for v in (1, 2)} == {1: history[1], 2: history[2]} == {1: 51, 2: 60}


def test_in_commit_timestamps_count_as_times() -> None:
    stamped = {"commitInfo": {"operation": "WRITE", "inCommitTimestamp": 77}}
    store = table([stamped, add("a")], [add("b")], times=(50, 60, 70))
    times = commit_times(TableLog(store).commits_after(-1), list_log(store))
    assert times == {0: 50, 1: 77, 2: 70}


def test_first_version_from_a_time_with_in_commit_timestamps() -> None:
    properties = {"delta__enableInCommitTimestamps": "true"}
    protocol = {
        "protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": ["inCommitTimestamp"],
        }
    }
    store = MemoryStore()
    for version, time_ms in enumerate((100, 200, 300)):
        info = {"commitInfo": {"inCommitTimestamp": time_ms}}
        head = (protocol, metadata(**properties)) if version == 0 else ()
        write_commit(store, version, info, *head, add(f"f{version}"))
        store.modified_ms[log_path(commit_name(version))] = 5
    log = TableLog(store)
    listing, config = list_log(store), log.snapshot().config
    found = [
        find_version_from(store, listing, config, timestamp_ms=t) for t in (1, 100, 101, 300, 301)
    ]
    assert found == [0, 0, 1, 2, 3]


def with_schema(*names: str, **properties: str) -> Json:
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in names]
    body = metadata(**{**FEED, **properties})["metaData"]
    schema = json.dumps({"type": "struct", "fields": fields})
    return {"metaData": {**body, "schemaString": schema, "partitionColumns": []}}


def check(store: MemoryStore, start: int, end: int, read: int | None) -> ErrorCode | None:
    log = TableLog(store)
    commits = log.commits_after(start - 1, through=end)
    snapshot = None if read is None else log.snapshot(version=read)
    try:
        require_readable_range(commits, log.snapshot(version=start).metadata, snapshot)
    except DeltaError as error:
        return error.code
    return None


def evolving(*later: Json) -> MemoryStore:
    """Version 0 has the column ``a`` (and the feed), each later version another metadata."""
    store = MemoryStore()
    for version, actions in enumerate([[PROTOCOL, with_schema("a")], *([m] for m in later)]):
        write_commit(store, version, *actions)
    return store


def test_the_feed_must_be_on_at_every_version() -> None:
    off = with_schema("a", delta__enableChangeDataFeed="false")
    store = evolving(off, with_schema("a"))
    assert check(store, 0, 0, 2) is None
    assert check(store, 0, 2, 2) is ErrorCode.MISSING_CHANGE_DATA
    assert check(store, 1, 2, None) is ErrorCode.MISSING_CHANGE_DATA
    assert check(store, 2, 2, 2) is None
    never = MemoryStore()
    write_commit(never, 0, PROTOCOL, METADATA)
    assert check(never, 0, 0, 0) is ErrorCode.MISSING_CHANGE_DATA


def test_schema_changes_in_the_range() -> None:
    added = evolving(with_schema("a", "b"))
    assert check(added, 0, 1, 1) is None
    assert check(added, 0, 0, 1) is None
    # Under the older schema: the newer one must hold it.
    assert check(added, 0, 1, 0) is None
    replaced = evolving(with_schema("a"), with_schema("b"), with_schema("b", "c"))
    change, data = (
        ErrorCode.CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE,
        ErrorCode.CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA,
    )
    assert check(replaced, 2, 3, 3) is None
    assert check(replaced, 0, 3, 3) is change
    assert check(replaced, 0, 1, 3) is change
    assert check(replaced, 1, 1, 3) is data
    assert check(replaced, 0, 3, None) is None  # the setting that asks for no check


def test_the_newest_metadata_of_commits() -> None:
    store = evolving(with_schema("a", "b"), with_schema("a", "b", "c"))
    commits = TableLog(store).commits_after(-1)
    found = last_metadata(commits)
    assert found is not None
    assert '"c"' in found.schema_string
    assert last_metadata(TableLog(four_versions()).commits_after(0)) is None
