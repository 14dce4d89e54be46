"""Statistics are parsed once per column, and go along with files that are picked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

from puredelta.log.files import statistics_cache, stats_columns
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_json import Path, StatsColumns
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.schema.types import BOOLEAN, LONG, STRING, DataType

A, B = {("a",): LONG}, {("b",): STRING}


def _files(count: int) -> FileTable:
    stats = [
        {
            "numRecords": 10 + n,
            "minValues": {"a": n, "b": f"l{n}"},
            "maxValues": {"a": n + 5, "b": f"m{n}"},
            "nullCount": {"a": 0, "b": n},
        }
        for n in range(count)
    ]
    return FileTable.of(
        Add(
            path=f"{n}.parquet",
            partition_values={},
            size_bytes=1,
            modified_ms=1,
            data_change=True,
            stats=json.dumps(one),
        )
        for n, one in enumerate(stats)
    )


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[Path, ...]]]:
    """How many texts were parsed each time, and for which columns."""
    seen: list[tuple[int, tuple[Path, ...]]] = []
    parse = statistics_cache.read_stats_columns

    def counted(stats: pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> StatsColumns:
        seen.append((len(stats), tuple(leaves)))
        return parse(stats, leaves)

    monkeypatch.setattr(statistics_cache, "read_stats_columns", counted)
    return seen


def test_only_new_columns_are_parsed(parsed: list[tuple[int, tuple[Path, ...]]]) -> None:
    files = _files(3)
    for _ in range(2):
        assert files.statistics(A).leaves[("a",)].low.to_pylist() == [0, 1, 2]
    both = files.statistics({**A, **B})
    assert list(both.leaves) == [("a",), ("b",)]
    assert both.leaves[("b",)].high.to_pylist() == ["m0", "m1", "m2"]
    assert both.num_records.to_pylist() == [10, 11, 12]
    assert parsed == [(3, (("a",),)), (3, (("b",),))]


def test_a_column_of_another_type_is_another_column(
    parsed: list[tuple[int, tuple[Path, ...]]],
) -> None:
    files = _files(2)
    assert files.statistics({("a",): STRING}).leaves[("a",)].low.null_count == 2
    assert files.statistics(A).leaves[("a",)].low.to_pylist() == [0, 1]
    assert len(parsed) == 2


@pytest.mark.parametrize(
    "pick",
    [
        lambda files: files.select(pa.array([False, True, None, True])),
        lambda files: files.select(pa.chunked_array([[False, True], [None, True]])),
        lambda files: files.take([1, 3]),
        lambda files: files.take(pa.array([1, 3])),
    ],
)
def test_picked_files_take_along_what_is_known(
    pick: Callable[[FileTable], FileTable], parsed: list[tuple[int, tuple[Path, ...]]]
) -> None:
    files = _files(4)
    files.statistics(A)
    some = pick(files)
    known = some.statistics(A)
    assert known.leaves[("a",)].low.to_pylist() == [1, 3]
    assert known.leaves[("a",)].high.to_pylist() == [6, 8]
    assert known.leaves[("a",)].null_count.to_pylist() == [0, 0]
    assert known.num_records.to_pylist() == [11, 13]
    assert some.statistics(B).leaves[("b",)].null_count.to_pylist() == [1, 3]
    assert parsed == [(4, (("a",),)), (2, (("b",),))]


def test_files_that_are_all_kept_are_the_same_files() -> None:
    files = _files(2)
    assert files.select(pa.array([True, True])) is files
    assert len(files.select(pa.array([True, None]))) == 1
    empty = _files(0)
    assert len(empty.select(pa.array([], pa.bool_()))) == 0


def test_what_is_known_is_no_part_of_equality() -> None:
    one, other = _files(2), _files(2)
    one.statistics(A)
    assert one == other


def test_one_broken_text_makes_nothing_else_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_columns, "_TEXTS_AT_ONCE", 2)
    asked: list[int] = []
    slowly = stats_columns.read_with_python

    def counted(texts: pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> StatsColumns:
        asked.append(len(texts))
        return slowly(texts, leaves)

    monkeypatch.setattr(stats_columns, "read_with_python", counted)
    adds = [*_files(7).adds()]
    adds[2] = replace(adds[2], stats="{broken")
    found = FileTable.of(adds).statistics({**A, ("c",): BOOLEAN})
    assert found.num_records.to_pylist() == [10, 11, None, 13, 14, 15, 16]
    assert found.leaves[("a",)].low.to_pylist() == [0, 1, None, 3, 4, 5, 6]
    assert found.leaves[("c",)].low is None
    assert asked == [2], "those that were parsed together with it"
