"""Files of copied chunks in an object store: streamed without decoding, and put as a whole."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.computed_rows import (
    COMPUTED_FILES,
    COMPUTED_VALUES,
    ComputedFile,
    ComputedValues,
    compute_rows,
)
from puredelta.worker.data_files import spliced_file
from puredelta.worker.data_files.rewrite_file import (
    REWRITE_TASKS,
    RewriteTask,
    rewrite,
    rewrite_together,
)
from puredelta.worker.data_files.update_rows import UpdateOrder
from puredelta.worker.data_files.updated_file import FileUpdate
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from puredelta.worker.expressions import Constant
from puredelta.worker.files import UNKNOWN_SIZE, DataPath, StoreFields, client_of
from puredelta.worker.wire import LIMITS, LIMITS_CODEC
from tests.servers import s3
from tests.worker.data_files.spliced_tables import FaultySink, odd_table
from tests.worker.data_files.test_updated_file import answers, rows_for, with_values

AT = [3, 77, 180]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not s3.is_installed("moto"):
        pytest.skip("moto[server] is not installed")
    with s3.s3_server("moto", tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture
def place(endpoint: str, tmp_path: Path) -> tuple[StoreFields, str]:
    """A store, and a directory in it."""
    options = {
        "access_key_id": s3.KEY,
        "secret_access_key": s3.SECRET,
        "region": "us-east-1",
        "endpoint": endpoint,
        "client_options": {"allow_http": True},
    }
    return (f"s3://{s3.BUCKET}", pickle.dumps(options)), tmp_path.name


def put(place: tuple[StoreFields, str]) -> pa.Table:
    store, directory = place
    table = odd_table(random.Random(4), 200, nested=True)
    out = pa.BufferOutputStream()
    pq.write_table(table, out, row_group_size=50, write_page_index=True)
    obstore.put(client_of(store), f"{directory}/old.parquet", out.getvalue().to_pybytes())
    return table


def names(place: tuple[StoreFields, str]) -> list[str]:
    store, directory = place
    return sorted(
        found["path"] for some in obstore.list(client_of(store), directory) for found in some
    )


def read(place: tuple[StoreFields, str], answer: FileAnswer) -> list[str]:
    store, directory = place
    assert answer.name is not None
    content = obstore.get(client_of(store), f"{directory}/{answer.name}").bytes()
    assert len(content) == answer.size_bytes
    return list(map(repr, pq.read_table(pa.BufferReader(bytes(content))).to_pylist()))


def updated(place: tuple[StoreFields, str], values: pa.Table) -> FileAnswer:
    store, directory = place
    task = FileUpdate(
        ordinal=0,
        source=(store, f"{directory}/old.parquet", UNKNOWN_SIZE),
        directory=(store, directory, UNKNOWN_SIZE),
        name_prefix="part",
        num_updates=len(AT),
    )
    order = UpdateOrder(files=(task,), schema=values.schema)
    (answer,) = answers(order, [rows_for(AT, values)])
    return answer


def copied(place: tuple[StoreFields, str]) -> FileAnswer:
    store, directory = place
    words, bits = RowBitmap.of_rows(np.array(AT, np.int64)).packed()
    task = RewriteTask(
        ordinal=0,
        source=(store, f"{directory}/old.parquet", UNKNOWN_SIZE),
        directory=(store, directory, UNKNOWN_SIZE),
        name_prefix="part",
        words=words,
        bits=bits,
    )
    (answer,) = rewrite_together([task])
    assert answer.refusal is None
    return answer


VALUES = pa.table({"x": [1.5, None, -2.0], "i": pa.array([1, 2, None], pa.int32())})


def test_an_object_gets_new_values_in_place(place: tuple[StoreFields, str]) -> None:
    table = put(place)
    answer = updated(place, VALUES)
    assert answer.refusal is None
    due = with_values(table, AT, VALUES)
    assert read(place, answer) == list(map(repr, due.to_pylist()))
    assert len(names(place)) == 2


def test_an_object_is_copied_without_some_rows(place: tuple[StoreFields, str]) -> None:
    table = put(place)
    kept = [row for n, row in enumerate(table.to_pylist()) if n not in AT]
    answer = copied(place)
    assert read(place, answer) == list(map(repr, kept))
    assert answer.kept_rows == 197


def test_each_object_is_asked_for_once(
    place: tuple[StoreFields, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is rewritten, and also the last one of a task."""
    store, directory = place
    table = pa.table({"x": np.random.default_rng(2).random(30_000), "i": pa.nulls(30_000, "int32")})
    out = pa.BufferOutputStream()
    pq.write_table(table, out, row_group_size=10_000)
    content = out.getvalue().to_pybytes()
    assert len(content) > 128 << 10, "more than is brought of an object's end"
    for n in range(3):
        obstore.put(client_of(store), f"{directory}/{n}.parquet", content)
    asked: list[str] = []
    get_ranges = obstore.get_ranges

    def noted(client: Any, key: str, **more: Any) -> Any:
        asked.append(key.rpartition("/")[2])
        return get_ranges(client, key, **more)

    monkeypatch.setattr(obstore, "get_ranges", noted)
    words, bits = RowBitmap.of_rows(np.array(AT, np.int64)).packed()
    paths: list[DataPath] = [(store, f"{directory}/{n}.parquet", len(content)) for n in range(3)]
    new: DataPath = (store, f"{directory}/new", UNKNOWN_SIZE)
    tasks = [
        RewriteTask(
            ordinal=n, source=path, directory=new, name_prefix=f"r{n}", words=words, bits=bits
        )
        for n, path in enumerate(paths)
    ]
    fields = rewrite((LIMITS_CODEC.encode(LIMITS), list(map(REWRITE_TASKS.encode, tasks))))
    kept = [FILE_ANSWERS.decode(one).kept_rows for one in fields]
    assert (kept, sorted(asked)) == ([29_997] * 3, ["0.parquet", "1.parquet", "2.parquet"])
    asked.clear()
    updates = tuple(
        FileUpdate(ordinal=n, source=path, directory=new, name_prefix=f"u{n}", num_updates=len(AT))
        for n, path in enumerate(paths)
    )
    order = UpdateOrder(files=updates, schema=VALUES.schema)
    found = answers(order, [rows_for(AT, VALUES, n) for n in range(3)])
    assert [one.refusal for one in found] == [None] * 3
    assert sorted(asked) == ["0.parquet", "1.parquet", "2.parquet"]
    asked.clear()
    values = ComputedValues(
        schema=pa.schema({"i": pa.int32()}),
        reads=pa.schema({}),
        clauses=((Constant(7, pa.int32()),),),
    )
    leaving, touched = (
        RowBitmap.of_rows(np.array(at, np.int64)).packed() for at in ([5], [5, *AT])
    )
    for rows in ({}, {"leaving": leaving, "touched": touched}):
        files = [
            ComputedFile(update=replace(one, **rows), rows=((words, bits),)) for one in updates
        ]
        fields = compute_rows(
            (COMPUTED_VALUES.encode(values), list(map(COMPUTED_FILES.encode, files)))
        )
        assert [FILE_ANSWERS.decode(one).refusal for one in fields] == [None] * 3
        assert sorted(asked) == ["0.parquet", "1.parquet", "2.parquet"]
        asked.clear()


@pytest.mark.parametrize("fault", ["fails", "is cut", "is lost"])
def test_no_object_appears_when_a_write_goes_wrong(
    place: tuple[StoreFields, str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place)
    plain = spliced_file.SplicedFile.__init__

    def faulty(self: Any, footer: Any, sink: Any, columns: Any) -> None:
        plain(self, footer, FaultySink(sink, 4, fault), columns)  # type: ignore[arg-type]

    monkeypatch.setattr(spliced_file.SplicedFile, "__init__", faulty)
    for run in (lambda: updated(place, VALUES), lambda: copied(place)):
        with pytest.raises(OSError, match=r"space|bytes of"):
            run()
    assert names(place) == [f"{place[1]}/old.parquet"]
