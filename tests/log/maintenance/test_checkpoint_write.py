"""Checkpoints written: X-32..X-36. Read back by our own reader and by delta-rs."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from puredelta.log.files.file_table import FILE_SCHEMA, TOMBSTONE_SCHEMA, FileTable, remove_file
from puredelta.log.maintenance.checkpoint_write import (
    CheckpointSummary,
    checkpoint_table,
    write_checkpoint,
)
from puredelta.log.replay.checkpoint_read import CheckpointHint, read_checkpoint_hint
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Action,
    DeletionVectorDescriptor,
    DomainMetadata,
    SetTransaction,
)
from puredelta.protocol.actions.log_paths import classic_checkpoint_name, commit_name, log_path
from puredelta.store.local import LocalStore
from tests.faults import MemoryStore
from tests.log.tables import WRITE, add, create_table, feature_protocol, transact

WEEK_MS = 7 * 24 * 3600 * 1000
NOW_MS = 1_800_000_000_000
VECTOR = DeletionVectorDescriptor(
    storage_type="u",
    path_or_inline="ab^-aqEH.-t@S}K{vb[*k^",
    offset=1,
    size_bytes=34,
    cardinality=2,
    max_row_index=4,
)
EVERYTHING = feature_protocol("domainMetadata", "clustering", readers=("deletionVectors",))
PARTS = {"part": "1"}
STATS = '{"numRecords":10,"minValues":{"id":1},"maxValues":{"id":9},"tightBounds":false}'
MARKED = replace(add("b%20c", PARTS), deletion_vector=VECTOR, stats=STATS)


V2 = feature_protocol("domainMetadata", "clustering", readers=("deletionVectors", "v2Checkpoint"))


def full_table(store: object, policy: str = "classic", **properties: str) -> TableLog:
    """A table with one of everything a checkpoint may hold, at version 2."""
    removed = replace(add("old", {"part": None}), tags={"k": None})
    log = create_table(
        store,  # type: ignore[arg-type]
        add("a", {"part": None}, ids=(1, 5)),
        replace(MARKED, tags={"OPTIMIZE": "x"}, clustering_provider="liquid"),
        removed,
        protocol=V2 if policy == "v2" else EVERYTHING,
        partitioned_by=("part",),
        delta__enableDeletionVectors="true",
        delta__checkpointPolicy=policy,
        **properties,
    )
    actions: list[Action] = [
        remove_file(removed, deleted_ms=NOW_MS - 5),
        SetTransaction(app_id="app", version=7, last_updated_ms=8),
        SetTransaction(app_id="silent", version=1),
        DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[]}'),
        DomainMetadata(domain="gone", configuration=""),
    ]
    transact(log).commit(actions, WRITE)
    transact(log).commit([DomainMetadata(domain="gone", configuration="", removed=True)], WRITE)
    return log


def assert_same_state(left: Snapshot, right: Snapshot) -> None:
    assert left.config == right.config
    assert left.set_transactions == right.set_transactions
    assert left.domain_metadata == right.domain_metadata
    files = [sorted(s.files.adds(), key=lambda f: f.path) for s in (left, right)]
    assert [replace(f, data_change=False) for f in files[0]] == files[1]
    names = [n for n in TOMBSTONE_SCHEMA.names if n != "data_change"]
    assert left.tombstones.select(names).to_pylist() == right.tombstones.select(names).to_pylist()


def test_a_table_read_from_its_checkpoint_is_the_same() -> None:
    store = MemoryStore()
    log = full_table(store)
    snapshot = log.snapshot()
    summary = write_checkpoint(store, snapshot, now_ms=NOW_MS)
    for version in range(3):
        store.delete(log_path(commit_name(version)))
    from_checkpoint = TableLog(store).snapshot()
    assert from_checkpoint.last_checkpoint_version == 2
    assert_same_state(snapshot, from_checkpoint)
    assert (summary.version, summary.num_files) == (2, 2)
    # protocol, metadata, two txn, one domain, two adds, one remove
    assert summary.num_actions == 8


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize(
    ("retention", "kept"), [("interval 8 days", {"app"}), ("interval 6 days", set())]
)
def test_expired_transactions_are_left_out(policy: str, retention: str, kept: set[str]) -> None:
    store = MemoryStore()
    log = full_table(store, policy, delta__setTransactionRetentionDuration=retention)
    week_ms = 7 * 24 * 3_600_000
    write_checkpoint(store, log.snapshot(), now_ms=8 + week_ms)
    for version in range(2):
        store.delete(log_path(commit_name(version)))
    assert set(TableLog(store).snapshot().set_transactions) == kept


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize("parsed", ["false", "true"])
def test_files_that_are_not_in_memory_follow(policy: str, parsed: str) -> None:
    files = SpooledFiles()
    for number in range(5):
        files.add(f"f{number}", PARTS, size_bytes=number, modified_ms=1, stats=STATS, num_rows=10)
    store = MemoryStore()
    log = full_table(store, policy, delta__checkpoint__writeStatsAsStruct=parsed)
    snapshot = log.snapshot()
    more = [
        FileTable.of(add for add in files.adds() if add.size_bytes % 2 == odd) for odd in (0, 1)
    ]
    summary = write_checkpoint(store, snapshot, now_ms=NOW_MS, more=more)
    assert summary.num_files == len(snapshot.files) + 5
    whole = TableLog(store).snapshot()
    assert whole.last_checkpoint_version == snapshot.version
    paths = sorted(add.path for add in whole.files.adds())
    assert paths == sorted(add.path for add in (*snapshot.files.adds(), *files.adds()))
    assert whole.set_transactions == snapshot.set_transactions
    assert {add.stats for add in whole.files.adds() if add.path.startswith("f")} == {STATS}


def test_a_v2_checkpoint_is_a_top_file_and_a_sidecar() -> None:
    store = MemoryStore()
    log = full_table(store, "v2")
    snapshot = log.snapshot()
    summary = write_checkpoint(store, snapshot, now_ms=NOW_MS)
    (sidecar,) = (name for name in store.files if name.startswith("_delta_log/_sidecars/"))
    (top,) = (name for name in store.files if ".checkpoint." in name)
    kinds = [next(iter(json.loads(line))) for line in store.files[top].splitlines()]
    assert kinds == [
        "checkpointMetadata",
        "sidecar",
        "protocol",
        "metaData",
        "txn",
        "txn",
        "domainMetadata",
    ]
    assert pq.ParquetFile(io.BytesIO(store.files[sidecar])).metadata.num_rows == 3
    assert summary.num_actions == len(kinds) + 3
    assert read_checkpoint_hint(store) == _hint_of(summary)
    for version in range(3):
        store.delete(log_path(commit_name(version)))
    from_checkpoint = TableLog(store).snapshot()
    assert from_checkpoint.last_checkpoint_version == 2
    assert_same_state(snapshot, from_checkpoint)


def _hint_of(summary: CheckpointSummary) -> CheckpointHint:
    return CheckpointHint(
        version=summary.version, num_actions=summary.num_actions, num_files=summary.num_files
    )


def test_the_hint_says_what_is_there_x36() -> None:
    store = MemoryStore()
    summary = write_checkpoint(store, full_table(store).snapshot(), now_ms=NOW_MS)
    hint = json.loads(store.files["_delta_log/_last_checkpoint"])
    content = store.files[log_path(classic_checkpoint_name(2))]
    del hint["checksum"]  # verified by the reader below
    assert hint == {
        "version": 2,
        "size": summary.num_actions,
        "sizeInBytes": len(content),
        "numOfAddFiles": 2,
    }
    assert read_checkpoint_hint(store) == _hint_of(summary)


def test_columns_are_those_of_the_reference_x34() -> None:
    table = checkpoint_table(full_table(MemoryStore()).snapshot(), now_ms=NOW_MS)
    add_fields = [field.name for field in table.schema.field("add").type]
    assert add_fields == [
        "path",
        "partitionValues",
        "size",
        "modificationTime",
        "dataChange",
        "stats",
        "tags",
        "deletionVector",
        "baseRowId",
        "defaultRowCommitVersion",
        "clusteringProvider",
    ]
    remove_fields = [field.name for field in table.schema.field("remove").type]
    assert "stats" not in remove_fields
    assert "tags" not in remove_fields
    rows = table.to_pylist()
    assert all(sum(value is not None for value in row.values()) == 1 for row in rows)
    file_actions = [row["add"] or row["remove"] for row in rows if row["add"] or row["remove"]]
    assert not any(action["dataChange"] for action in file_actions)


def test_the_parquet_file_has_no_arrow_schema_and_standard_lists() -> None:
    store = MemoryStore()
    write_checkpoint(store, full_table(store).snapshot(), now_ms=NOW_MS)
    content = store.files[log_path(classic_checkpoint_name(2))]
    file = pq.ParquetFile(io.BytesIO(content))
    assert not file.metadata.metadata
    paths = [file.schema.column(i).path for i in range(len(file.schema))]
    assert "protocol.readerFeatures.list.element" in paths
    assert "add.partitionValues.key_value.value" in paths


@pytest.mark.parametrize(
    ("deleted_ms", "kept"),
    [(NOW_MS - WEEK_MS + 1, True), (NOW_MS - WEEK_MS, False), (None, False)],
)
def test_expired_tombstones_are_left_out_x35(deleted_ms: int | None, kept: bool) -> None:
    store = MemoryStore()
    log = create_table(store, add("a"))
    (file,) = log.snapshot().files.adds()
    removed = remove_file(file, deleted_ms=0)
    transact(log).commit([replace(removed, deleted_ms=deleted_ms)], WRITE)
    write_checkpoint(store, log.snapshot(), now_ms=NOW_MS)
    for version in range(2):
        store.delete(log_path(commit_name(version)))
    assert TableLog(store).snapshot().tombstones.num_rows == int(kept)


def test_retention_is_the_tables_own() -> None:
    store = MemoryStore()
    log = create_table(store, add("a"), delta__deletedFileRetentionDuration="interval 1 hours")
    (file,) = log.snapshot().files.adds()
    transact(log).commit([remove_file(file, deleted_ms=NOW_MS - 3_600_001)], WRITE)
    table = checkpoint_table(log.snapshot(), now_ms=NOW_MS)
    assert table["remove"].null_count == table.num_rows


def test_an_empty_table_has_a_checkpoint() -> None:
    store = MemoryStore()
    log = create_table(store)
    write_checkpoint(store, log.snapshot(), now_ms=NOW_MS)
    store.delete(log_path(commit_name(0)))
    snapshot = TableLog(store).snapshot()
    assert len(snapshot.files) == 0
    assert snapshot.files.rows.schema.equals(FILE_SCHEMA)


def test_a_checkpoint_that_is_there_stays() -> None:
    store = MemoryStore()
    log = create_table(store, add("a"))
    path = log_path(classic_checkpoint_name(0))
    store.put(path, b"being read by someone")
    write_checkpoint(store, log.snapshot(), now_ms=NOW_MS)
    assert store.files[path] == b"being read by someone"
    assert "_delta_log/_last_checkpoint" not in store.files


@pytest.mark.parametrize("commits_kept", [True, False])
def test_delta_rs_reads_the_same_files(tmp_path: Path, commits_kept: bool) -> None:
    deltalake = pytest.importorskip("deltalake")
    store = LocalStore(tmp_path)
    snapshot = full_table(store).snapshot()
    write_checkpoint(store, snapshot, now_ms=NOW_MS)
    if not commits_kept:
        for version in range(2):
            store.delete(log_path(commit_name(version)))
    table = deltalake.DeltaTable(str(tmp_path))
    assert table.version() == 2
    assert {Path(uri).name for uri in table.file_uris()} == {"a", "b c"}
    assert table.transaction_version("app") == 7
