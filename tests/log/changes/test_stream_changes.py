"""Which files of the change data feed a stream delivers between two versions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.file_rows import ReadableFile
from puredelta.log.changes.stream import (
    ChangeStream,
    StreamLog,
    StreamSettings,
    batch_changes,
    feed_files,
)
from puredelta.log.changes.stream_offsets import ReadLimits, StreamOffset
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import AddChangeFile
from puredelta.protocol.schema.types import INTEGER, StructField, StructType
from puredelta.store.local import LocalStore
from tests.deletion_vectors import encode_inline
from tests.log.tables import (
    SCHEMA,
    WRITE,
    add,
    create_table,
    feature_protocol,
    metadata,
    remove,
    transact,
)

WIDER = StructType((*SCHEMA.fields, StructField("more", INTEGER)))
FEED = {"delta__enableChangeDataFeed": "true"}


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """0: a; 1: b with a change file; 2: a is deleted; 3: a column; 4: no feed from here on."""
    protocol = feature_protocol("changeDataFeed")
    log = create_table(LocalStore(str(tmp_path)), add("a"), protocol=protocol, **FEED)
    recorded = AddChangeFile(path="_change_data/c", partition_values={}, size_bytes=5)
    for actions in (
        [add("b"), remove("x", size_bytes=1), recorded],
        [remove("a", size_bytes=1)],
        [metadata(schema=WIDER, **FEED), add("d")],
        [metadata(schema=WIDER), add("e")],
    ):
        transact(log).commit(actions, WRITE)
    return log


def stream(log: TableLog, version: int) -> StreamLog:
    changes = ChangeStream(table=StreamedTable.of(log.snapshot(version=version)))
    return StreamLog(log, changes, StreamSettings())


def at(known: StreamLog, version: int, **rest: Any) -> StreamOffset:
    return StreamOffset(table_id=known.streamed.table.metadata.id, version=version, **rest)


def between(known: StreamLog, *, after: int, through: int) -> tuple[ReadableFile, ...]:
    batch = known.batch(at(known, after + 1), at(known, through + 1))
    return tuple(feed_files(batch_changes(batch, known.log), known.log.root_uri))


def whole(known: StreamLog, version: int) -> tuple[ReadableFile, ...]:
    batch = known.batch(at(known, version, is_initial=True), at(known, version + 1))
    return tuple(feed_files(batch_changes(batch, known.log), known.log.root_uri))


def said(files: tuple[ReadableFile, ...]) -> list[tuple[Any, ...]]:
    found = [(f.uri.rpartition("/")[2], f.partition_values) for f in files]
    return [(name, v.get("_change_type"), v["_commit_version"]) for name, v in found]


def test_each_commit_is_delivered_once(log: TableLog) -> None:
    changes = stream(log, 3)
    assert said(whole(changes, 1)) == [("a", "insert", "1"), ("b", "insert", "1")]
    later = [("c", None, "1"), ("a", "delete", "2"), ("d", "insert", "3")]
    everything = [later[0], ("a", "insert", "0"), *later[1:]]
    assert said(between(changes, after=-1, through=3)) == everything, "change files come first"
    assert said(between(changes, after=0, through=2)) == later[:2]
    assert said(between(changes, after=2, through=3)) == later[2:]


def test_the_feed_is_off_at_some_version(log: TableLog) -> None:
    changes = stream(log, 4)
    for ask in (
        lambda: between(changes, after=2, through=4),
        lambda: between(changes, after=3, through=4),
        lambda: whole(changes, 4),
    ):
        with pytest.raises(InvalidRequestError, match=r"version \[4\]") as off:
            ask()
        assert off.value.code is ErrorCode.MISSING_CHANGE_DATA


def test_columns_that_come_under_a_stream(log: TableLog) -> None:
    with pytest.raises(InvalidRequestError, match="restarting the query") as changed:
        between(stream(log, 2), after=1, through=3)
    assert changed.value.code is ErrorCode.SCHEMA_CHANGED_WITH_VERSION


def test_rows_that_vectors_mark_and_unmark(tmp_path: Path) -> None:
    one, two = (encode_inline(np.array(rows, np.uint64)) for rows in ([1], [1, 2]))
    protocol = feature_protocol("changeDataFeed", readers=("deletionVectors",))
    wide = json.dumps({"numRecords": 9, "tightBounds": False})
    first = replace(add("a"), deletion_vector=one, stats=wide)
    settings = {**FEED, "delta__enableDeletionVectors": "true"}
    log = create_table(LocalStore(str(tmp_path)), first, protocol=protocol, **settings)
    before = remove("a", deletion_vector=one, size_bytes=1)
    transact(log).commit([before, replace(first, deletion_vector=two)], WRITE)
    deleted, restored = between(stream(log, 1), after=0, through=1)
    assert said((deleted, restored)) == [("a", "delete", "1"), ("a", "insert", "1")]
    assert (deleted.only, deleted.deleted) == (two, one)
    assert (restored.only, restored.deleted) == (one, two), "no row, seen where it is read"


def test_what_happened_to_a_row_comes_in_one_batch(tmp_path: Path) -> None:
    """Change files of one commit, and files with deletion vectors, are not taken apart."""
    protocol = feature_protocol("changeDataFeed")
    log = create_table(LocalStore(str(tmp_path)), add("a"), protocol=protocol, **FEED)
    recorded = [
        AddChangeFile(path=f"_change_data/{n}", partition_values={}, size_bytes=5) for n in "cd"
    ]
    transact(log).commit([add("b"), *recorded], WRITE)
    transact(log).commit([add("e"), add("f")], WRITE)
    changes, one = stream(log, 2), ReadLimits(max_files=1)
    place, batches = at(changes, 0), []
    while (end := changes.latest(place, one)) not in {None, place}:
        assert end is not None
        found = batch_changes(changes.batch(place, end), log)
        batches.append([f.uri[-1] for f in feed_files(found, log.root_uri)])
        place = end
    assert batches == [["a"], ["c", "d"], ["e"], ["f"]]
