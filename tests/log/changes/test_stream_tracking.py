"""What a stream's log of schemas has, and when a query may go on with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.changes.schema_log import AllowedChanges, SchemaLog, TrackedSchema, parse_tracked
from puredelta.log.changes.schema_tracking import StreamTracking, TrackedRead
from puredelta.log.changes.stream import RowStream, StreamLog, StreamRules, StreamSettings
from puredelta.log.changes.stream_offsets import StreamStart
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.protocol.schema.types import INTEGER, STRING
from puredelta.store.local import LocalStore
from tests.log.changes.tables import MAPPED, TABLE_ID, Table, column, columns
from tests.log.tables import add

A, B = column("a", "p-a"), column("b", "p-b")
PATH = "file:/c/sources/0"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(tmp_path / "t")
    made.commit(MAPPED, columns(A, B), add("x"))
    return made


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "log"))


def opened(
    table: Table,
    store: LocalStore,
    start: StreamStart | None = None,
    path: str = PATH,
    **options: str,
) -> StreamLog:
    log = table.log()
    read = TrackedRead.of(log, SchemaLog.read(store, TABLE_ID))
    tracking = StreamTracking(log, read, AllowedChanges(options=options))
    tracking.begin(path, {})
    streamed = StreamedTable.of(read.snapshot, follows_changes=True)
    rows = RowStream(table=streamed, rules=StreamRules())
    return StreamLog(log, rows, StreamSettings(start=start or StreamStart()), tracking)


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(DeltaError) as told:
        yield
    assert told.value.code is code, told.value


EVOLUTION = ErrorCode.STREAMING_METADATA_EVOLUTION
CONFLICT = ErrorCode.STREAMING_SCHEMA_LOCATION_CONFLICT
BROKEN = ErrorCode.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED
NOT_ALLOWED = ErrorCode.STREAMING_CANNOT_CONTINUE_POST_SCHEMA_EVOLUTION


def test_the_barrier_and_the_place_behind_it(table: Table, store: LocalStore) -> None:
    stream = opened(table, store)
    first = stream.latest(None)
    assert first is not None
    table.commit(add("y"))
    table.commit(columns(replace(A, name="c"), B), add("z"))
    stop = stream.latest(first)
    assert stop is not None
    assert stop.place == (2, -20)
    assert json.loads(stop.text())["sourceVersion"] == 3
    behind = stream.latest(stop)
    assert behind is not None
    assert behind.place == (2, -19)
    assert [list(actions) for _, actions in stream.batch(stop, behind).commits] == [[]]
    with pytest.raises(DeltaError, match="c:bigint") as told:
        stream.complete(stop)
    assert told.value.code is ErrorCode.STREAMING_METADATA_EVOLUTION
    with refused(NOT_ALLOWED):
        opened(table, store)
    again = opened(table, store, allowSourceColumnRename="2")
    end = again.latest(behind)
    assert end is not None
    assert [a.path for _, actions in again.batch(behind, end).commits for a in actions] == ["z"]
    assert end.place == (3, -100)


def test_the_version_to_begin_with_changed_before_any_row(table: Table, store: LocalStore) -> None:
    """A stream without a start reads the newest version, which may have come after the log."""
    assert opened(table, store).latest(None) is not None
    table.commit(columns(replace(A, name="c"), B))
    table.commit(add("y"))
    with refused(EVOLUTION):
        opened(table, store).latest(None)
    entry = SchemaLog.read(store, TABLE_ID)
    assert entry.current is not None
    assert (entry.number, entry.current.version, entry.current.previous) == (1, 2, -1)
    assert opened(table, store).latest(None) is not None, "nothing was read in the old columns"


def test_changes_without_rows_between_are_one(table: Table, store: LocalStore) -> None:
    stream = opened(table, store)
    place = stream.latest(None)
    table.commit(columns(A))
    table.commit(columns(A, column("b", "p-c", STRING)))
    table.commit(columns(A, column("b", "p-c", STRING)), add("y"))
    stop = stream.latest(place)
    assert stop is not None
    with refused(EVOLUTION):
        stream.complete(stop)
    with pytest.raises(DeltaError, match=r"DROP COLUMN.*between Delta version 0 and 2") as told:
        opened(table, store)
    assert told.value.code is ErrorCode.STREAMING_CANNOT_CONTINUE_POST_SCHEMA_EVOLUTION
    log = SchemaLog.read(store, TABLE_ID)
    assert log.current is not None
    assert (log.number, log.current.version, log.current.previous) == (2, 2, 0)
    assert opened(table, store, allowSourceColumnDrop="always").latest(stop) is not None


def test_columns_that_are_added_need_a_restart_only(table: Table, store: LocalStore) -> None:
    stream = opened(table, store)
    place = stream.latest(None)
    table.commit(columns(A, B, column("c", "p-c")), add("y"))
    stop = stream.latest(place)
    assert stop is not None
    with refused(EVOLUTION):
        stream.complete(stop)
    assert opened(table, store).latest(stop) is not None


def test_what_does_not_matter_is_passed_over(table: Table, store: LocalStore) -> None:
    stream = opened(table, store)
    place = stream.latest(None)
    table.commit(columns(A, B, owner="me"))
    table.commit(columns(replace(A, metadata={**A.metadata, "CURRENT_DEFAULT": "1"}), B), add("y"))
    end = stream.latest(place)
    assert end is not None
    assert end.place == (3, -100)
    table.commit(columns(A, B, delta__appendOnly="true"))
    stop = stream.latest(end)
    assert stop is not None
    assert stop.place == (3, -20), "delta-spark stops for every property of its own"


def test_a_start_in_other_columns(table: Table, store: LocalStore) -> None:
    table.commit(columns(replace(A, name="c"), B))
    with refused(EVOLUTION):
        opened(table, store, StreamStart(version=0)).latest(None)
    stop = opened(table, store, StreamStart(version=0)).latest(None)
    assert stop is not None
    assert (stop.place, stop.began_at) == ((1, -20), 0)


def test_a_checkpoint_from_before_the_log(table: Table, store: LocalStore, tmp_path: Path) -> None:
    """A planned batch is read in columns that fit all of it, if there are such."""
    stream = opened(table, LocalStore(str(tmp_path / "other")))
    first = stream.latest(None)
    assert first is not None
    table.commit(add("y"))
    table.commit(columns(replace(A, name="c"), B))
    table.commit(add("z"))
    new = opened(table, store)
    with refused(EVOLUTION):
        new.batch(None, first)
    with refused(ErrorCode.STREAMING_SCHEMA_LOG_INIT_FAILED):
        stream = opened(table, LocalStore(str(tmp_path / "third")))
        stream.batch(first, replace(first, version=4))


def test_logs_that_cannot_be_read(table: Table, store: LocalStore) -> None:
    opened(table, store).latest(None)
    good = store.read("0")
    for content in (b"", b"v1", b"v1\n{", b"v1\n[]", b"v1\n{}", b"v7\n" + good[3:], b"\xff"):
        store.put("0", content)
        with refused(BROKEN):
            opened(table, store)
    values = json.loads(good.partition(b"\n")[2])
    store.put("0", b"v1\n" + json.dumps({**values, "dataSchemaJson": "{"}).encode())
    with refused(ErrorCode.STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED):
        opened(table, store)
    store.put("0", b"v1\n" + json.dumps({**values, "tableId": "other"}).encode())
    with refused(ErrorCode.STREAMING_SCHEMA_LOG_INCOMPATIBLE_TABLE_ID):
        opened(table, store)
    store.put("0", good)
    store.put("2", good)
    with refused(BROKEN):
        opened(table, store)


def test_entries_are_read_as_they_are_written(table: Table, store: LocalStore) -> None:
    opened(table, store).latest(None)
    entry = SchemaLog.read(store, TABLE_ID).current
    assert entry is not None
    assert parse_tracked(entry.text().encode(), "here") == entry
    old = replace(entry, configuration=None, protocol=None, previous=3)
    assert parse_tracked(old.text().encode(), "here") == old
    read = TrackedRead.of(table.log(), SchemaLog(store=store, number=0, current=old)).snapshot
    assert read.protocol == MAPPED


def test_two_streams_with_one_log(table: Table, store: LocalStore) -> None:
    first, second = opened(table, store), opened(table, store)
    first.latest(None)
    with refused(CONFLICT):
        second.latest(None)
    with refused(CONFLICT):
        opened(table, store, path="file:/other/sources/0")


def test_a_frame_of_before_the_change(table: Table, store: LocalStore) -> None:
    log = table.log()
    old = TrackedRead.of(log, SchemaLog.read(store, TABLE_ID))
    opened(table, store).latest(None)
    entry = TrackedSchema.of(columns(A), MAPPED, 1, PATH)
    SchemaLog.read(store, TABLE_ID).with_entry(entry)
    tracking = StreamTracking(log, old, AllowedChanges())
    with refused(ErrorCode.STREAMING_SCHEMA_MISMATCH_ON_RESTART):
        tracking.begin(PATH, {})


def test_what_a_user_allows() -> None:
    old = TrackedSchema.of(columns(A, column("d", "p-d")), MAPPED, 1, PATH)
    new = TrackedSchema.of(columns(replace(A, name="z")), MAPPED, 5, PATH)
    prefix = "spark.databricks.delta.streaming."
    both = {"allowSourceColumnRename": "always", "allowSourceColumnDrop": "5"}
    AllowedChanges(options=both).require(old, new)
    AllowedChanges(settings={f"{prefix}allowSourceColumnRenameAndDrop": "Always"}).require(old, new)
    with pytest.raises(DeltaError, match="RENAME AND DROP COLUMN") as told:
        AllowedChanges(options={**both, "allowSourceColumnDrop": "4"}).require(old, new)
    number = str(told.value).partition(".ckpt_")[2].partition(" ")[0]
    one = {f"{prefix}allowSourceColumnRenameAndDrop.ckpt_{number}": "5"}
    AllowedChanges(settings=one).require(old, new)
    with refused(NOT_ALLOWED):
        AllowedChanges(settings=one).require(old, replace(new, version=6))
    with refused(NOT_ALLOWED):
        AllowedChanges(settings={f"{prefix}allowSourceColumnRename": "always"}).require(old, new)


def test_a_type_that_is_another_one() -> None:
    entry = TrackedSchema.of(columns(A), MAPPED, 1, PATH)
    narrow = TrackedSchema.of(columns(column("a", "p-a", INTEGER)), MAPPED, 2, PATH)
    with refused(ErrorCode.SCHEMA_CHANGED_WITH_VERSION):
        AllowedChanges(options={"allowSourceColumnTypeChange": "always"}).require(entry, narrow)
    wider = replace(entry, version=3)
    with pytest.raises(DeltaError, match="'a': INT -> BIGINT"):
        AllowedChanges().require(narrow, wider)
    AllowedChanges(options={"allowSourceColumnTypeChange": "3"}).require(narrow, wider)
