"""VACUUM on a table in a directory: what goes, what stays, what the history says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import (
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from puredelta.commands.vacuum import (
    EVERYTHING,
    LAST_VACUUM,
    Inventory,
    Removed,
    VacuumScope,
    resolve_retention,
    vacuum,
)
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.maintenance.checkpoint_write import write_checkpoint
from puredelta.log.maintenance.garbage import find_garbage, visible_to_vacuum
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.store.base import StorageError, StoredDirectory, StoredFile
from puredelta.store.local import LocalStore
from tests.commands.sessions import FakeSession
from tests.faults import FailAt, Meddling, at_first
from tests.log.tables import WRITE, Client, add, create_table, feature_protocol, remove

HOUR_MS = 3_600_000
NOW_MS = 2_000_000_000_000
WEEK = timedelta(weeks=1)
UNNAMED = ".0123456789abcdef0123456789abcdef.tmp"
"""What a store has written, and was killed before it gave it a name."""
UNCHECKED = {"spark__databricks__delta__retentionDurationCheck__enabled": "false"}


def age(root: Path, path: str, hours: float) -> None:
    """Make a file, if it is not there, and say how old it is."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if path.endswith("/"):
        file.mkdir(exist_ok=True)
    elif not file.exists():
        file.write_bytes(b"12345")
    seconds = (NOW_MS - hours * HOUR_MS) / 1000
    os.utime(file, (seconds, seconds))


def run(
    log: TableLog,
    hours: float | None = None,
    *,
    dry: bool = False,
    scope: VacuumScope = EVERYTHING,
    **settings: str,
) -> Any:
    session: Any = FakeSession(**settings)
    return vacuum(
        session, log, retention_hours=hours, dry_run=dry, scope=scope, clock=lambda: NOW_MS
    )


def operations(log: TableLog) -> list[tuple[str | None, dict[str, Any]]]:
    found = [entry.commit_info for entry in log.history()]
    return [(info.operation, dict(info.operation_metrics or {})) for info in found if info]


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """A table with one file in use, one removed long ago, one lately, and much besides."""
    root = tmp_path / "table"
    vector = DeletionVectorDescriptor(
        storage_type="u",
        path_or_inline="^-aqEH.-t@S}K{vb[*k^",
        offset=1,
        size_bytes=3,
        cardinality=1,
    )
    table = create_table(
        LocalStore(root),
        add("a%20b.parquet"),
        protocol=feature_protocol(readers=("deletionVectors",)),
    )
    transaction = Client(table, table.snapshot())
    gone = remove("old.parquet", deleted_ms=NOW_MS - 200 * HOUR_MS)
    lately = remove("lately.parquet", deleted_ms=NOW_MS - 2 * HOUR_MS, deletion_vector=vector)
    transaction.commit([gone, lately], WRITE)
    for path in (
        *("a b.parquet", "old.parquet", "lately.parquet", "orphan.parquet", "job-1/orphan.parquet"),
        *("_change_data/cdc-1.parquet", "_puredelta_staging-1/x.parquet", "_hidden/x.parquet"),
        *(".hidden/x.parquet", "p=1/_temporary/x.parquet", ".note", "empty/inner/"),
        *(UNNAMED, f"ab/{UNNAMED}", f"_delta_log/{UNNAMED}", f".hidden/{UNNAMED}", ".a.tmp"),
        "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
    ):
        age(root, path, 300)
    age(root, "fresh.parquet", 1)
    age(root, "job-2/", 1)
    for directory in ("empty/inner", "empty"):
        age(root, directory + "/", 300)
    return table


def test_garbage_goes_and_what_may_be_needed_stays(log: TableLog, tmp_path: Path) -> None:
    root = tmp_path / "table"
    outcome = run(log)
    assert set(outcome.paths) == {
        *("old.parquet", "orphan.parquet", "job-1/orphan.parquet"),
        *("_change_data/cdc-1.parquet", "_puredelta_staging-1/x.parquet", "empty/inner"),
        *("_puredelta_staging-1", UNNAMED, f"ab/{UNNAMED}"),
    }
    assert outcome.num_deleted == 9
    for path in outcome.paths:
        assert not (root / path).exists()
    for path in (
        *("a b.parquet", "lately.parquet", "fresh.parquet", "_hidden/x.parquet", "job-2"),
        *(".hidden/x.parquet", ".note", "p=1/_temporary/x.parquet", ".a.tmp"),
        *(f"_delta_log/{UNNAMED}", f".hidden/{UNNAMED}"),
        "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
    ):
        assert (root / path).exists(), path
    ended, started, *_ = operations(log)
    assert started == ("VACUUM START", {"numFilesToDelete": "9", "sizeOfDataToDelete": "35"})
    assert ended[0] == "VACUUM END"
    assert ended[1]["numDeletedFiles"] == "9"
    assert log.snapshot().files.adds().__next__().path == "a%20b.parquet"


def test_lite_deletes_what_commits_removed_and_lists_nothing(log: TableLog, tmp_path: Path) -> None:
    root = tmp_path / "table"
    assert run(log, dry=True, scope=Removed()).paths == ("old.parquet",)
    outcome = run(log, scope=Removed())
    assert (outcome.paths, outcome.num_deleted) == (("old.parquet",), 1)
    for path in ("a b.parquet", "lately.parquet", "orphan.parquet", "job-1/orphan.parquet"):
        assert (root / path).exists(), path
    assert [name for name, _ in operations(log)[:2]] == ["VACUUM END", "VACUUM START"]
    assert json.loads((root / LAST_VACUUM).read_text()) == {
        "latestCommitVersionOutsideOfRetentionWindow": 3
    }
    assert run(log, dry=True, scope=Removed()).paths == ()


def test_lite_needs_the_commits_since_the_last_vacuum(log: TableLog, tmp_path: Path) -> None:
    commit = tmp_path / "table" / "_delta_log" / f"{0:020}.json"
    age(tmp_path / "table", "_delta_log/_last_vacuum_info", 1)  # what is no JSON says nothing
    write_checkpoint(log.store, log.snapshot(), now_ms=NOW_MS)
    commit.unlink()
    with pytest.raises(InvalidRequestError, match="run VACUUM FULL") as error:
        run(TableLog.open(str(tmp_path / "table")), scope=Removed())
    assert error.value.code is ErrorCode.CANNOT_VACUUM_LITE
    assert (tmp_path / "table" / "old.parquet").exists()


class Rows:
    """A frame of an inventory, as far as VACUUM asks for one."""

    def __init__(self, rows: list[tuple[str, int, bool, int]], length: DataType) -> None:
        self.rows = rows
        kinds: dict[str, DataType] = {
            "path": StringType(),
            "length": length,
            "isDir": BooleanType(),
        }
        kinds["modificationTime"] = LongType()
        self.schema = StructType([StructField(name, kind) for name, kind in kinds.items()])

    def where(self, condition: str) -> Rows:
        assert condition == "NOT isDir"
        self.rows = [row for row in self.rows if not row[2]]
        return self

    def select(self, *names: str) -> Rows:
        assert names == ("path", "length", "modificationTime")
        return self

    def toLocalIterator(self) -> Iterator[tuple[str, int, int]]:  # noqa: N802 - PySpark's name
        return iter([(path, size, time) for path, size, _, time in self.rows])


def test_an_inventory_is_the_listing(log: TableLog, tmp_path: Path) -> None:
    root = tmp_path / "table"
    named = [
        *("orphan.parquet", f"{root}/old.parquet", f"file:{root}/a b.parquet", "lately.parquet"),
        *("_hidden/x.parquet", "../outside.parquet", "/outside.parquet", "p=1/../orphan.parquet"),
        *("job-1/../../outside.parquet", "gone.parquet"),
    ]
    rows: Any = Rows([*((path, 5, False, 0) for path in named), ("empty", 0, True, 0)], LongType())
    (tmp_path / "outside.parquet").write_text("x")
    outcome = run(log, scope=Inventory(rows))
    assert set(outcome.paths) == {"orphan.parquet", "old.parquet", "gone.parquet"}
    for path in ("a b.parquet", "lately.parquet", "_hidden/x.parquet", "job-1/orphan.parquet"):
        assert (root / path).exists(), path
    assert (tmp_path / "outside.parquet").exists()
    assert not (root / LAST_VACUUM).exists()


def test_an_inventory_has_these_columns(log: TableLog) -> None:
    rows: Any = Rows([], IntegerType())
    with pytest.raises(InvalidRequestError, match="length BIGINT") as error:
        run(log, scope=Inventory(rows))
    assert error.value.code is ErrorCode.INVALID_INVENTORY_SCHEMA


def test_files_of_the_table_stay_however_the_log_spells_its_root(tmp_path: Path) -> None:
    """An absolute path through a link names a file of the table; one of another table does not."""
    root, link = tmp_path / "table", tmp_path / "link"
    link.symlink_to(root)
    paths = [f"file:{link}/p=1/a%20b.parquet", f"file://{root}/c.parquet", "file:/other/d.parquet"]
    log = create_table(LocalStore(root), *map(add, paths))
    for name in ("p=1/a b.parquet", "c.parquet", "d.parquet"):
        age(root, name, 24 * 30)
    run(log)
    assert not (root / "d.parquet").exists()
    assert (root / "p=1/a b.parquet").exists()
    assert (root / "c.parquet").exists()


def test_without_retention_only_what_is_in_use_stays(log: TableLog, tmp_path: Path) -> None:
    run(log, 0, **UNCHECKED)
    assert not (tmp_path / "table" / "lately.parquet").exists()
    assert not (tmp_path / "table" / "fresh.parquet").exists()
    assert (tmp_path / "table" / "a b.parquet").exists()
    info = log.history()[1].commit_info
    assert info is not None
    assert info.operation_parameters == {
        "retentionCheckEnabled": False,
        "specifiedRetentionMillis": 0,
        "defaultRetentionMillis": 604_800_000,
    }


def test_a_dry_run_changes_nothing(log: TableLog, tmp_path: Path) -> None:
    outcome = run(log, dry=True)
    assert f"{log.root_uri}/orphan.parquet" in outcome.uris
    assert outcome.num_deleted == 0
    assert (tmp_path / "table" / "orphan.parquet").exists()
    assert log.latest_version() == 1


def test_commits_may_be_switched_off(log: TableLog) -> None:
    run(log, spark__databricks__delta__vacuum__logging__enabled="false")
    assert log.latest_version() == 1


def test_a_failure_is_in_the_history(log: TableLog) -> None:
    failing = FailAt(log.store, 1, only=frozenset({"delete"}))
    with pytest.raises(StorageError):
        run(TableLog(failing))
    info = log.history()[0].commit_info
    assert info is not None
    assert info.operation_parameters == {"status": "FAILED"}


def test_a_file_that_comes_back_before_it_is_deleted_stays(log: TableLog, tmp_path: Path) -> None:
    """Another writer restores a version that has it, after the VACUUM has decided."""

    def restore() -> None:
        Client(log, log.snapshot()).commit([add("old.parquet")], WRITE)

    store = Meddling(log.store, before=at_first("put_if_absent", restore))
    outcome = run(TableLog(store))
    assert "orphan.parquet" in outcome.paths
    assert "old.parquet" not in outcome.paths
    assert (tmp_path / "table" / "old.parquet").exists()
    assert operations(log)[0][1]["numDeletedFiles"] == "8"


def test_a_file_that_comes_back_under_another_spelling_stays() -> None:
    """A listing of a file system that folds names need not spell a path as the log does."""
    found = find_garbage(
        [StoredFile(path="p=A/x.parquet", size_bytes=1, modified_ms=1)],
        referenced=(),
        modified_before_ms=2,
    )
    assert len(found.files) == 1
    assert found.without({"p=a/x.parquet"}).files == ()


def test_partition_directories_are_never_hidden() -> None:
    wanted = visible_to_vacuum(["_p"])
    names = ("_p=1", "_q=1", ".x", "_change_data", "_delta_log", "_delta_index", "job-1")
    assert [name for name in names if wanted(name)] == [
        *("_p=1", "_change_data", "_delta_index", "job-1")
    ]


JOB = "job-20260101-000000-0123456789ab"
TASK = "_temporary/0/_temporary/attempt_2026_m_000000_0"


@pytest.mark.parametrize("top", [JOB, f"aZ3-{JOB}", "_puredelta_staging-1"])
def test_what_a_killed_job_has_left_goes_at_once(log: TableLog, tmp_path: Path, top: str) -> None:
    """Spark moves nothing out of ``_temporary`` before a job ends."""
    root = tmp_path / "table"
    left = [f"{top}/{TASK}/part-0.parquet", f"{top}/{TASK}/.part-0.parquet.crc"]
    left += [f"{top}/_temporary/0/task_1/p=1/part-1.parquet", f"{top}/.part-2.parquet.crc"]
    for path in left:
        age(root, path, 300)
    outcome = run(log)
    assert f"{top}/{TASK}/part-0.parquet" in outcome.paths
    assert not (root / top).exists()


def test_a_job_at_work_keeps_what_it_has(log: TableLog, tmp_path: Path) -> None:
    root = tmp_path / "table"
    for path in (f"{JOB}/{TASK}/part-0.parquet", f"{JOB}/{TASK}/.part-0.parquet.crc"):
        age(root, path, 1)
    age(root, f"{JOB}/_temporary/0/task_1/part-1.parquet", 300)
    run(log)
    assert (root / JOB / TASK / "part-0.parquet").exists()
    assert (root / JOB / TASK / ".part-0.parquet.crc").exists()
    assert not (root / JOB / "_temporary/0/task_1").exists()


def test_files_in_use_keep_their_directory_and_checksum(log: TableLog, tmp_path: Path) -> None:
    root = tmp_path / "table"
    Client(log, log.snapshot()).commit([add(f"{JOB}/part-0.parquet")], WRITE)
    kept = (f"{JOB}/part-0.parquet", f"{JOB}/.part-0.parquet.crc")
    for path in (*kept, f"{JOB}/part-1.parquet", f"{JOB}/.part-1.parquet.crc"):
        age(root, path, 300)
    assert [path for path in run(log).paths if path.startswith(JOB)] == [f"{JOB}/part-1.parquet"]
    assert {path.name for path in (root / JOB).iterdir()} == {Path(path).name for path in kept}


def test_nobody_elses_temporary_directories_are_touched(log: TableLog, tmp_path: Path) -> None:
    """The protocol hides names that begin with an underscore."""
    for top in ("job-1", "p=1", f"x/{JOB}", "_hidden", "_puredelta-other"):
        age(tmp_path / "table", f"{top}/_temporary/part-0.parquet", 300)
        run(log)
        assert (tmp_path / "table" / top / "_temporary/part-0.parquet").exists(), top


@pytest.mark.parametrize(
    ("in_log", "listed"),
    [("p=a/x.parquet", "p=A/x.parquet"), ("p=\u00e9/x.parquet", "p=e\u0301/x.parquet")],
)
def test_a_file_in_use_stays_however_its_directory_is_spelled(in_log: str, listed: str) -> None:
    """A file system that ignores case, or Unicode forms, lists the older spelling."""
    files = [
        StoredFile(path=path, size_bytes=3, modified_ms=1) for path in (listed, "p=A/y.parquet")
    ]
    garbage = find_garbage(files, referenced={in_log}, modified_before_ms=9)
    assert [file.path for file in garbage.files] == ["p=A/y.parquet"]


def test_directories_go_from_the_inside_out() -> None:
    garbage = find_garbage(
        [
            StoredDirectory(path="a", modified_ms=1, is_empty=False),
            StoredDirectory(path="a/b", modified_ms=1, is_empty=True),
            StoredDirectory(path="c", modified_ms=1, is_empty=True),
            StoredDirectory(path="new", modified_ms=9, is_empty=True),
            StoredFile(path="a/x", size_bytes=3, modified_ms=1),
            StoredFile(path="a/y", size_bytes=5, modified_ms=9),
        ],
        referenced=(),
        modified_before_ms=9,
    )
    assert garbage.directories == ("a/b", "c")
    assert (garbage.num_directories_seen, garbage.size_bytes, garbage.num_paths) == (5, 3, 3)


@pytest.mark.parametrize(
    ("hours", "check", "code"),
    [
        (-1, False, ErrorCode.VACUUM_RETENTION_PERIOD_NEGATIVE),
        (0, True, ErrorCode.VACUUM_RETENTION_PERIOD_TOO_SHORT),
        (0.4, True, ErrorCode.VACUUM_RETENTION_PERIOD_TOO_SHORT),
    ],
)
def test_too_short_a_time_is_refused(hours: float, check: bool, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as error:
        resolve_retention(hours, default=WEEK, check_enabled=check, ignore_shorter=True)
    assert error.value.code is code


@pytest.mark.parametrize(
    ("hours", "ignore_shorter", "effective"),
    [
        (None, True, WEEK),
        (167.5, True, WEEK),
        (100, True, WEEK),  # the reference's default: only 0 is shorter than the table's own
        (100, False, timedelta(hours=100)),
        (0.4, True, timedelta()),
        (1000, True, timedelta(hours=1000)),
    ],
)
def test_hours_that_count(hours: float | None, ignore_shorter: bool, effective: timedelta) -> None:
    retention = resolve_retention(
        hours, default=WEEK, check_enabled=False, ignore_shorter=ignore_shorter
    )
    assert retention.effective == effective
