"""Files as workers reach them; obstore's store over a directory stands for an object store."""

from __future__ import annotations

import functools
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker import files
from puredelta.worker.files import (
    UNKNOWN_SIZE,
    DataPath,
    NewFile,
    StoreFields,
    client_of,
    joined,
    label,
)
from puredelta.worker.range_file import RangeFile, fetched_ahead
from puredelta.worker.read_rows import (
    OnlySparkError,
    OpenFile,
    opened,
    ranges_of_columns,
    read_batches,
)

NO_OPTIONS = pickle.dumps({})
ROWS = pa.table({"id": pa.array(range(300_000), pa.int64()), "text": ["x" * 20] * 300_000})


def options(**client_options: str) -> bytes:
    return pickle.dumps({"client_options": client_options})


@pytest.fixture
def store(tmp_path: Path) -> StoreFields:
    return f"file://{tmp_path}", NO_OPTIONS


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What obstore is asked for."""
    made: list[tuple[str, Any]] = []

    def noted(name: str) -> Any:
        call = getattr(obstore, name)

        def noting(*args: Any, **more: Any) -> Any:
            starts, ends = more.get("starts", []), more.get("ends", [])
            made.append((name, list(zip(starts, ends, strict=True))))
            return call(*args, **more)

        return noting

    for name in ("head", "get_ranges", "put"):
        monkeypatch.setattr(obstore, name, noted(name))
    return made


def written(store: StoreFields, tmp_path: Path, rows: pa.Table = ROWS) -> DataPath:
    target = tmp_path / "t" / "part-0.parquet"
    target.parent.mkdir(exist_ok=True)
    pq.write_table(rows, target, row_group_size=100_000, use_dictionary=False, compression="none")
    return store, "t/part-0.parquet", target.stat().st_size


def test_a_column_of_an_object_takes_one_request_for_the_footer_and_one_per_row_group(
    store: StoreFields, tmp_path: Path, requests: list[tuple[str, Any]]
) -> None:
    file = opened(written(store, tmp_path))
    assert len(requests) == 1
    batches = list(read_batches(file, None, columns=["id"]))
    assert pa.Table.from_batches(batches)["id"].to_pylist() == list(range(300_000))
    assert len(requests) == 4
    fetched = sum(end - start for _, ranges in requests[1:] for start, end in ranges)
    assert fetched < 300_000 * 9  # not the texts


def test_a_large_chunk_is_brought_by_several_requests_at_the_same_time(
    store: StoreFields, tmp_path: Path, requests: list[tuple[str, Any]]
) -> None:
    rows = pa.table({"id": pa.array(range(3_000_000), pa.int64())})
    path = tmp_path / "large.parquet"
    pq.write_table(rows, path, use_dictionary=False, compression="none", row_group_size=3_000_000)
    file = opened((store, "large.parquet", path.stat().st_size))
    assert pa.Table.from_batches(read_batches(file, None)) == rows
    (_, _), (_, pieces) = requests
    assert [end - start for start, end in pieces[:2]] == [8 << 20, 8 << 20]


def test_a_size_that_is_not_known_is_asked_for(
    store: StoreFields, tmp_path: Path, requests: list[tuple[str, Any]]
) -> None:
    fields, key, _ = written(store, tmp_path)
    assert opened((fields, key, UNKNOWN_SIZE)).metadata.num_rows == 300_000
    assert [name for name, _ in requests] == ["head", "get_ranges"]


def test_bytes_that_were_not_fetched_are_read_by_themselves(
    store: StoreFields, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 4096
    (tmp_path / "x").write_bytes(content)
    file = RangeFile((store, "x", len(content)))
    file.fetch([(10, 20), (300, 400)])
    for start, end in ((10, 20), (15, 350), (0, 5), (900_000, 990_000), (1_040_000, 1_048_576)):
        assert file.between(start, end) == content[start:end]
    assert (file.seek(-3, 2), file.read(), file.read()) == (len(content) - 3, content[-3:], b"")
    assert (file.seek(5), file.tell(), file.read(2)) == (5, 5, content[5:7])


def test_an_empty_object_can_be_opened(store: StoreFields, tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert RangeFile((store, "x", 0)).read() == b""


def test_a_missing_object_is_named_without_the_options_of_its_store(tmp_path: Path) -> None:
    store: StoreFields = (f"file://{tmp_path}", options(user_agent="hidden"))
    with pytest.raises(OnlySparkError, match=r"t/gone\.parquet") as failure:
        opened((store, "t/gone.parquet", 500_000))
    assert "hidden" not in str(failure.value)
    assert "Debug source" not in str(failure.value)


def test_an_object_appears_as_a_whole_or_not_at_all(store: StoreFields, tmp_path: Path) -> None:
    left, kept = (NewFile((store, f"t/{name}", UNKNOWN_SIZE)) for name in ("left", "kept"))
    for file in (left, kept):
        with pq.ParquetWriter(file.sink(), ROWS.schema) as writer:
            writer.write_table(ROWS)
    assert not list(tmp_path.rglob("*"))
    left.discard()
    size, modified_ms = kept.finish()
    assert [file.name for file in (tmp_path / "t").iterdir()] == ["kept"]
    assert (tmp_path / "t" / "kept").stat().st_size == size
    assert modified_ms > 1_600_000_000_000
    assert pq.read_table(tmp_path / "t" / "kept") == ROWS


def test_a_large_object_is_uploaded_in_parts(
    store: StoreFields, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PART_BYTES", 1 << 20)
    monkeypatch.setattr(files, "_MEMORY_BYTES", 1 << 20)
    file = NewFile((store, "large", UNKNOWN_SIZE))
    content = bytes(range(256)) * 20_000
    file.sink().write(content)  # type: ignore[union-attr]
    assert file.finish()[0] == len(content)
    assert (tmp_path / "large").read_bytes() == content


def test_a_store_that_refuses_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "t").touch()  # no directory
    file = NewFile(((f"file://{tmp_path}", NO_OPTIONS), "t/x", UNKNOWN_SIZE))
    file.sink().write(b"x")  # type: ignore[union-attr]
    with pytest.raises(OSError, match="t/x"):
        file.finish()


def test_a_process_has_one_client_per_store(store: StoreFields) -> None:
    client = client_of(store)
    assert client_of((*store,)) is client
    assert client_of((store[0], options(timeout="9s"))) is not client


def test_clients_are_few(store: StoreFields) -> None:
    for n in range(40):
        client_of((store[0], options(timeout=f"{n + 1}s")))
    assert len(sys.modules[files._KEPT].clients) <= 16


def test_paths_are_joined_alike() -> None:
    store: StoreFields = ("s3://bucket/", b"hidden")
    at = joined((store, "t", UNKNOWN_SIZE), "p=1", "", "part-0.parquet")
    assert label(at) == "s3://bucket/t/p=1/part-0.parquet"
    assert joined("/data/t", "p=1", "", "x") == "/data/t/p=1/x"


def test_a_worker_without_obstore_says_what_to_install(
    store: StoreFields, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ModuleNotFoundError, match="pip install obstore"):
        OpenFile((store, "x", 10))


def test_objects_are_opened_ahead_and_in_order(
    store: StoreFields, tmp_path: Path, requests: list[tuple[str, Any]]
) -> None:
    rows = pa.table({"id": [1]})
    for n in range(40):
        pq.write_table(rows, tmp_path / f"{n}.parquet")
    size = (tmp_path / "0.parquet").stat().st_size
    paths: list[DataPath] = [(store, f"{n}.parquet", size) for n in range(40)]
    opened_paths = []
    for path in fetched_ahead(paths, lambda path: path):
        assert next(read_batches(opened(path), None)).num_rows == 1
        opened_paths.append(path)
    assert opened_paths == paths
    assert len(requests) == 40  # each once


def test_columns_come_ahead_where_they_are_small(
    store: StoreFields, tmp_path: Path, requests: list[tuple[str, Any]]
) -> None:
    """Two requests for each file, of which the second is not waited for either."""
    draw = np.random.default_rng(1)
    rows = pa.table({"id": range(200_000), "x": draw.random(200_000), "y": draw.random(200_000)})
    for n in range(3):
        pq.write_table(rows, tmp_path / f"{n}.parquet", row_group_size=50_000)
    size = (tmp_path / "0.parquet").stat().st_size
    assert size > 4 << 20
    paths: list[DataPath] = [(store, f"{n}.parquet", size) for n in range(3)]
    wanted = functools.partial(ranges_of_columns, ["id"])
    for path in fetched_ahead(paths, lambda path: path, wanted):
        until = time.monotonic() + 20
        while len(requests) < 6:
            assert time.monotonic() < until
            time.sleep(0.01)
        found = pa.Table.from_batches(read_batches(opened(path), None, columns=["id"]))
        assert found["id"].to_pylist() == list(range(200_000))
    assert len(requests) == 6
    requests.clear()
    for path in fetched_ahead(paths, lambda path: path, wanted):
        found = pa.Table.from_batches(read_batches(opened(path), None, columns=["y"]))
        assert found["y"].to_pylist() == rows["y"].to_pylist()  # what came ahead does no harm


def test_objects_that_are_read_whole_come_whole_one_ahead(
    store: StoreFields, tmp_path: Path, requests: list[tuple[str, Any]]
) -> None:
    """One request for each file of some megabytes; a large one comes as it is read."""
    draw = np.random.default_rng(1)
    rows = pa.table({"x": draw.random(200_000)})
    for n in range(4):
        pq.write_table(rows, tmp_path / f"{n}.parquet", row_group_size=50_000)
    large = pa.table({"x": draw.random(2_500_000)})
    pq.write_table(large, tmp_path / "4.parquet", use_dictionary=False)
    size, large_size = ((tmp_path / f"{n}.parquet").stat().st_size for n in (0, 4))
    assert 1 << 20 < size < 8 << 20 < 16 << 20 < large_size
    paths: list[DataPath] = [(store, f"{n}.parquet", size) for n in range(4)]
    paths.append((store, "4.parquet", large_size))
    for number, path in enumerate(fetched_ahead(paths, lambda path: path, whole=True)):
        found = pa.Table.from_batches(read_batches(opened(path), None))
        assert found["x"].equals(large["x"] if number == 4 else rows["x"])
        assert len(sys.modules[files._KEPT].arriving) <= 1
    spans = [ranges for name, ranges in requests if name == "get_ranges"]
    assert spans[:4] == [[(0, size)]] * 4
    assert spans[4] == [(large_size - (64 << 10), large_size)]


def test_what_cannot_be_read_ahead_is_said_by_the_reader(
    store: StoreFields, tmp_path: Path
) -> None:
    (tmp_path / "odd").write_bytes(b"no Parquet at all")
    wanted = functools.partial(ranges_of_columns, ["id"])
    (path,) = fetched_ahead([(store, "odd", 17)], lambda path: path, wanted)
    with pytest.raises(OnlySparkError):
        opened(path)


def test_what_was_opened_ahead_is_forgotten_where_the_reader_stops(
    store: StoreFields, tmp_path: Path
) -> None:
    (tmp_path / "there").write_bytes(b"x")
    paths: list[DataPath] = [(store, name, 1) for name in ("there", "gone", "there")]
    ahead = fetched_ahead(paths, lambda path: path)
    next(ahead)
    ahead.close()
    assert not sys.modules[files._KEPT].arriving
    with pytest.raises(FileNotFoundError):
        RangeFile((store, "gone", 1))


def test_files_of_a_file_system_are_not_touched() -> None:
    assert list(fetched_ahead(["/no", "/such"], lambda path: path)) == ["/no", "/such"]


@pytest.mark.parametrize("failure", [None, OSError, AttributeError])
def test_a_whole_file_is_on_its_way_to_the_disk_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[Exception] | None
) -> None:
    advised: list[tuple[int, int, int]] = []

    def advise(descriptor: int, *more: int) -> None:
        assert os.fstat(descriptor).st_size == 3
        advised.append(more)  # type: ignore[arg-type]
        if failure is not None:
            raise failure

    monkeypatch.setattr(os, "posix_fadvise", advise)
    new = NewFile(str(tmp_path / "x"))
    with new.stream() as sink:
        sink.write(b"abc")
        assert not advised
    assert new.finish(3)[0] == 3
    assert advised == [(0, 0, os.POSIX_FADV_DONTNEED)]
    assert (tmp_path / "x").read_bytes() == b"abc"
