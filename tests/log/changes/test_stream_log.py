"""A stream delivers every file once, whatever its limits are and wherever it was killed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError
from puredelta.log.changes.stream import (
    RowStream,
    StreamLog,
    StreamRules,
    StreamSettings,
    batch_adds,
)
from puredelta.log.changes.stream_offsets import EVERYTHING, ReadLimits, StreamOffset, StreamStart
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import STRING, StructField, StructType
from puredelta.store.local import LocalStore
from tests.log.tables import WRITE, add, create_table, metadata, remove, transact

LATEST = StreamSettings(start=StreamStart(is_latest=True))


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """0: a, b, c; 1: d; 2: nothing; 3: e to i."""
    log = create_table(LocalStore(str(tmp_path)), add("c"), add("a"), add("b"))
    for actions in (
        [add("d")],
        [add("x", data_change=False), remove("d", data_change=False)],
        [add(name) for name in "efghi"],
    ):
        transact(log).commit(actions, WRITE)
    return log


def stream(log: TableLog, settings: StreamSettings | None = None, **rules: bool) -> StreamLog:
    rows = RowStream(table=StreamedTable.of(log.snapshot()), rules=StreamRules(**rules))
    return StreamLog(TableLog(log.store), rows, settings or StreamSettings())


def files(known: StreamLog, start: StreamOffset | None, end: StreamOffset) -> str:
    return "".join(file.path for file in batch_adds(known.batch(start, end)))


def run(
    log: TableLog, limits: ReadLimits, settings: StreamSettings | None = None, *, restarts: bool
) -> list[str]:
    """Deliver what there is; ``restarts`` gives each question to a stream that knows nothing."""
    batches, place, known = [], None, stream(log, settings)
    while True:
        if restarts:
            known = stream(log, settings)
        end = known.latest(place, limits)
        if end is None or end is place:
            return batches
        end = known.offset(end.text())
        if restarts:
            known = stream(log, settings)
        batches.append(files(known, place, end))
        place = end


FROM_0 = StreamSettings(start=StreamStart(version=0))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("settings", [None, FROM_0])
def test_every_file_once(log: TableLog, *, restarts: bool, settings: StreamSettings | None) -> None:
    whole = "".join(run(log, EVERYTHING, settings, restarts=restarts))
    assert sorted(whole) == sorted("abcxefghi" if settings is None else "abcdefghi")
    for max_files in range(1, 10):
        batches = run(log, ReadLimits(max_files=max_files), settings, restarts=restarts)
        assert "".join(batches) == whole
        assert max(map(len, batches)) == min(max_files, len(max(batches, key=len)))
        assert len(batches) >= len(whole) / max_files


def test_bytes_are_counted(log: TableLog) -> None:
    size = add("a").size_bytes
    limits = ReadLimits(max_bytes=2 * size - 1)
    assert run(log, limits, FROM_0, restarts=True) == ["ca", "bd", "ef", "gh", "i"]


def test_offsets_are_those_of_delta_spark(log: TableLog) -> None:
    known, place, places = stream(log, FROM_0), None, []
    while (end := known.latest(place, ReadLimits(max_files=2))) not in {place, None}:
        assert end is not None
        places.append((end.version, end.index, end.is_initial, end.began_at))
        place = end
    assert places[:2] == [(0, 1, False, 0), (2, -100, False, None)]
    assert places[2:] == [(3, 1, False, None), (3, 3, False, None), (4, -100, False, None)]
    first = stream(log).latest(None, ReadLimits(max_files=1))
    assert first is not None
    assert (first.version, first.index, first.is_initial) == (3, 0, True)


def test_a_bound_ends_a_run(log: TableLog) -> None:
    known = stream(log)
    bound = known.latest(None, EVERYTHING)
    transact(log).commit([add("later")], WRITE)
    place, delivered = None, ""
    while (end := known.latest(place, ReadLimits(max_files=4), bound)) is not place:
        assert end is not None
        delivered += files(known, place, end)
        place = end
    assert sorted(delivered) == sorted("abcxefghi")
    assert place == bound


def test_a_first_batch_that_comes_again_after_new_commits(log: TableLog) -> None:
    """The end of the batch says where it began: `latest` would be another version by now."""
    known = stream(log, LATEST)
    assert known.latest(None) is None
    transact(log).commit([add("j"), add("k")], WRITE)
    end = known.latest(None, ReadLimits(max_files=1))
    assert end is not None
    transact(log).commit([add("l")], WRITE)
    again = stream(log, LATEST)
    assert files(again, None, again.offset(end.text())) == "j"
    assert again.latest(end) == StreamOffset(table_id=end.table_id, version=6)
    whole = stream(log)
    end = whole.latest(None)
    assert end is not None
    transact(log).commit([add("m")], WRITE)
    assert sorted(files(stream(log), None, end)) == sorted("abcxefghijkl")


def test_an_empty_table_and_an_idle_stream(tmp_path: Path) -> None:
    log = create_table(LocalStore(str(tmp_path)))
    known = stream(log)
    end = known.latest(None)
    assert end is not None
    assert files(known, None, end) == ""
    assert known.latest(end) is end
    transact(log).commit([add("a")], WRITE)
    later = known.latest(end)
    assert later is not None
    assert files(known, end, later) == "a"


def test_files_that_are_left_out(log: TableLog) -> None:
    some = StreamSettings(exclude=re.compile("[a-e]"))
    assert run(log, ReadLimits(max_files=3), some, restarts=False) == ["", "fg", "hix"]
    from_0 = StreamSettings(exclude=re.compile("[a-e]"), start=StreamStart(version=0))
    assert run(log, ReadLimits(max_files=3), from_0, restarts=True) == ["", "f", "ghi"]


def test_commits_that_are_gone(log: TableLog, tmp_path: Path) -> None:
    known = stream(log, FROM_0)
    start = known.latest(None, ReadLimits(max_files=1))
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(CorruptTableError, match="failOnDataLoss") as lost:
        known.latest(start)
    assert lost.value.code is ErrorCode.MISSING_FILES_UNEXPECTED_VERSION
    lenient = StreamSettings(start=StreamStart(version=0), fails_on_data_loss=False)
    known = StreamLog(known.log, known.streamed, lenient)
    end = known.latest(start)
    assert end is not None
    assert files(known, start, end) == "abefghi"


def test_the_columns_where_a_stream_begins_count(log: TableLog) -> None:
    """A commit without metadata of its own is read with columns that an older one gave."""
    other = StructType((StructField("other", STRING),))
    transact(log).commit([metadata(schema=other), add("j")], WRITE)
    with pytest.raises(InvalidRequestError, match="schema change in version 3") as changed:
        stream(log, StreamSettings(start=StreamStart(version=3))).latest(None)
    assert changed.value.code is ErrorCode.SCHEMA_CHANGED_WITH_VERSION
    assert run(log, EVERYTHING, StreamSettings(start=StreamStart(version=4)), restarts=True) == [
        "j"
    ]


def test_what_a_start_cannot_be(log: TableLog) -> None:
    known = stream(log, StreamSettings(start=StreamStart(version=9)))
    with pytest.raises(LookupError, match="9") as missing:
        known.latest(None)
    error: Any = missing.value
    assert error.code is ErrorCode.VERSION_NOT_FOUND
