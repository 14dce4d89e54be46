from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from puredelta.errors import (
    CorruptTableError,
    ErrorCode,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.log.maintenance.checkpoint_write import write_checkpoint as write_own_checkpoint
from puredelta.log.replay.checkpoint_read import checkpoint_hint_checksum
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import (
    SIDECAR_DIRECTORY,
    classic_checkpoint_name,
    commit_name,
    log_path,
)
from puredelta.store.base import StorageError, StoredFile
from puredelta.store.local import LocalStore
from tests.faults import FailAt, MemoryStore
from tests.log.log_files import (
    METADATA,
    PROTOCOL,
    Json,
    add,
    compacted_name,
    features,
    metadata,
    remove,
    write_checkpoint,
    write_commit,
    write_compacted,
    write_parts,
    write_table,
    write_v2_checkpoint,
)

HINT = log_path("_last_checkpoint")


def _table(commits: int = 4) -> MemoryStore:
    store = MemoryStore()
    write_table(store, *([add(f"f{v}")] for v in range(commits)))
    return store


def _paths(log: TableLog, **where: int) -> list[str]:
    return [a.path for a in log.snapshot(**where).files.adds()]


def _checkpoint(store: MemoryStore, version: int) -> None:
    write_checkpoint(
        store, version, PROTOCOL, METADATA, *(add(f"f{v}") for v in range(version + 1))
    )


class Counting(MemoryStore):
    """Counts the files that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, path: str) -> bytes:
        self.reads.append(path.rsplit("/", 1)[-1])
        return super().read(path)


# --- what a snapshot says --------------------------------------------------------------------


def test_a_snapshot_of_the_newest_and_of_an_older_version() -> None:
    store = _table()
    log = TableLog(store)
    snapshot = log.snapshot()
    assert (snapshot.version, snapshot.root_uri) == (3, "memory:/table")
    assert snapshot.timestamp_ms == store.modified_ms[log_path(commit_name(3))]
    assert (snapshot.in_commit_timestamp_ms, snapshot.last_checkpoint_version) == (None, None)
    assert snapshot.metadata.id == "table-1"
    assert snapshot.config.partition_columns == ("p",)
    assert _paths(log) == ["f0", "f1", "f2", "f3"]
    assert _paths(log, version=1) == ["f0", "f1"]
    assert log.latest_version() == 3
    assert log.exists()


def test_the_schema_of_a_version_is_its_own() -> None:
    store = _table(2)
    write_commit(store, 2, metadata(delta__appendOnly="true"))
    log = TableLog(store)
    assert log.snapshot().config.properties.append_only
    assert not log.snapshot(version=1).config.properties.append_only


def test_a_table_is_at_every_path_that_leads_to_it(tmp_path: Path) -> None:
    write_table(LocalStore(tmp_path / "table"), [add("f0")])
    (tmp_path / "link").symlink_to("table")
    (tmp_path / "other").mkdir()
    log = TableLog.open(str(tmp_path / "link"))
    assert log.is_at(str(tmp_path / "table"))
    assert log.is_at(str(tmp_path / "other" / ".." / "table"))
    assert not log.is_at(str(tmp_path / "other"))
    assert not log.is_at(str(tmp_path / "gone"))


def test_opening_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "my table%20é#1"
    write_table(LocalStore(root), [add("f0")])
    monkeypatch.chdir(tmp_path)
    for location in (str(root), f"file:{root}", f"file://{root}/", root.name):
        log = TableLog.open(location)
        assert log.root_uri == f"file:{root}"
        assert log.is_at(f"file:{root}/")
        assert not log.is_at(f"{root}/other")
        assert _paths(log) == ["f0"]


# --- no table --------------------------------------------------------------------------------


def test_a_missing_path_and_a_directory_without_a_log(tmp_path: Path) -> None:
    missing = TableLog.open(str(tmp_path / "missing"))
    assert not missing.exists()
    with pytest.raises(TableNotFoundError, match="missing doesn't exist") as caught:
        missing.snapshot()
    assert caught.value.code is ErrorCode.PATH_DOES_NOT_EXIST
    (tmp_path / "plain").mkdir()
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    (tmp_path / "file").touch()
    for name in ("plain", "empty", "file"):
        log = TableLog.open(str(tmp_path / name))
        assert log.latest_version() is None
        assert log.commits_after(-1) == ()
        with pytest.raises(TableNotFoundError, match=f"{name} doesn't exist") as caught:
            log.snapshot()
        assert caught.value.code is ErrorCode.TABLE_NOT_FOUND
        with pytest.raises(TableNotFoundError):
            log.snapshot(version=0)
        with pytest.raises(TableNotFoundError):
            log.history()


def test_a_hint_alone_is_no_table() -> None:
    store = MemoryStore()
    store.put(HINT, b'{"version":3,"size":1}')
    assert not TableLog(store).exists()
    with pytest.raises(TableNotFoundError):
        TableLog(store).snapshot()


@pytest.mark.parametrize("missing", [PROTOCOL, METADATA])
def test_a_log_without_protocol_or_metadata(missing: Json) -> None:
    store = MemoryStore()
    write_commit(store, 0, *(a for a in (PROTOCOL, METADATA, add("a")) if a is not missing))
    word = "protocol" if missing is PROTOCOL else "metadata"
    with pytest.raises(CorruptTableError, match=f"The {word} of the Delta table") as caught:
        TableLog(store).snapshot()
    assert caught.value.code is ErrorCode.STATE_RECOVER_ERROR


def test_unknown_reader_features_are_refused() -> None:
    store = MemoryStore()
    write_commit(store, 0, features("timeMachine"), METADATA)
    with pytest.raises(UnsupportedError, match="timeMachine") as caught:
        TableLog(store).snapshot()
    assert caught.value.code is ErrorCode.UNSUPPORTED_FEATURES_FOR_READ


@pytest.mark.parametrize("version", [-1, 4, 99])
@pytest.mark.parametrize("warm", [False, True])
def test_versions_outside_are_named_with_the_range(version: int, warm: bool) -> None:
    store = _table()
    _checkpoint(store, 2)
    store.put(HINT, b'{"version":2,"size":1}')
    log = TableLog(store)
    if warm:
        log.snapshot()
    with pytest.raises(TableNotFoundError, match=rf"version {version}\. Available.*\[0, 3\]") as c:
        log.snapshot(version=version)
    assert c.value.code is ErrorCode.VERSION_NOT_FOUND


def test_version_and_time_together() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        TableLog(_table()).snapshot(version=1, timestamp_ms=5)
    assert caught.value.getCondition() == "DELTA_ONEOF_IN_TIMETRAVEL"


# --- hints and checkpoints -------------------------------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [
        b'{"version":2,"size":1}',
        b'{"version":1,"size":1}',
        b'{"version":3,"size":1}',
        b'{"version":99,"size":1}',
        b'{"version":2,"checksum":"wrong"}',
        b'{"vers',
        b"",
    ],
)
def test_a_hint_is_never_trusted(hint: bytes) -> None:
    store = _table()
    _checkpoint(store, 2)
    store.put(HINT, hint)
    for log in (TableLog(store), TableLog(store)):
        assert log.latest_version() == 3
        assert _paths(log, version=0) == ["f0"]
        assert _paths(log) == ["f0", "f1", "f2", "f3"]
    assert TableLog(store).snapshot().last_checkpoint_version == 2


def test_a_hint_to_a_deleted_checkpoint_falls_back_to_the_commits() -> None:
    store = _table()
    store.put(HINT, b'{"version":2,"size":1}')
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]


def test_a_checkpoint_saves_reading_the_commits_before_it() -> None:
    store = Counting()
    write_table(store, *([add(f"f{v}")] for v in range(4)))
    _checkpoint(store, 2)
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]
    assert [n for n in store.reads if n.endswith(".json")] == [commit_name(3)]


def test_compaction_files_save_reading_commits() -> None:
    store = Counting()
    write_table(store, *([add(f"f{v}")] for v in range(4)))
    write_compacted(store, 1, 2, add("f1"), add("f2"))
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]
    assert commit_name(1) not in store.reads


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dv", [None, "v"])
def test_a_compaction_that_adds_and_removes_one_file_is_not_believed(
    *, backwards: bool, dv: str | None
) -> None:
    store = MemoryStore()
    again, gone = [add("f1", dv=dv)], [remove("f1", dv=dv)]
    write_table(store, [add("f0")], again, gone, [add("f2", dv=dv)], [remove("f2", dv=dv)])
    write_commit(store, 5, *again)
    both = [*gone, *again, add("f2", dv=dv), remove("f2", dv=dv)]
    write_compacted(store, 1, 4, *(reversed(both) if backwards else both))
    assert _paths(TableLog(store), version=4) == ["f0"]
    assert _paths(TableLog(store)) == ["f0", "f1"]


def test_a_compaction_may_replace_the_vector_of_a_file() -> None:
    store = Counting()
    write_table(store, [add("f0")], [remove("f0"), add("f0", dv="v")], [add("f1")])
    write_compacted(store, 1, 2, add("f0", dv="v"), remove("f0"), add("f1"))
    assert _paths(TableLog(store)) == ["f0", "f1"]
    assert commit_name(1) not in store.reads


def test_a_large_compaction_that_adds_and_removes_one_file_is_not_believed() -> None:
    store = MemoryStore()
    many = [add(f"f{n}", stats="x" * 100) for n in range(5_000)]
    write_table(store, [], many, [remove("f7")])
    write_compacted(store, 1, 2, remove("f7"), *many)
    assert len(TableLog(store).snapshot().files) == 4_999


@pytest.mark.parametrize("content", [b"", b"{", b'{"add":{"path":"x"}}', b"[" * 100_000])
def test_the_commits_count_where_a_compaction_cannot_be_read(content: bytes) -> None:
    store = _table()
    store.put(log_path(compacted_name(1, 2)), content)
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]


def test_an_unreadable_checkpoint_is_gone_around() -> None:  # as delta-spark 4.4.0 does
    store = _table(6)
    for version in (2, 3, 4):
        _checkpoint(store, version)
    for version in (3, 4):
        store.put(log_path(classic_checkpoint_name(version)), b"PAR1 torn")
    store.put(HINT, b'{"version":4,"size":1}')
    snapshot = TableLog(store).snapshot()
    assert (len(snapshot.files), snapshot.last_checkpoint_version) == (6, 2)


def test_an_unreadable_checkpoint_that_nothing_replaces_is_named() -> None:
    store = _table(6)
    store.put(log_path(classic_checkpoint_name(4)), b"PAR1 torn")
    store.delete(log_path(commit_name(0)))
    with pytest.raises(CorruptTableError, match=r"4\.checkpoint\.parquet cannot be read") as caught:
        TableLog(store).snapshot()
    assert caught.value.code is ErrorCode.LOG_CORRUPTED


_NO_TEXT = b"f\xff"


def _with_a_byte_that_is_no_text(store: MemoryStore, path: str) -> None:
    content = store.files[path]
    assert b"f1" in content
    store.put(path, content.replace(b"f1", _NO_TEXT))


@pytest.mark.parametrize("form", ["classic", "parts", "json", "parquet"])
def test_a_path_in_a_checkpoint_that_is_no_utf8_is_gone_around(form: str) -> None:
    """Whether the page has a checksum or not: writers of others leave it out."""
    store, small = _table(), [features("v2Checkpoint"), METADATA]
    files = [add("f0"), add("f1"), add("f2")]
    match form:
        case "classic":
            write_checkpoint(store, 2, PROTOCOL, METADATA, *files)
        case "parts":
            write_parts(store, 2, [[PROTOCOL, METADATA], files])
        case _:
            write_v2_checkpoint(store, 2, small, files, form=form)
    (damaged,) = [
        p for p, content in store.files.items() if b"PAR1" in content and b"f1" in content
    ]
    _with_a_byte_that_is_no_text(store, damaged)
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]
    store.delete(log_path(commit_name(0)))
    with pytest.raises(CorruptTableError, match="cannot be read as a checkpoint") as caught:
        TableLog(store).snapshot()
    assert damaged in str(caught.value)
    assert caught.value.code is ErrorCode.LOG_CORRUPTED


def test_a_page_that_is_not_what_was_written_is_gone_around() -> None:
    store = _table()
    write_own_checkpoint(store, TableLog(store).snapshot(version=2), now_ms=0)
    path = log_path(classic_checkpoint_name(2))
    store.put(path, store.files[path].replace(b"f1", b"g1"))
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]
    store.delete(log_path(commit_name(0)))
    with pytest.raises(CorruptTableError, match=r"2\.checkpoint\.parquet cannot be read"):
        TableLog(store).snapshot()


def test_a_checkpoint_with_other_files_than_its_hint_says_is_gone_around() -> None:
    store = _table()
    write_checkpoint(store, 2, PROTOCOL, METADATA, add("f0"))
    store.put(HINT, b'{"version":2,"size":5,"numOfAddFiles":3}')
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]
    store.delete(log_path(commit_name(0)))
    with pytest.raises(CorruptTableError, match="names 1 files, and _last_checkpoint says 3"):
        TableLog(store).snapshot()
    store.put(HINT, b'{"version":1,"size":5,"numOfAddFiles":3}')
    assert _paths(TableLog(store)) == ["f0", "f3"]  # a hint of another version says nothing of it


def test_a_checkpoint_with_fewer_actions_than_its_hint_says_counts_if_commits_are_gone() -> None:
    """Tombstones come and go with the time, so two checkpoints of a version may differ in them."""
    store = _table()
    _checkpoint(store, 2)
    hint = {"version": 2, "size": 1_000}
    store.put(HINT, json.dumps({**hint, "checksum": checkpoint_hint_checksum(hint)}).encode())
    log = TableLog(store)
    assert _paths(log) == ["f0", "f1", "f2", "f3"]
    assert log.snapshot().last_checkpoint_version is None
    store.delete(log_path(commit_name(0)))
    assert _paths(TableLog(store)) == ["f0", "f1", "f2", "f3"]


def test_a_missing_sidecar_is_an_error_even_if_commits_could_replace_it() -> None:
    store = _table()
    write_v2_checkpoint(store, 2, [features("v2Checkpoint"), METADATA], [add("f0")])
    store.delete(f"{SIDECAR_DIRECTORY}/2-0.parquet")
    with pytest.raises(CorruptTableError, match=r"_sidecars/2-0\.parquet") as caught:
        TableLog(store).snapshot()
    assert caught.value.code is ErrorCode.LOG_FILE_NOT_FOUND


# --- refreshing ------------------------------------------------------------------------------


def test_a_refresh_reads_the_new_commits_only() -> None:
    store = Counting()
    write_table(store, *([add(f"f{v}")] for v in range(4)))
    log = TableLog(store)
    first = log.snapshot()
    store.reads.clear()
    assert log.snapshot() is first
    assert store.reads == []
    write_commit(store, 4, remove("f1"), add("f4"))
    write_commit(store, 5, add("f5"))
    second = log.snapshot()
    assert store.reads == [commit_name(4), commit_name(5)]
    assert [a.path for a in second.files.adds()] == ["f0", "f2", "f3", "f4", "f5"]
    assert second.tombstones["path"].to_pylist() == ["f1"]
    assert second.config is first.config
    assert len(first.files) == 4


def test_a_refresh_to_a_version_and_past_it() -> None:
    store = _table()
    log = TableLog(store)
    log.snapshot(version=1)
    log.snapshot()
    for version in (4, 5, 6):
        write_commit(store, version, add(f"f{version}"))
    assert log.snapshot(version=5).version == 5
    assert log.snapshot(version=4).version == 4
    assert log.snapshot().version == 6


def test_a_refresh_notices_new_metadata_and_checkpoints() -> None:
    store = _table()
    log = TableLog(store)
    log.snapshot()
    _checkpoint(store, 3)
    assert log.snapshot().last_checkpoint_version == 3
    write_commit(store, 4, metadata(delta__appendOnly="true"))
    assert log.snapshot().config.properties.append_only
    write_commit(store, 5, features("timeMachine"))
    with pytest.raises(UnsupportedError):
        log.snapshot()


def test_a_table_made_anew_is_read_anew() -> None:
    store = _table(2)
    log = TableLog(store)
    log.snapshot()
    store.delete_tree("")
    write_table(store, [add("n0")], [add("n1")], [add("n2")])
    assert _paths(log) == ["n0", "n1", "n2"]
    store.delete_tree("")
    write_table(store, [add("m0")])
    assert _paths(log) == ["m0"]
    assert log.latest_version() == 0
    store.delete_tree("")
    assert log.latest_version() is None
    with pytest.raises(TableNotFoundError):
        log.snapshot()


def test_commits_cleaned_up_between_refreshes() -> None:
    store = _table(2)
    log = TableLog(store)
    log.snapshot()
    for version in range(2, 8):
        write_commit(store, version, add(f"f{version}"))
    _checkpoint(store, 6)
    for version in range(6):
        store.delete(log_path(commit_name(version)))
    assert len(log.snapshot().files) == 8
    with pytest.raises(TableNotFoundError, match=r"\[6, 7\]"):
        log.snapshot(version=3)


class Blinking(MemoryStore):
    """A listing that raced with writers: it shows a later file but not an earlier one."""

    hidden: str = ""
    listings: int = 0

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        self.listings += 1
        hidden, self.hidden = self.hidden, ""
        return (f for f in super().list_from(directory, start) if f.name != hidden)


@pytest.mark.parametrize("warm", [False, True])
def test_a_gap_of_one_listing_is_no_gap(warm: bool) -> None:
    store = Blinking()
    write_table(store, *([add(f"f{v}")] for v in range(4)))
    log = TableLog(store)
    if warm:
        log.snapshot()
    for version in (4, 5):
        write_commit(store, version, add(f"f{version}"))
    store.hidden = commit_name(4)
    assert log.snapshot().version == 5
    store.hidden = commit_name(4)
    assert [c.version for c in log.commits_after(3)] == [4, 5]


def test_a_gap_that_stays_is_told_after_few_listings() -> None:
    store = Blinking()
    write_table(store, *([add(f"f{v}")] for v in range(4)))
    store.delete(log_path(commit_name(2)))
    with pytest.raises(CorruptTableError) as caught:
        TableLog(store).snapshot()
    assert caught.value.code is ErrorCode.VERSIONS_NOT_CONTIGUOUS
    assert store.listings <= 3


def test_threads_share_one_log() -> None:
    store = _table(1)
    log = TableLog(store)
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        last = 0
        try:
            while not done.is_set():
                snapshot = log.snapshot()
                assert len(snapshot.files) == snapshot.version + 1
                assert snapshot.version >= last
                last = snapshot.version
        except BaseException as failure:  # noqa: BLE001 - handed to the main thread
            failures.append(failure)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for version in range(1, 40):
        write_commit(store, version, add(f"f{version}"))
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert log.snapshot().version == 39


def test_failures_of_the_store_pass_and_do_no_harm() -> None:
    store = _table(3)
    _checkpoint(store, 1)
    for nth in range(1, 20):
        log = TableLog(FailAt(store, nth))
        try:
            snapshot = log.snapshot()
        except StorageError:
            snapshot = log.snapshot()
        assert len(snapshot.files) == 3


# --- winning commits -------------------------------------------------------------------------


def test_commits_after() -> None:
    store = _table()
    log = TableLog(store)
    assert log.commits_after(3) == ()
    assert [c.version for c in log.commits_after(-1)] == [0, 1, 2, 3]
    assert [c.version for c in log.commits_after(0, through=2)] == [1, 2]
    write_commit(store, 4, {"commitInfo": {"operation": "WRITE"}}, add("f4"))
    (commit,) = log.commits_after(3)
    assert commit.commit_info is not None
    assert commit.commit_info.operation == "WRITE"
    assert commit.modified_ms == store.modified_ms[log_path(commit_name(4))]
    write_commit(store, 6, add("f6"))
    with pytest.raises(CorruptTableError):
        log.commits_after(3)


def test_a_malformed_commit_is_named() -> None:
    store = _table()
    path = log_path(commit_name(2))
    store.put(path, store.read(path) + b'{"add":{"pa')
    with pytest.raises(CorruptTableError, match=rf"{path}, line 2"):
        TableLog(store).snapshot()
