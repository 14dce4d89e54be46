"""Rows of a task become files, one partition after the other."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from puredelta.worker.data_files.write_rows import (
    CHANGES,
    DATA,
    WRITE_ORDERS,
    WriteOrder,
    write_rows,
    write_stream,
)
from puredelta.worker.files import UNKNOWN_SIZE, DataPath

SCHEMA = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "3"})])


def order(directory: DataPath, **more: Any) -> WriteOrder:
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "directory": directory,
        "changes_directory": None,
        "partition_columns": (),
        "escapes": {ord("/"): "%2F"},
        "codec": "snappy",
        "file_rows": 0,
    }
    return WriteOrder(**{**values, **more})


def batch(**columns: Sequence[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(dict(columns))


def described(answers: list[FileAnswer]) -> list[tuple[str, int]]:
    return [((answer.name or "").rpartition("/")[0], answer.kept_rows) for answer in answers]


def test_rows_without_partitions_are_one_file(tmp_path: Path) -> None:
    (answer,) = write_rows(order(str(tmp_path)), [batch(id=[1, 2]), batch(id=[3])])
    file = pq.ParquetFile(tmp_path / (answer.name or ""))
    assert file.read()["id"].to_pylist() == [1, 2, 3]
    assert file.schema_arrow.field("id").metadata == {b"PARQUET:field_id": b"3"}
    assert answer.size_bytes == (tmp_path / (answer.name or "")).stat().st_size
    assert pq.read_metadata(pa.BufferReader(answer.footer)).num_rows == 3


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    assert list(write_rows(order(str(tmp_path)), [batch(id=[])])) == []
    assert list(tmp_path.iterdir()) == []


def test_each_partition_has_a_file_and_runs_may_cross_batches(tmp_path: Path) -> None:
    batches = [
        batch(id=[1, 2, 3], p=[None, "a/b", "a/b"], q=["1", "1", "2"]),
        batch(id=[4, 5], p=["a/b", "c"], q=["2", "2"]),
    ]
    answers = list(write_rows(order(str(tmp_path), partition_columns=("p", "q")), batches))
    assert [answer.partition for answer in answers] == [
        (None, "1"),
        ("a/b", "1"),
        ("a/b", "2"),
        ("c", "2"),
    ]
    assert described(answers) == [
        ("p=__HIVE_DEFAULT_PARTITION__/q=1", 1),
        ("p=a%2Fb/q=1", 1),
        ("p=a%2Fb/q=2", 2),
        ("p=c/q=2", 1),
    ]
    assert all((tmp_path / (answer.name or "")).exists() for answer in answers)


def test_change_rows_go_elsewhere(tmp_path: Path) -> None:
    to = order(
        str(tmp_path / "data"),
        changes_directory=str(tmp_path / "changes"),
        partition_columns=("p",),
    )
    rows = batch(id=[1, 2, 3], kind=[False, False, True], p=["a", "b", "b"])
    answers = list(write_rows(to, [rows]))
    assert [answer.ordinal for answer in answers] == [DATA, DATA, CHANGES]
    assert [answer.partition for answer in answers] == [("a",), ("b",), ("b",)]
    (change,) = (tmp_path / "changes").rglob("*.parquet")
    assert change.name.startswith("cdc-")
    assert len(list((tmp_path / "data").rglob("part-*.parquet"))) == 2


@pytest.mark.parametrize("file_rows", [1, 2, 3, 5, 7])
def test_files_have_so_many_rows_at_most(tmp_path: Path, file_rows: int) -> None:
    batches = [batch(id=[1, 2, 3], p=["a"] * 3), batch(id=[4, 5, 6, 7], p=["a", "a", "b", "b"])]
    to = order(str(tmp_path), partition_columns=("p",), file_rows=file_rows)
    answers = list(write_rows(to, batches))
    assert sum(answer.kept_rows for answer in answers) == 7
    assert max(answer.kept_rows for answer in answers) == min(file_rows, 5)
    expected = -(-5 // file_rows) + -(-2 // file_rows)
    assert len({answer.name for answer in answers}) == expected


def test_objects_appear_when_they_are_whole(tmp_path: Path) -> None:
    store = f"file://{tmp_path}", pickle.dumps({})
    to = order((store, "t/job", UNKNOWN_SIZE), partition_columns=("p",))

    def failing() -> Any:
        yield batch(id=[1, 2], p=["a", "b"])
        raise RuntimeError("the executor is lost")

    with pytest.raises(RuntimeError, match="lost"):
        list(write_rows(to, failing()))
    assert [path.parent.name for path in tmp_path.rglob("*.parquet")] == ["p=a"]


def test_a_directory_out_of_reach_is_refused() -> None:
    (answer,) = write_rows(order("/proc/no/such"), [batch(id=[1])])
    assert "FileNotFoundError" in (answer.refusal or "")


def test_answers_travel_as_rows(tmp_path: Path) -> None:
    message = WRITE_ORDERS.encode(order(str(tmp_path)))
    (row,) = write_stream(message, [batch(id=[1])])
    answer = FILE_ANSWERS.decode(pickle.loads(row.column(0)[0].as_py()))
    assert answer.kept_rows == 1
