"""The Python data source of streams, as Spark's runner asks it: no session is needed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from puredelta.activation.data_source import DeltaStreamReader, SourceRows, stream_reader
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.stream_options import StreamOptions
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.table_log import TableLog
from puredelta.store.local import LocalStore
from tests.log.tables import WRITE, add, create_table, remove, transact


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """0: a, b, c; 1: d."""
    log = create_table(LocalStore(str(tmp_path)), add("a"), add("b"), add("c"))
    transact(log).commit([add("d")], WRITE)
    return log


def reader(log: TableLog, **given: str) -> Any:
    snapshot = log.snapshot()
    options = StreamOptions.parse(given.get, int)
    return stream_reader(StreamedTable.of(snapshot), options, SourceRows(snapshot.config))


def names(known: Any, start: dict[str, Any], end: dict[str, Any]) -> str:
    # Spark sends the reader to workers, with what it has opened left out.
    pickle.loads(pickle.dumps(known))
    return "".join(p.value.uri.rpartition("/")[2] for p in known.partitions(start, end))


def limits() -> Any:
    return pytest.importorskip("pyspark.sql.streaming.datasource", reason="since PySpark 4.2")


def test_batches_have_limits(log: TableLog) -> None:
    module, known = limits(), reader(log, maxFilesPerTrigger="3")
    limit = known.getDefaultReadLimit()
    assert limit == module.ReadMaxFiles(3)
    known.prepareForTriggerAvailableNow()
    start = known.initialOffset()
    found = []
    while (end := known.latestOffset(start, limit)) != start:
        found.append(names(known, start, end))
        if len(found) == 1:
            transact(log).commit([add("later")], WRITE)
        start = end
    assert found == ["abc", "d"], "a run ends with what was there when it began"
    again = reader(log, maxFilesPerTrigger="3")
    assert names(again, start, again.latestOffset(start, module.ReadAllAvailable())) == "later"
    assert reader(log, maxBytesPerTrigger="1k").getDefaultReadLimit() == module.ReadMaxBytes(1024)


def test_a_first_batch_that_comes_again(log: TableLog) -> None:
    module, known = limits(), reader(log, startingVersion="latest")
    start = known.initialOffset()
    transact(log).commit([add("e")], WRITE)
    end = known.latestOffset(start, module.ReadAllAvailable())
    transact(log).commit([add("f")], WRITE)
    again = reader(log, startingVersion="latest")
    assert names(again, again.initialOffset(), end) == "e"
    whole = reader(log)
    end = whole.latestOffset(whole.initialOffset(), module.ReadAllAvailable())
    transact(log).commit([add("g")], WRITE)
    again = reader(log)
    assert sorted(names(again, again.initialOffset(), end)) == sorted("abcdef")


def test_before_pyspark_4_2_a_batch_is_all_there_is(log: TableLog) -> None:
    snapshot = log.snapshot()
    options = StreamOptions.parse({"startingVersion": "1"}.get, int)
    known = DeltaStreamReader(StreamedTable.of(snapshot), options, SourceRows(snapshot.config))
    start, end = known.initialOffset(), known.latestOffset()
    assert names(known, start, end) == "d"
    assert known.latestOffset() == end
    transact(log).commit([add("e")], WRITE)
    assert names(known, end, known.latestOffset()) == "e"


def test_errors_come_with_the_files(log: TableLog) -> None:
    known = reader(log, startingVersion="1")
    start = known.initialOffset()
    transact(log).commit([remove("a")], WRITE)
    with pytest.raises(InvalidRequestError) as removed:
        known.partitions(start, DeltaStreamReader.latestOffset(known))
    assert removed.value.code is ErrorCode.SOURCE_IGNORE_DELETE
