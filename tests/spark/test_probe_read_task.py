"""Reading columns of many files: what one file looks like says nothing of the next."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.file_rows_task import OnlySparkError, opened
from puredelta.spark.probe_read_task import LastPlaces, ProbeOrder, read_pieces

K, V, X = pa.array([1, 2, None]), pa.array(["a", None, "c"]), pa.array([7, 8, 9])
LIKE = pa.table({"k": K, "v": V, "x": X})
FILES = {
    "like": LIKE,
    "in another order": pa.table({"x": X, "v": V, "k": K}),
    "others in their places": pa.table({"v": X, "k": V, "x": K}),
    "one is missing": pa.table({"k": K, "w": V, "x": X}),
    "all are missing": pa.table({"a": K, "b": V, "c": X}),
    "one more": pa.table({"k": K, "v": V, "x": X, "y": X}),
    "other types": pa.table({"k": K.cast(pa.int32()), "v": V.dictionary_encode(), "x": X}),
    "a struct in the place": pa.table({"k": pa.array([{"k": 1}, None, {"k": 2}]), "v": V, "x": X}),
    "a struct in two places": pa.table({"k": pa.array([{"a": 1, "b": 2}, None, None]), "v": V}),
    "no rows": LIKE.slice(0, 0),
    "a dotted name": pa.table({"k.v": K, "v": V, "k": X}),
}
WANTED = [["k"], ["v", "k"], ["k", "v", "x"], ["k.v"]]


def written(path: Path, table: pa.Table) -> ProbeOrder:
    pq.write_table(table, path, row_group_size=2)
    return ProbeOrder(ordinal=0, path=str(path), constants=(("p", 5),), words=b"", bits=b"")


def read(orders: Sequence[ProbeOrder], names: list[str]) -> list[list[list[object]]]:
    """Return the rows of every file, column by column."""
    by_file: dict[str, list[list[object]]] = {order.path: [[] for _ in names] for order in orders}
    for piece in read_pieces(orders, names, batch_rows=2):
        for values, column in zip(by_file[piece.order.path], piece.columns, strict=True):
            values.extend(column.to_pylist())
    return list(by_file.values())


@pytest.mark.parametrize("names", WANTED, ids=str)
@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(FILES, 2)))
def test_a_file_is_read_as_if_it_were_alone(
    tmp_path: Path, one: str, other: str, names: list[str]
) -> None:
    orders = [written(tmp_path / "1", FILES[one]), written(tmp_path / "2", FILES[other])]
    wanted = [*names, "p"]
    assert read(orders, wanted) == [rows for order in orders for rows in read([order], wanted)]


def test_files_that_are_alike_are_not_asked_for_their_columns(tmp_path: Path) -> None:
    first, second = (written(tmp_path / str(n), LIKE) for n in range(2))
    last = LastPlaces()
    assert last.read(first.path, {"k", "x"}, 10) is None
    last.note(opened(first.path), {"k", "x"})
    batches = last.read(second.path, {"k", "x"}, 10)
    assert batches is not None
    assert pa.Table.from_batches(batches).equals(LIKE.select(["k", "x"]))
    assert last.read(second.path, {"k"}, 10) is None
    assert last.read(second.path, {"k", "v"}, 10) is None
    assert last.read(str(tmp_path / "absent"), {"k", "x"}, 10) is None


def test_what_is_refused_is_refused_behind_a_good_file(tmp_path: Path) -> None:
    good = written(tmp_path / "1", LIKE)
    spelt = written(tmp_path / "2", pa.table({"K": K, "v": V, "x": X}))
    damaged = ProbeOrder(0, str(tmp_path / "absent"), (), b"", b"")
    for bad in (spelt, damaged):
        with pytest.raises(OnlySparkError):
            list(read_pieces([good, bad], ["k"], batch_rows=2))
