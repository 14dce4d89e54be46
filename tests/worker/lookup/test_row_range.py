"""Columns of a range that are decoded when they are asked for."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.lookup.lookup_read import LateColumns, coalesced, read_ranges
from puredelta.worker.lookup.lookup_request import FileLookup
from puredelta.worker.read_rows import OpenFile
from puredelta.worker.wire import LIMITS, Limits

ROWS = 1_000
TABLE = pa.table(
    {
        "k": pa.array(range(ROWS)),
        "text": pa.array([f"text {n % 7}" * (n % 3) for n in range(ROWS)]),
        "n": pa.array([None if n % 5 == 0 else n for n in range(ROWS)], pa.int32()),
    }
)
LARGE = Limits(small_file_rows=0, lookup_rows=64)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The leaves of every read of a file."""
    leaves: list[list[int]] = []
    read: Callable[..., Any] = OpenFile.read

    def kept(self: OpenFile, *args: Any, **options: Any) -> Any:
        leaves.append(list(options["leaves"]))
        return read(self, *args, **options)

    monkeypatch.setattr(OpenFile, "read", kept)
    return leaves


def file(path: Path, table: pa.Table = TABLE, *, group_rows: int = 300) -> FileLookup:
    pq.write_table(table, path, row_group_size=group_rows)
    return FileLookup(ordinal=0, path=str(path), constants=(("p", 5),))


@pytest.mark.parametrize("seed", range(12))
def test_late_rows_are_those_of_the_file(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    file(tmp_path / "f", group_rows=dice.choice([1, 7, 300, ROWS]))
    path = str(tmp_path / "f")
    late = LateColumns(path, OpenFile(path), batch_rows=dice.choice([3, 64, 5_000]))
    cuts = sorted({0, ROWS, *(dice.randrange(ROWS) for _ in range(9))})
    for first, end in itertools.pairwise(cuts):
        for name in ("text", "n"):
            if dice.random() < 0.5:
                found = late.rows(name, first, end - first)
                assert found.equals(TABLE[name].combine_chunks().slice(first, end - first))


def test_only_the_first_columns_are_decoded_until_others_are_asked_for(
    tmp_path: Path, decoded: list[list[int]]
) -> None:
    some = [file(tmp_path / str(n)) for n in range(2)]
    ranges = list(read_ranges(some, ["k", "text", "n", "p"], first=1, limits=LARGE))
    assert decoded == [[0], [0]]
    assert [rows.cost(0) for rows in ranges] == [0] * len(ranges)
    one = next(rows for rows in ranges if rows.first_row > ROWS / 2)
    assert one.cost(1) > one.cost(2) > 0
    assert one.column(2).equals(TABLE["n"].combine_chunks().slice(one.first_row, one.num_rows))
    assert one.column(3).to_pylist() == [5] * one.num_rows
    assert decoded == [[0], [0], [2]]
    assert [one.cost(1) > 0, one.cost(2), one.cost(3)] == [True, 0, 0]


def test_a_file_that_lacks_a_column_or_has_only_constants_is_read_at_once(tmp_path: Path) -> None:
    one = file(tmp_path / "f")
    for names, first in ((["k", "added", "text"], 1), (["p", "text"], 1), (["k", "k2"], 2)):
        for rows in read_ranges([one], names, first=first, limits=LARGE):
            assert rows.late is None
            assert [len(rows.column(n)) for n in range(len(names))] == [rows.num_rows] * len(names)


def test_few_files_are_open_at_a_time(tmp_path: Path) -> None:
    one = file(tmp_path / "f", TABLE.slice(0, 2))
    ranges = read_ranges([one] * 300, ["k", "n"], first=1, limits=LARGE)
    assert [len(some) for some in coalesced(ranges, num_rows=10**9, num_bytes=10**9)] == [
        128,
        128,
        44,
    ]
    eager = read_ranges([one] * 300, ["k", "n"], limits=LARGE)
    assert [len(some) for some in coalesced(eager, num_rows=10**9, num_bytes=10**9)] == [300]


def test_ranges_are_short_where_late_texts_are_long(tmp_path: Path) -> None:
    """A dictionary of a few long texts makes any number of them."""
    path, rows = str(tmp_path / "f"), 65_536
    few = pa.array([letter * 30_000 for letter in "abcdefghijklmnop"])
    places = pa.array(np.arange(rows, dtype=np.int32) % 16)
    texts = pa.DictionaryArray.from_arrays(places, few)
    table = pa.table({"k": pa.array(range(rows)), "v": texts})
    pq.write_table(table, path, store_schema=False)
    one = FileLookup(ordinal=0, path=path)
    ranges = list(read_ranges([one], ["k", "v"], first=1))
    assert max(some.num_rows for some in ranges) * 30_000 <= LIMITS.read_bytes
    assert sum(some.num_rows for some in ranges) == rows
    found = ranges[1].column(1)
    assert found[0].as_py() == few[ranges[1].first_row % 16].as_py()
    together = coalesced(ranges, num_rows=rows, num_bytes=LIMITS.read_bytes)
    assert [len(some) for some in together] == [1] * len(ranges)
