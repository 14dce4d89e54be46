"""Log files beyond the retention time (X-38)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.log.maintenance.checkpoint_write import write_checkpoint
from puredelta.log.maintenance.log_cleanup import clean_up_log, cutoff_time
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import parse_log_name
from puredelta.protocol.features.properties import TableProperties
from puredelta.store.base import StorageError
from tests.faults import FailAt, MemoryStore
from tests.log.tables import WRITE, Client, add, create_table, feature_protocol

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000


def table(store: MemoryStore, *, checkpoints: tuple[int, ...], **properties: str) -> TableLog:
    """Ten versions, one a day, the last one now."""
    log = create_table(store, add("0"), delta__checkpointInterval="1000", **properties)
    for number in range(1, 10):
        Client(log, log.snapshot()).commit([add(str(number))], WRITE)
    for version in checkpoints:
        write_checkpoint(store, log.snapshot(version=version), now_ms=NOW_MS)
    for path in store.files:
        name = parse_log_name(path.rsplit("/", 1)[-1])
        if name is not None:
            store.modified_ms[path] = NOW_MS - (9 - name.version) * DAY_MS
    return log


def clean(store: MemoryStore, **properties: str) -> int:
    configuration = {key.replace("__", "."): value for key, value in properties.items()}
    return clean_up_log(store, TableProperties.of(configuration), now_ms=NOW_MS)


def commits(store: MemoryStore) -> list[int]:
    return sorted(int(p[11:31]) for p in store.files if p.endswith(".json") and p[11] == "0")


def test_all_before_the_newest_old_checkpoint_goes() -> None:
    store = MemoryStore()
    log = table(store, checkpoints=(2, 5, 8))
    assert clean(store, delta__logRetentionDuration="interval 2 days") == 6
    assert commits(store) == [5, 6, 7, 8, 9]
    fresh = TableLog(store)
    assert len(fresh.snapshot().files) == 10
    assert len(fresh.snapshot(version=5).files) == 6
    assert len(log.snapshot(version=7).files) == 8
    assert clean(store, delta__logRetentionDuration="interval 2 days") == 0


@pytest.mark.parametrize(
    ("checkpoints", "properties"),
    [
        ((), {}),  # nothing could rebuild the table
        ((8,), {}),  # too young
        ((5,), {"delta__enableExpiredLogCleanup": "false"}),
        ((5,), {"delta__requireCheckpointProtectionBeforeVersion": "6"}),
    ],
)
def test_a_log_that_is_needed_stays(
    checkpoints: tuple[int, ...], properties: dict[str, str]
) -> None:
    store = MemoryStore()
    table(store, checkpoints=checkpoints)
    assert clean(store, delta__logRetentionDuration="interval 2 days", **properties) == 0
    assert commits(store) == list(range(10))


def test_protected_checkpoints_go_all_together() -> None:
    store = MemoryStore()
    table(store, checkpoints=(2, 5))
    keep = {"delta__requireCheckpointProtectionBeforeVersion": "5"}
    assert clean(store, delta__logRetentionDuration="interval 2 days", **keep) == 6


def test_checksums_and_compactions_go_other_files_stay() -> None:
    store = MemoryStore()
    table(store, checkpoints=(5,))
    for name in ("00000000000000000003.crc", "00000000000000000005.crc", "notes.txt"):
        store.put(f"_delta_log/{name}", b"x")
    for low, high in ((2, 4), (5, 7), (6, 8)):
        store.put(f"_delta_log/{low:020d}.{high:020d}.compacted.json", b"x")
    clean(store, delta__logRetentionDuration="interval 2 days")
    left = {path.removeprefix("_delta_log/") for path in store.files}
    assert "00000000000000000003.crc" not in left
    assert {"00000000000000000005.crc", "notes.txt", "_last_checkpoint"} <= left
    assert [name for name in left if name.endswith(".compacted.json")] == [
        f"{6:020d}.{8:020d}.compacted.json"
    ]


def test_sidecars_go_with_their_last_checkpoint() -> None:
    store = MemoryStore()
    log = create_table(
        store,
        add("0"),
        protocol=feature_protocol(readers=("v2Checkpoint",)),
        delta__checkpointPolicy="v2",
        delta__checkpointInterval="1000",
    )
    for number in (1, 2):
        Client(log, log.snapshot()).commit([add(str(number))], WRITE)
        write_checkpoint(store, log.snapshot(), now_ms=NOW_MS)
    store.put("_delta_log/_sidecars/young.parquet", b"x")
    for path in list(store.files):
        store.modified_ms[path] = NOW_MS - 40 * DAY_MS
    store.modified_ms["_delta_log/_sidecars/young.parquet"] = NOW_MS
    before = {path for path in store.files if "_sidecars" in path}
    clean(store)
    after = {path for path in store.files if "_sidecars" in path}
    assert len(before) == 3
    assert len(after) == 2
    assert "_delta_log/_sidecars/young.parquet" in after
    assert len(TableLog(store).snapshot().files) == 3


def test_a_clean_up_cut_short_leaves_a_shorter_log() -> None:
    for nth in range(1, 7):
        store = MemoryStore()
        table(store, checkpoints=(2, 5))
        failing = FailAt(store, nth, only=frozenset({"delete"}))
        properties = TableProperties.of({"delta.logRetentionDuration": "interval 2 days"})
        with pytest.raises(StorageError):
            clean_up_log(failing, properties, now_ms=NOW_MS)
        fresh = TableLog(store)
        assert len(fresh.snapshot().files) == 10
        assert len(fresh.snapshot(version=6).files) == 7


@pytest.mark.parametrize("fails", [False, True])
def test_a_commit_cleans_up_after_its_checkpoint_and_outlives_a_failure(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    table(store, checkpoints=(5,))
    log = TableLog(FailAt(store, 1 if fails else 99, only=frozenset({"delete"})))
    meta = replace(
        log.snapshot().metadata, configuration={"delta.logRetentionDuration": "interval 2 days"}
    )
    transaction = Client(log, log.snapshot(), clock=lambda: NOW_MS)
    committed = transaction.commit([meta], WRITE, checkpoint=CheckpointWish.ALWAYS)
    assert committed.version == 10
    assert commits(store)[0] == (0 if fails else 5)
    assert [record.levelname for record in caplog.records] == (["WARNING"] if fails else [])


def test_the_cut_off_is_a_midnight() -> None:
    noon = NOW_MS // DAY_MS * DAY_MS + DAY_MS // 2
    assert cutoff_time(noon, timedelta(days=1)) == NOW_MS // DAY_MS * DAY_MS - DAY_MS


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_temporary_files_of_killed_writers_go_after_a_day(enabled: str) -> None:
    """They never got a name of the log, so no retention time is about them."""
    store = MemoryStore()
    table(store, checkpoints=())
    names = {f"_delta_log/{n}.{'0af9' * 8}.tmp" for n in ("", "_sidecars/")}
    others = {"_delta_log/.other.tmp", f"_delta_log/{'0af9' * 8}.tmp", f".{'0af9' * 8}.tmp"}
    young = {f"_delta_log/.{'1' * 32}.tmp"}
    for path in (*names, *others, *young):
        store.put(path, b"half a commit")
        store.modified_ms[path] = NOW_MS - (DAY_MS // 2 if path in young else 2 * DAY_MS)
    assert clean(store, delta__enableExpiredLogCleanup=enabled) == 0
    assert {path for path in store.files if path.endswith(".tmp")} == others | young
