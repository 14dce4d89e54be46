"""Statistics are parsed once per column, and handed on for the files that are left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED, read_stats_columns
from puredelta.log.files.stats_json import Path, StatsColumns, read_with_python
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


class Parser(list[tuple[int, tuple[Path, ...]]]):
    """How many texts were parsed each time, and for which columns."""

    def __call__(self, stats: pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> StatsColumns:
        self.append((len(stats), tuple(leaves)))
        return read_stats_columns(stats, leaves)


def test_only_new_columns_are_parsed() -> None:
    files, parse, known = _files(3), Parser(), NOTHING_PARSED
    for _ in range(2):
        known = known.parsed(files, A, parse=parse)
        assert known.of(A).leaves[("a",)].low.to_pylist() == [0, 1, 2]
    both = known.parsed(files, {**A, **B}, parse=parse).of({**A, **B})
    assert list(both.leaves) == [("a",), ("b",)]
    assert both.leaves[("b",)].high.to_pylist() == ["m0", "m1", "m2"]
    assert both.num_records.to_pylist() == [10, 11, 12]
    assert parse == [(3, (("a",),)), (3, (("b",),))]


def test_what_is_parsed_later_does_not_change_what_was_handed_over() -> None:
    files = _files(2)
    first = NOTHING_PARSED.parsed(files, A)
    first.parsed(files, B)
    assert [path for path, _ in first.columns] == [("a",)]
    assert NOTHING_PARSED.num_records is None


def test_a_column_of_another_type_is_another_column() -> None:
    files, parse = _files(2), Parser()
    as_text = {("a",): STRING}
    known = NOTHING_PARSED.parsed(files, as_text, parse=parse).parsed(files, A, parse=parse)
    assert known.of(as_text).leaves[("a",)].low.null_count == 2
    assert known.of(A).leaves[("a",)].low.to_pylist() == [0, 1]
    assert len(parse) == 2


def test_some_of_the_files_take_along_what_is_known() -> None:
    files, parse, mask = _files(4), Parser(), pa.array([False, True, False, True])
    some = NOTHING_PARSED.parsed(files, A, parse=parse).select(mask)
    known = some.of(A)
    assert known.leaves[("a",)].low.to_pylist() == [1, 3]
    assert known.leaves[("a",)].high.to_pylist() == [6, 8]
    assert known.leaves[("a",)].null_count.to_pylist() == [0, 0]
    assert known.num_records.to_pylist() == [11, 13]
    more = some.parsed(files.select(mask), B, parse=parse)
    assert more.of(B).leaves[("b",)].null_count.to_pylist() == [1, 3]
    assert parse == [(4, (("a",),)), (2, (("b",),))]
    assert NOTHING_PARSED.select(mask) is NOTHING_PARSED


def test_files_that_are_all_kept_are_the_same_files() -> None:
    files = _files(2)
    assert files.select(pa.array([True, True])) is files
    assert len(files.select(pa.array([True, None]))) == 1
    empty = _files(0)
    assert len(empty.select(pa.array([], pa.bool_()))) == 0


def test_one_broken_text_makes_nothing_else_unknown() -> None:
    asked: list[int] = []

    def counted(texts: pa.StringArray, leaves: Mapping[Path, DataType]) -> StatsColumns:
        asked.append(len(texts))
        return read_with_python(texts, leaves)

    adds = [*_files(70).adds()]
    broken = 2
    adds[broken] = replace(adds[broken], stats="{broken")
    leaves = {**A, ("c",): BOOLEAN}
    stats = FileTable.of(adds).rows["stats"]
    found = read_stats_columns(stats, leaves, batch_bytes=stats.nbytes // 3, read_malformed=counted)
    known = [None if n == broken else n for n in range(70)]
    assert found.num_records.to_pylist() == [None if n is None else 10 + n for n in known]
    assert found.leaves[("a",)].low.to_pylist() == known
    assert found.leaves[("c",)].low is None
    assert sorted(asked) == [16, 18], "those that were parsed together with it, and the few"
