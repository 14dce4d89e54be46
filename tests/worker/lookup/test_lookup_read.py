"""Reading columns of many files: what one file looks like says nothing of the next."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.lookup.lookup_read import SourcePart, read_columns, read_ranges
from puredelta.worker.lookup.lookup_request import FileLookup
from puredelta.worker.read_rows import OnlySparkError
from puredelta.worker.wire import INT96, Limits

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


def written(path: Path, table: pa.Table, row_group_size: int | None = None) -> FileLookup:
    pq.write_table(table, path, row_group_size=row_group_size)
    return FileLookup(ordinal=0, path=str(path), constants=(("p", 5),), words=b"", bits=b"")


def at_a_time(lookup_rows: int) -> Limits:
    return Limits(lookup_rows=lookup_rows)


def read(files: Sequence[FileLookup], names: list[str]) -> list[list[list[object]]]:
    """Return the rows of every file, column by column."""
    by_file: dict[str, list[list[object]]] = {file.path: [[] for _ in names] for file in files}
    for rows in read_ranges(files, names, limits=at_a_time(2)):
        for values, column in zip(by_file[rows.file.path], rows.columns, strict=True):
            values.extend(column.to_pylist())
    return list(by_file.values())


@pytest.mark.parametrize("names", WANTED, ids=str)
@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(FILES, 2)))
def test_a_file_is_read_as_if_it_were_alone(
    tmp_path: Path, one: str, other: str, names: list[str]
) -> None:
    tables = [FILES[name] for name in (one, other, one, other, other, one)]
    sizes = (None, None, None, 2, None, None)
    orders = [
        written(tmp_path / str(n), table, size)
        for n, (table, size) in enumerate(zip(tables, sizes, strict=True))
    ]
    wanted = [*names, "p"]
    assert read(orders, wanted) == [rows for order in orders for rows in read([order], wanted)]


def test_small_files_are_opened_together(tmp_path: Path, opened: list[object]) -> None:
    orders = [written(tmp_path / str(n), LIKE) for n in range(40)]
    ranges = list(read_ranges(orders, ["x", "p", "k"], limits=at_a_time(30)))
    assert sorted(rows.file.path for rows in ranges) == sorted(o.path for o in orders)
    assert all(rows.columns == [X, pa.array([5, 5, 5]), K] for rows in ranges)
    # Alone and to compare its types; an empty file for that; ten files at a time.
    assert [source == orders[0].path for source in opened] == [True, True, *[False] * 5]


def test_rows_that_a_vector_deletes_stay_those_of_their_file(tmp_path: Path) -> None:
    orders = [written(tmp_path / str(n), LIKE) for n in range(3)]
    deleting = (1).to_bytes(8, "little")  # the first row
    orders[1] = FileLookup(1, orders[1].path, (), bytes(8), deleting)
    gone = [rows.deleted() for rows in read_ranges(orders, ["k"], limits=at_a_time(100))]
    assert [None if one is None else one.tolist() for one in gone] == [
        None,
        [True, False, False],
        None,
    ]


def test_files_of_many_kinds_or_rows_are_not_looked_at_again(
    tmp_path: Path, opened: list[object]
) -> None:
    kinds = [written(tmp_path / str(n), LIKE.append_column(f"y{n}", X)) for n in range(9)]
    list(read_ranges([*kinds, *kinds], ["k"], limits=at_a_time(100)))
    assert len(opened) == 9 + 4 + 4 + (9 - 4) + 4  # alone, compared, and those of four kinds
    opened.clear()
    orders = [written(tmp_path / f"large{n}", LIKE) for n in range(3)]
    list(read_ranges(orders, ["k"], limits=Limits(small_file_rows=LIKE.num_rows - 1)))
    list(read_ranges(orders, ["k"], limits=Limits(small_file_rows=0)))
    assert opened == 2 * [order.path for order in orders]


def test_a_damaged_file_is_an_error_behind_good_ones(tmp_path: Path) -> None:
    orders = [written(tmp_path / str(n), LIKE) for n in range(4)]
    content = bytearray(Path(orders[2].path).read_bytes())
    content[4:12] = b"\xff" * 8  # the header of its first page
    Path(orders[2].path).write_bytes(content)
    with pytest.raises(OSError, match="page header"):
        read([orders[2]], ["k"])
    found = read_ranges(orders, ["k"], limits=at_a_time(100))
    assert next(found).file == orders[0]
    with pytest.raises(OSError, match="page header"):
        list(found)
    assert read([*orders[:2], orders[3]], ["k"]) == 3 * [[K.to_pylist()]]


@pytest.mark.parametrize("kind", [pa.int64(), pa.struct({"name": pa.int64()})], ids=str)
def test_a_name_that_is_no_utf_8_is_an_error_of_arrow(kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    name = "v" if pa.types.is_struct(kind) else "name"
    pq.write_table(pa.table({"k": K, name: pa.nulls(len(K), kind)}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"name", b"\xff\xffme"))
    with pytest.raises(pa.ArrowInvalid, match="no UTF-8"):
        read_columns(str(path), ["k"], SourcePart(), batch_rows=9)


def test_what_is_refused_is_refused_behind_a_good_file(tmp_path: Path) -> None:
    good = written(tmp_path / "1", LIKE)
    spelt = written(tmp_path / "2", pa.table({"K": K, "v": V, "x": X}))
    damaged = FileLookup(0, str(tmp_path / "absent"), (), b"", b"")
    for bad in (spelt, damaged):
        with pytest.raises(OnlySparkError):
            list(read_ranges([good, bad], ["k"], limits=at_a_time(2)))


def test_int96_is_left_to_spark_where_settings_of_the_session_move_it(tmp_path: Path) -> None:
    stamps = pa.array([0, 1, 2], pa.timestamp("ns"))
    path = tmp_path / "old.parquet"
    table = pa.table({"k": K, "ts": stamps})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    file = FileLookup(ordinal=0, path=str(path), constants=())
    limits = Limits(only_spark=(INT96,))
    for first in (None, 1):
        with pytest.raises(OnlySparkError, match="INT96"):
            list(read_ranges([file], ["k", "ts"], first=first, limits=limits))
    assert len(list(read_ranges([file], ["k"], limits=limits))) == 1
    assert len(list(read_ranges([file], ["k", "ts"]))) == 1


def test_a_file_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "f.parquet")
    two = pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])
    pq.write_table(two, path)
    for name, problem in (("id", "has several columns"), ("other", "lacks column")):
        with pytest.raises(OnlySparkError, match=f"{problem} {name}"):
            read_columns(path, [name], SourcePart(), batch_rows=10)
