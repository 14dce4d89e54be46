"""Which files a stream delivers between two versions, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.stream import (
    RowStream,
    StreamLog,
    StreamRules,
    StreamSettings,
    batch_adds,
)
from puredelta.log.changes.stream_offsets import StreamOffset
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import INTEGER, StructField, StructType
from puredelta.store.local import LocalStore
from tests.log.tables import SCHEMA, WRITE, add, create_table, metadata, remove, transact

WIDER = StructType((*SCHEMA.fields, StructField("more", INTEGER)))


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """0: a; 1: b and c; 2: c moved to d, no new rows; 3: a is deleted; 4: b is updated to e."""
    log = create_table(LocalStore(str(tmp_path)), add("a"))
    for actions in (
        [add("b"), add("c")],
        [add("d", data_change=False), remove("c", data_change=False)],
        [remove("a")],
        [remove("b"), add("e")],
    ):
        transact(log).commit(actions, WRITE)
    return log


def delivered(log: TableLog, after: int, through: int, **rules: bool) -> list[str]:
    return between(stream(log, **rules), after, through)


def stream(log: TableLog, **rules: bool) -> StreamLog:
    rows = RowStream(table=StreamedTable.of(log.snapshot()), rules=StreamRules(**rules))
    return StreamLog(log, rows, StreamSettings())


def between(known: StreamLog, after: int, through: int) -> list[str]:
    start, end = (
        StreamOffset(table_id=known.streamed.table.metadata.id, version=version + 1)
        for version in (after, through)
    )
    return [file.path for file in batch_adds(known.batch(start, end))]


def test_each_commit_is_delivered_once(log: TableLog) -> None:
    assert delivered(log, -1, 0) == ["a"]
    assert delivered(log, 0, 2) == ["b", "c"]
    assert delivered(log, 2, 2) == []


def test_rows_that_are_taken_back(log: TableLog) -> None:
    with pytest.raises(InvalidRequestError) as deleted:
        delivered(log, 0, 3)
    assert deleted.value.code is ErrorCode.SOURCE_IGNORE_DELETE
    assert delivered(log, 0, 3, ignore_deletes=True) == ["b", "c"]
    with pytest.raises(InvalidRequestError) as changed:
        delivered(log, 0, 4, ignore_deletes=True)
    assert changed.value.code is ErrorCode.SOURCE_TABLE_IGNORE_CHANGES
    assert changed.value.details["version"] == 4
    assert delivered(log, 0, 4, ignore_changes=True) == ["b", "c", "e"]
    assert delivered(log, 0, 4, skip_change_commits=True) == ["b", "c"]


def test_columns_that_change_under_a_stream(log: TableLog) -> None:
    known = stream(log)
    transact(log).commit([metadata(schema=WIDER), add("f")], WRITE)
    with pytest.raises(InvalidRequestError, match="restarting the query") as changed:
        between(known, 4, 5)
    assert changed.value.code is ErrorCode.SCHEMA_CHANGED_WITH_VERSION
    assert delivered(log, 4, 5) == ["f"], "a stream that starts again knows them"
