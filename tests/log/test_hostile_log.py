"""Logs that somebody wrote to do harm, or by mistake: a clear error, or a right read."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import uuid
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.commit.transaction import Transaction
from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.row_counts import num_records
from puredelta.log.maintenance.checkpoint_write import write_checkpoint
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import (
    PORTABLE_MAGIC,
    decode_block,
    decode_inline,
    vector_path,
)
from puredelta.protocol.actions.log_paths import (
    LAST_CHECKPOINT,
    classic_checkpoint_name,
    commit_name,
    log_path,
)
from puredelta.protocol.actions.operations import Operation
from tests.deletion_vectors import encode_file, encode_inline
from tests.faults import MemoryStore
from tests.log.log_files import METADATA, PROTOCOL, Json, add, write_commit, write_table
from tests.log.log_files import write_checkpoint as write_checkpoint_rows

DEEP = 100_000
WRITE = Operation(name="WRITE", parameters={})


def _table(*commits: list[Json]) -> MemoryStore:
    store = MemoryStore()
    write_table(store, [add("f0")], *commits)
    return store


def _paths(store: MemoryStore) -> list[str]:
    return [a.path for a in TableLog(store).snapshot().files.adds()]


# --- hints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        f'{{"version":{10**30}}}',
        f'{{"version":{2**63}}}',
        f'{{"version":{2**63 - 1}}}',
        '{"version":0,"x":' + "[" * DEEP + "]" * DEEP + "}",
        '{"version":0,"checksum":"x","x":' + "[" * 900 + "]" * 900 + "}",
        '{"version":0,"checksum":"x","\\ud800":1}',
        '{"version":%s}' % ("9" * 5000),
        '{"version":0,"si',
        '{"version":1e3}',
        "[]",
    ],
    ids=range(10),
)
def test_a_hint_is_no_more_than_a_hint(content: str) -> None:
    store = _table()
    store.put(log_path(LAST_CHECKPOINT), content.encode())
    assert _paths(store) == ["f0"]


def test_files_of_versions_that_nothing_can_follow_are_none_of_the_log() -> None:
    store = _table()
    for version in (10**20 - 1, 2**63, 2**63 - 1):
        store.put(f"_delta_log/{version:020d}.json", b"{}")
        store.put(f"_delta_log/{version:020d}.checkpoint.parquet", b"x")
    assert _paths(store) == ["f0"]


# --- lines -----------------------------------------------------------------------------------


def _action(kind: str, **body: Any) -> str:
    return json.dumps({kind: body})


_NO_FIELDS = '{"type":"struct","fields":true}'


def _nested(value: str = "") -> str:
    return "[" * DEEP + value + "]" * DEEP


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(add("b"))[:-2] + f',"x":{_nested()}}}}}',
        f'{{"future":{_nested()}}}',
        '{"future":' + "[" * 200 + "]" * 200 + "}",
        '{"add":' * DEEP,
        _action("txn", appId="a", version=2**70),
        _action("txn", appId="a", version=2**63),
        _action("txn", appId="\ud800", version=1),
        _action("txn", appId="a", version=1.5),
        _action("txn", appId="a", version="1.0"),
        _action("txn", appId="a", version="9" * 30),
        _action("protocol", minReaderVersion=2**70, minWriterVersion=2),
        _action("protocol", minReaderVersion=1, minWriterVersion=2**31),
        json.dumps({"metaData": {**METADATA["metaData"], "schemaString": _NO_FIELDS}}),
        _action("domainMetadata", domain="d", configuration="\udfff", removed=False),
        json.dumps({"metaData": {**METADATA["metaData"], "schemaString": '{"type":' * DEEP}}),
        json.dumps({"metaData": {**METADATA["metaData"], "schemaString": _nested()}}),
        json.dumps(add("b", size=2**63)),
        json.dumps(add("b", size=True)),
        '{"add":{"path":"b\\ud800","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}',
    ],
)
def test_a_broken_line_is_named(line: str) -> None:
    store = _table()
    store.put(log_path(commit_name(1)), line.encode("utf-8", "surrogatepass"))
    with pytest.raises(CorruptTableError) as caught:
        _paths(store)
    assert caught.value.code is ErrorCode.LOG_CORRUPTED
    assert len(str(caught.value)) < 1_000


def test_a_schema_is_nested_a_hundred_levels_at_most() -> None:
    def table(levels: int) -> TableLog:
        kind: Any = "long"
        for _ in range(levels):
            kind = {"type": "array", "elementType": kind, "containsNull": True}
        field = {"name": "p", "type": kind, "nullable": True, "metadata": {}}
        text = json.dumps({"type": "struct", "fields": [field]})
        store = MemoryStore()
        body = {**METADATA["metaData"], "schemaString": text, "partitionColumns": []}
        write_commit(store, 0, PROTOCOL, {"metaData": body})
        return TableLog(store)

    assert table(90).snapshot().config.schema.names == ("p",)
    with pytest.raises(CorruptTableError, match="nested more than 100"):
        table(400).snapshot()


@pytest.mark.parametrize("size", [10.0, "10", 10])
def test_whole_numbers_are_read_as_delta_spark_reads_them(size: object) -> None:
    store = _table([add("f1", size=size)])
    assert TableLog(store).snapshot().files.total_size_bytes == 20


@pytest.mark.parametrize(
    "stats",
    [
        '{"x":1,"numRecords":99999999999999999999}',
        '{"x":1,"numRecords":-5}',
        f'{{"x":{_nested()},"numRecords":5}}',
        '{"x":1,"numRecords":1e400}',
    ],
    ids=range(4),
)
def test_a_row_count_that_is_none_is_unknown(stats: str) -> None:
    assert num_records(stats) is None
    assert TableLog(_table([add("f1", stats=stats)])).snapshot().files.num_records() is None


# --- row ids ---------------------------------------------------------------------------------


def _mark(value: int) -> str:
    return json.dumps({"rowIdHighWaterMark": value})


def _tracked(mark: str) -> TableLog:
    features = {"minReaderVersion": 1, "minWriterVersion": 7}
    listed = {**features, "writerFeatures": ["rowTracking", "domainMetadata"]}
    domain = _action("domainMetadata", domain="delta.rowTracking", configuration=mark)
    store = MemoryStore()
    write_commit(store, 0, {"protocol": listed}, METADATA)
    store.put(log_path(commit_name(1)), domain.encode())
    return TableLog(store)


def _append(log: TableLog, rows: int) -> None:
    new = Add(
        path="new",
        partition_values={"p": "x"},
        size_bytes=1,
        modified_ms=1,
        data_change=True,
        stats=json.dumps({"numRecords": rows}),
    )
    transaction = Transaction(log, log.snapshot(), engine_info="test")
    transaction.commit(CommitRequest(actions=[new], operation=WRITE))


@pytest.mark.parametrize(
    "mark",
    [
        "nope",
        "[1]",
        "7",
        '{"rowIdHighWaterMark":"7"}',
        '{"rowIdHighWaterMark":true}',
        '{"rowIdHighWaterMark":-2}',
        _mark(2**63),
        _nested(),
    ],
)
def test_a_mark_that_is_no_row_id_stops_writers(mark: str) -> None:
    log = _tracked(mark)
    with pytest.raises(CorruptTableError, match="rowTracking") as caught:
        _append(log, 1)
    assert caught.value.code is ErrorCode.LOG_CORRUPTED
    assert log.latest_version() == 1


def test_row_ids_end_where_their_type_ends() -> None:
    log = _tracked(_mark(2**63 - 2))
    with pytest.raises(InvalidRequestError, match="no row IDs left"):
        _append(log, 2)
    _append(log, 1)
    (new,) = TableLog(log.store).snapshot().files.adds()
    assert new.base_row_id == 2**63 - 1


# --- deletion vectors ------------------------------------------------------------------------


def _bomb(containers: int) -> tuple[bytes, int]:
    """Return a bitmap of runs, 65,536 rows in ten bytes, and how many rows it holds."""
    runs = b"".join(struct.pack("<HHH", 1, 0, 65535) for _ in range(containers))
    keys = b"".join(struct.pack("<HH", n, 65535) for n in range(containers))
    head = struct.pack("<I", 12347 | ((containers - 1) << 16)) + b"\xff" * ((containers + 7) // 8)
    begin = len(head) + len(keys) + 4 * containers
    offsets = b"".join(struct.pack("<I", begin + 6 * n) for n in range(containers))
    whole = struct.pack("<QI", 1, 0) + head + keys + offsets + runs
    return PORTABLE_MAGIC.to_bytes(4, "little") + whole, containers * 65536


def _block(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def test_a_vector_is_not_expanded_before_its_size_is_known() -> None:
    data, num_rows = _bomb(1500)
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline="x" * 20, offset=1, size_bytes=len(data), cardinality=3
    )
    tracemalloc.start()
    with pytest.raises(CorruptTableError, match=f"{num_rows} positions"):
        decode_block(_block(data), vector)
    assert tracemalloc.get_traced_memory()[1] < 10 * len(data)
    tracemalloc.stop()


def _file(vector: DeletionVectorDescriptor, stats: str | None = None) -> FileTable:
    file = Add(
        path="f",
        partition_values={},
        size_bytes=1,
        modified_ms=0,
        data_change=True,
        deletion_vector=vector,
        stats=stats,
    )
    return FileTable.of([file])


def test_a_vector_never_deletes_more_rows_than_the_file_has(tmp_path: Path) -> None:
    vector = encode_inline(np.array([1, 2], np.uint64))
    possible = read_positions(_file(vector, '{"numRecords":2}'), f"file:{tmp_path}")
    assert possible[0].tolist() == [1, 2]
    with pytest.raises(CorruptTableError, match="deletes more rows than"):
        read_positions(_file(vector, '{"numRecords":1}'), f"file:{tmp_path}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"offset": -5},
        {"size_bytes": -100},
        {"offset": -(2**31)},
        {"size_bytes": 2**31 - 1},
        {"offset": 2**31 - 1},
        {"cardinality": -1},
        {"cardinality": 2**62},
    ],
    ids=str,
)
def test_a_vector_outside_of_its_file_is_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    content, (vector,) = encode_file([np.array([1, 2], np.uint64)], uuid.uuid4())
    (tmp_path / str(vector_path(vector))).write_bytes(content)
    tracemalloc.start()
    with pytest.raises(CorruptTableError):
        read_positions(_file(replace(vector, **wrong)), f"file:{tmp_path}")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_an_inline_vector_of_negative_size_is_refused() -> None:
    vector = encode_inline(np.array([1], np.uint64))
    with pytest.raises(CorruptTableError):
        decode_inline(replace(vector, size_bytes=-4))


def test_numbers_at_the_end_of_their_range_survive_a_checkpoint() -> None:
    store = _table()
    store.put(log_path(commit_name(1)), _action("txn", appId="a", version=2**63 - 1).encode())
    log = TableLog(store)
    write_checkpoint(store, log.snapshot(), now_ms=0)
    assert TableLog(store).snapshot().set_transactions["a"].version == 2**63 - 1


# --- checkpoints -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"add": [1, 2]}),
        pa.table({"add": [{"path": 7}]}),
        pa.table({"add": [{"path": "a", "size": "x"}]}),
        pa.table({"add": [{"path": "a", "partitionValues": "x"}]}),
        pa.table({"metaData": ["x"], "protocol": [[1]]}),
        pa.table([pa.array([{"path": "a"}]), pa.array([{"path": "b"}])], names=["add", "add"]),
        pa.table({"sidecar": [{"path": 5, "sizeInBytes": 1, "modificationTime": 1}]}),
        pa.table({"deletionVector": [None], "protocol": [{"minReaderVersion": "x"}]}),
    ],
)
def test_a_checkpoint_with_other_columns_is_named(table: pa.Table) -> None:
    store = _table()
    store.put(log_path(classic_checkpoint_name(0)), _parquet(table))
    store.delete(log_path(commit_name(0)))
    with pytest.raises(CorruptTableError) as caught:
        TableLog(store).snapshot()
    assert caught.value.code in {ErrorCode.LOG_CORRUPTED, ErrorCode.STATE_RECOVER_ERROR}


def test_a_message_does_not_repeat_a_whole_log() -> None:
    store = _table()
    store.delete(log_path(commit_name(0)))
    part = pa.table({"protocol": [{"minReaderVersion": "x" * 100_000}]})
    store.put(log_path(classic_checkpoint_name(0)), _parquet(part))
    with pytest.raises(CorruptTableError) as caught:
        TableLog(store).snapshot()
    assert len(str(caught.value)) < 5_000
    assert "xxx ... " in CorruptTableError("x" * 9_000, code=ErrorCode.LOG_CORRUPTED).message


def test_rows_of_a_kind_need_not_follow_each_other() -> None:
    store = MemoryStore()
    files = [add(f"f{n}") for n in range(6)]
    write_checkpoint_rows(store, 0, files[0], PROTOCOL, *files[1:3], METADATA, *files[3:])
    assert _paths(store) == [f"f{n}" for n in range(6)]


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
