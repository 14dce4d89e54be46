"""Files in a spool are the actions that were put in, as lines and as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.row_counts import num_records
from puredelta.log.replay import spooled_files
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import encode_path

ODD = 'a b/%"\\ü\n#.parquet'


def some(count: int) -> Iterator[tuple[str, dict[str, str | None], str | None]]:
    for number in range(count):
        values: dict[str, str | None] = {"p": None if number % 3 else f'"{number}ü', "q": ""}
        stats = None if number % 5 == 0 else json.dumps({"numRecords": number, "x": '"\\ü'})
        yield f"d={number:05d}/{ODD}", values, stats


def spooled(count: int) -> tuple[SpooledFiles, list[Add]]:
    files, adds = SpooledFiles(), []
    for path, values, stats in some(count):
        rows = None if stats is None else num_records(stats)
        files.add(path, values, size_bytes=7, modified_ms=9, stats=stats, num_rows=rows)
        adds.append(
            Add(
                path=encode_path(path),
                partition_values=values,
                size_bytes=7,
                modified_ms=9,
                data_change=True,
                stats=stats,
            )
        )
    return files, adds


@pytest.mark.parametrize("at_once", [1, 4, 8192])
def test_lines_columns_and_actions(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(spooled_files, "_LINES_MAX", at_once)
    monkeypatch.setattr(spooled_files, "_IN_MEMORY_MAX_BYTES", 300)
    files, adds = spooled(30)
    for _ in range(2):
        content = b"".join(files.lines())
        assert content == "".join(f"{encode_action(add)}\n" for add in adds).encode()
    assert list(files.adds()) == adds
    assert list(files.table().adds()) == list(FileTable.of(adds).adds())
    assert sum(len(table) for table in files.tables()) == files.num_files == 30
    assert files.size_bytes == 210
    assert files.commit_bytes == len(content)
    assert files.partition_columns == {frozenset({"p", "q"})}
    assert b"".join(SpooledFiles.of(adds).lines()) == content


def test_many_files_are_parsed_as_columns() -> None:
    files, adds = spooled(6_000)
    assert [add.path for add in files.table().adds()] == [add.path for add in adds]


def test_rows_are_counted_unless_a_file_does_not_tell() -> None:
    files, adds = spooled(5)
    assert files.num_rows is SpooledFiles.of(adds).num_rows is None
    told = SpooledFiles.of(adds[1:])
    assert told.num_rows == FileTable.of(adds[1:]).num_records() == 10
    told.add("e", {}, size_bytes=1, modified_ms=1, stats=None, num_rows=7)
    assert told.num_rows == 17
    told.add("f", {}, size_bytes=1, modified_ms=1, stats=None, num_rows=None)
    assert told.num_rows is None


def test_nothing() -> None:
    files = SpooledFiles()
    assert files.num_rows == 0
    assert not list(files.lines())
    assert not len(files.table())


@pytest.mark.parametrize("path", ["b", "a"])
def test_a_file_comes_once_and_in_order(path: str) -> None:
    files = SpooledFiles()
    files.add("b", {}, size_bytes=1, modified_ms=1, stats=None, num_rows=1)
    with pytest.raises(InvalidRequestError) as caught:
        files.add(path, {}, size_bytes=1, modified_ms=1, stats=None, num_rows=1)
    assert caught.value.code is ErrorCode.DUPLICATE_ACTIONS_FOUND
