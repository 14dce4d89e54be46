from __future__ import annotations

import json

import pyarrow as pa
import pytest

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.files.file_table import FILE_SCHEMA, TOMBSTONE_SCHEMA
from puredelta.log.replay.checkpoint_read import read_checkpoint
from puredelta.log.replay.replay import LogState
from puredelta.log.replay.segment import list_log
from puredelta.protocol.actions.log_paths import (
    SIDECAR_DIRECTORY,
    classic_checkpoint_name,
    log_path,
)
from puredelta.store.base import StorageError, Store
from tests.faults import FailAt, MemoryStore
from tests.log.log_files import (
    CHECKPOINT_TYPES,
    METADATA,
    PROTOCOL,
    add,
    checkpoint_bytes,
    features,
    remove,
    write_checkpoint,
    write_parts,
    write_v2_checkpoint,
)

V2 = features("v2Checkpoint")


def _read(store: Store) -> LogState:
    (checkpoint,) = list_log(store).checkpoints.values()
    return read_checkpoint(store, checkpoint).state


def _paths(state: LogState) -> list[str]:
    return [a.path for a in state.files.adds()]


def test_every_kind_of_action() -> None:
    store = MemoryStore()
    full = add("a", dv="v", rows=3, tags={"t": "1"})
    write_checkpoint(
        store,
        10,
        PROTOCOL,
        METADATA,
        full,
        add("b", partitionValues={"p": None}),
        remove("c", dv="w"),
        {"txn": {"appId": "app", "version": 4, "lastUpdated": 9}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    )
    state = _read(store)
    assert state.files.rows.schema == FILE_SCHEMA
    assert state.tombstones.schema == TOMBSTONE_SCHEMA
    first, second = state.files.adds()
    assert (first.stats, first.tags, first.partition_values) == (
        '{"numRecords": 3}',
        {"t": "1"},
        {"p": "x"},
    )
    assert first.deletion_vector is not None
    assert first.deletion_vector.unique_id == "uv@1"
    assert (second.partition_values, second.deletion_vector) == ({"p": None}, None)
    assert state.tombstones["path"].to_pylist() == ["c"]
    assert state.protocol is not None
    assert state.metadata is not None
    assert state.metadata.partition_columns == ("p",)
    assert state.set_transactions["app"].last_updated_ms == 9
    assert list(state.domain_metadata) == ["d"]


def test_columns_that_old_writers_leave_out() -> None:
    store = MemoryStore()
    types = {
        "add": [("path", pa.string()), ("size", pa.int32()), ("modificationTime", pa.int64())],
        "metaData": CHECKPOINT_TYPES["metaData"],
    }
    content = checkpoint_bytes([METADATA, add("a")], types=types)
    store.put(log_path(classic_checkpoint_name(3)), content)
    state = _read(store)
    (only,) = state.files.adds()
    assert (only.path, only.size_bytes, only.partition_values, only.data_change, only.stats) == (
        "a",
        10,
        {},
        False,
        None,
    )
    assert state.tombstones.num_rows == 0
    assert state.protocol is None


def test_rows_of_other_kinds_may_be_empty_structs_instead_of_null() -> None:
    store = MemoryStore()
    actions = [{kind: a.get(kind, {}) for kind in CHECKPOINT_TYPES} for a in (PROTOCOL, add("a"))]
    store.put(log_path(classic_checkpoint_name(3)), checkpoint_bytes(actions))
    state = _read(store)
    assert _paths(state) == ["a"]
    assert (state.tombstones.num_rows, dict(state.set_transactions)) == (0, {})
    assert next(state.files.adds()).deletion_vector is None


PARSED = [
    ("path", pa.string()),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    (
        "stats_parsed",
        pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("id", pa.int64())]))]),
    ),
    ("partitionValues_parsed", pa.struct([("p", pa.int32())])),
]


def test_typed_columns_stand_in_for_missing_text() -> None:
    store = MemoryStore()
    one = add("a", stats_parsed={"numRecords": 3, "minValues": {"id": 1}})["add"]
    two = add("b", partitionValues_parsed={"p": 5})["add"]
    types = {**CHECKPOINT_TYPES, "add": PARSED}
    content = checkpoint_bytes([PROTOCOL, {"add": one}, METADATA, {"add": two}], types=types)
    store.put(log_path(classic_checkpoint_name(3)), content)
    first, second = _read(store).files.adds()
    assert (first.stats, first.partition_values) == (
        '{"numRecords":3,"minValues":{"id":1}}',
        {"p": None},
    )
    assert (second.stats, second.partition_values) == (None, {"p": "5"})


def test_text_wins_over_typed_statistics_file_by_file() -> None:
    store = MemoryStore()
    types = {**CHECKPOINT_TYPES, "add": [*PARSED, ("stats", pa.string())]}
    parsed = {"numRecords": 3}
    one = add("a", stats='{"numRecords":4}', stats_parsed=parsed)
    two = add("b", stats_parsed=parsed)
    content = checkpoint_bytes([one, two], types=types)
    store.put(log_path(classic_checkpoint_name(3)), content)
    assert _read(store).files.record_counts().to_pylist() == [4, 3]


def test_parts() -> None:
    store = MemoryStore()
    write_parts(store, 5, [[PROTOCOL, add("a")], [METADATA, remove("z")], [add("b")]])
    state = _read(store)
    assert _paths(state) == ["a", "b"]
    assert state.protocol is not None
    assert state.metadata is not None


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_v2_with_sidecars(form: str) -> None:
    store = MemoryStore()
    top = [V2, METADATA, add("inline"), remove("gone")]
    write_v2_checkpoint(store, 5, top, [add("a"), remove("z")], [add("b")], form=form)
    state = _read(store)
    assert _paths(state) == ["inline", "a", "b"]
    assert state.tombstones["path"].to_pylist() == ["gone", "z"]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_v2_without_sidecars(form: str) -> None:
    store = MemoryStore()
    write_v2_checkpoint(store, 5, [V2, METADATA, add("a", dv="v")], form=form)
    assert _paths(_read(store)) == ["a"]


def test_a_classic_name_may_hold_sidecars() -> None:  # section "V2 Spec"
    store = MemoryStore()
    sidecar = checkpoint_bytes([add("a")])
    store.put(f"{SIDECAR_DIRECTORY}/s 1.parquet", sidecar)
    ref = {"path": "file:/elsewhere/_delta_log/_sidecars/s%201.parquet", "sizeInBytes": 1}
    ref["modificationTime"] = 1
    write_checkpoint(store, 5, V2, METADATA, {"sidecar": ref})
    assert _paths(_read(store)) == ["a"]


def test_a_missing_sidecar_is_named() -> None:
    store = MemoryStore()
    write_v2_checkpoint(store, 5, [V2, METADATA], [add("a")], [add("b")])
    store.delete(f"{SIDECAR_DIRECTORY}/5-1.parquet")
    with pytest.raises(CorruptTableError, match=r"_sidecars/5-1\.parquet") as caught:
        _read(store)
    assert caught.value.code is ErrorCode.LOG_FILE_NOT_FOUND


@pytest.mark.parametrize(
    "content", [b"PAR1", b"no parquet at all", checkpoint_bytes([add("a")])[:-20]]
)
def test_a_torn_checkpoint_is_named(content: bytes) -> None:
    store = MemoryStore()
    store.put(log_path(classic_checkpoint_name(3)), content)
    with pytest.raises(CorruptTableError, match=r"3\.checkpoint\.parquet cannot be read") as caught:
        _read(store)
    assert caught.value.code is ErrorCode.LOG_CORRUPTED


@pytest.mark.parametrize("error", [StorageError, PermissionError])
def test_a_store_that_fails_is_not_a_damaged_table(error: type[OSError]) -> None:
    store = MemoryStore()
    write_checkpoint(store, 3, PROTOCOL, METADATA, add("a"))
    (checkpoint,) = list_log(store).checkpoints.values()
    with pytest.raises(error):
        read_checkpoint(FailAt(store, 1, error=error), checkpoint)


def test_statistics_are_not_parsed_on_the_way() -> None:
    store = MemoryStore()
    odd = json.dumps({"numRecords": 1}, indent=1)
    write_checkpoint(store, 3, add("a", stats=odd))
    assert [a.stats for a in _read(store).files.adds()] == [odd]
