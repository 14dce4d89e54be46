"""Row groups that keep every row are copied as bytes, for any writer and any shape of values."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.data_files import copied_groups, rewrite_file
from puredelta.worker.data_files.byte_ranges import byte_ranges
from puredelta.worker.data_files.rewrite_file import RewriteTask, rewrite_together
from puredelta.worker.data_files.spliced_file import ParquetBytes
from puredelta.worker.data_files.write_file import FileAnswer, known_options
from puredelta.worker.files import NewFile
from puredelta.worker.wire import LIMITS
from tests.worker.data_files.spliced_tables import (
    FAULTS,
    NAN,
    WRITERS,
    num_writes_that_matter,
    odd_table,
    rows_by_reader,
    rows_of,
)


def task(source: Path, dropped: list[int], **others: Any) -> RewriteTask:
    words, bits = RowBitmap.of_rows(np.array(dropped, np.int64)).packed()
    return RewriteTask(
        ordinal=0,
        source=str(source),
        directory=str(source.parent),
        name_prefix="part",
        words=words,
        bits=bits,
        **others,
    )


def rewritten(source: Path, dropped: list[int], **others: Any) -> FileAnswer:
    (answer,) = rewrite_together([task(source, dropped, **others)])
    assert answer.refusal is None
    return answer


def chunks_of(path: Path, group: int) -> list[bytes]:
    file = ParquetBytes.of(byte_ranges(str(path)))
    content = path.read_bytes()
    return [content[slice(*chunk.span)] for chunk in file.footer.groups[group].chunks]


@pytest.mark.parametrize("writer", list(WRITERS))
@pytest.mark.parametrize("seed", range(5))
def test_rows_and_statistics_are_those_of_a_copy_of_the_whole_file(
    writer: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(f"{writer} {seed}")
    source = tmp_path / "old.parquet"
    num_rows = draw.choice([1, 9, 120]) if writer != "duckdb" else 5000
    table = odd_table(draw, num_rows, nested=writer != "fastparquet")
    WRITERS[writer](table, source, draw)
    group_rows = pq.read_metadata(source).row_group(0).num_rows
    dropped = sorted({draw.randrange(min(num_rows, 2 * group_rows)) for _ in range(3)})
    if draw.random() < 0.3:
        dropped = sorted({*range(min(num_rows, group_rows)), *dropped})
    answer = rewritten(source, dropped)
    with monkeypatch.context() as patch:
        patch.setattr(copied_groups.GroupCopy, "write", lambda _: None)
        whole = rewritten(source, dropped)
    assert (answer.kept_rows, answer.physical_rows) == (whole.kept_rows, whole.physical_rows)
    if answer.name is None or whole.name is None:
        assert answer.name is whole.name
        return
    new, wanted = tmp_path / answer.name, tmp_path / whole.name
    assert answer.size_bytes == new.stat().st_size
    assert rows_of(new) == rows_of(wanted)
    for (reader, found), (_, due) in zip(rows_by_reader(new), rows_by_reader(wanted), strict=True):
        assert found == due, reader
    if writer != "fastparquet":  # which states no bounds of texts: they are not made up
        assert bounds(answer.footer) == bounds(whole.footer)


def bounds(footer: bytes) -> list[Any]:
    """Return rows, NULLs and bounds of every chunk, as far as both copies state them."""
    described = pq.read_metadata(pa.BufferReader(footer))
    found: list[Any] = []
    for number in range(described.num_row_groups):
        group = described.row_group(number)
        found.append(group.num_rows)
        for leaf in ("id", "i", "text", "ts", "same"):
            names = [group.column(n).path_in_schema for n in range(group.num_columns)]
            if leaf in names:
                known = group.column(names.index(leaf)).statistics
                found.append(
                    None if known is None or not known.has_min_max else (known.min, known.max)
                )
    return found


def test_only_row_groups_with_a_dropped_row_are_encoded(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    table = odd_table(random.Random(1), 400, nested=True)
    pq.write_table(table, source, row_group_size=50, write_page_index=True)
    answer = rewritten(source, [120, *range(200, 250)])
    assert answer.name is not None
    new = tmp_path / answer.name
    footer = pq.read_metadata(new)
    rows = [footer.row_group(n).num_rows for n in range(footer.num_row_groups)]
    assert rows == [50, 50, 49, 50, 50, 50, 50]
    for old_group, new_group in {0: 0, 1: 1, 3: 3, 5: 4, 6: 5, 7: 6}.items():
        assert chunks_of(source, old_group) == chunks_of(new, new_group)
    assert chunks_of(source, 2) != chunks_of(new, 2)
    for number in range(footer.num_row_groups):
        for leaf in range(footer.num_columns):
            chunk = footer.row_group(number).column(leaf)
            assert chunk.has_column_index, chunk.path_in_schema
            assert chunk.has_offset_index, chunk.path_in_schema


def test_pages_are_found_by_their_index(tmp_path: Path) -> None:
    """DuckDB and Polars read pages without it; the places are compared with those of the pages."""
    source = tmp_path / "old.parquet"
    table = pa.table({"a": range(1000), "b": [f"t{n}" for n in range(1000)]})
    pq.write_table(
        table,
        source,
        row_group_size=250,
        write_page_index=True,
        data_page_size=256,
        use_dictionary=False,
        write_batch_size=16,
    )
    answer = rewritten(source, [3])
    assert answer.name is not None
    new = tmp_path / answer.name
    file, content = ParquetBytes.of(byte_ranges(str(new))), new.read_bytes()
    num_pages = 0
    for group in file.footer.groups:
        for chunk in group.chunks:
            assert chunk.offset_index is not None
            at, end = chunk.span
            for offset, size in pages_of(content[slice(*chunk.offset_index)]):
                assert offset == at
                at += size
                num_pages += 1
            assert at == end
    assert num_pages > 2 * 4


def test_a_file_with_a_damaged_page_index_is_encoded_whole(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"a": range(1000)}), source, row_group_size=250, write_page_index=True)
    sound, file = source.read_bytes(), ParquetBytes.of(byte_ranges(str(source)))
    span = file.footer.groups[1].chunks[0].offset_index
    assert span is not None
    at, end = span
    for seed in range(100):
        damaged = random.Random(seed).randbytes(end - at)
        source.write_bytes(sound[:at] + damaged + sound[end:])
        answer = rewritten(source, [3])
        assert answer.name is not None
        new = tmp_path / answer.name
        assert pq.read_table(new).column("a").to_pylist() == [*range(3), *range(4, 1000)]


def pages_of(offset_index: bytes) -> list[tuple[int, int]]:
    from puredelta.worker.footers.thrift_compact import RawStruct  # noqa: PLC0415

    pages = RawStruct.read(offset_index, 0)[0].structs(1)
    return [(page.number(1), page.number(2)) for page in pages]


def test_bloom_filters_move_with_their_chunks(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    source = tmp_path / "old.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT range id, 't' || (range % 50) AS text FROM range(6144)) TO "
            f"'{source}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
        )
        answer = rewritten(source, [5])
        assert answer.name is not None
        new = tmp_path / answer.name
        probe = "SELECT bloom_filter_excludes FROM parquet_bloom_probe('{}', 'text', '{}')"
        found = {
            value: connection.execute(probe.format(new, value)).fetchall()
            for value in ("t7", "absent")
        }
    old, moved = (ParquetBytes.of(byte_ranges(str(path))).footer for path in (source, new))
    assert old.groups[1].chunks[1].bloom_filter is not None
    assert moved.groups[1].chunks[1].bloom_filter is not None
    is_written = bool(known_options(bloom_filter_options={}))  # of rows that are encoded again
    assert (moved.groups[0].chunks[1].bloom_filter is not None) == is_written
    assert found == {"t7": [(False,)] * 3, "absent": [(is_written,), (True,), (True,)]}


def test_bounds_that_leave_a_nan_out_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    values = [NAN if n == 2 else float(n) for n in range(20)]
    pq.write_table(pa.table({"x": values, "id": range(20)}), source, row_group_size=10)
    answer = rewritten(source, [0])
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    assert answer.nan_columns == (("x",),)
    assert answer.unread == (("x",),)
    assert not footer.row_group(0).column(0).statistics.has_min_max
    assert footer.row_group(0).column(0).statistics.null_count == 0
    assert footer.row_group(1).column(0).statistics.max == 19.0


@pytest.mark.parametrize(
    "others", [{"row_id_column": "r", "base_row_id": 5}, {"codec": "zstd"}], ids=str
)
def test_files_that_change_in_every_row_are_encoded_whole(
    others: dict[str, Any], tmp_path: Path
) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": range(20)}), source, row_group_size=10)
    answer = rewritten(source, [0], **others)
    assert answer.name is not None
    assert answer.unread == ()
    assert chunks_of(source, 1) != chunks_of(tmp_path / answer.name, 1)


def test_timestamps_of_96_bits_are_encoded_whole(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    table = pa.table({"ts": pa.array(range(20), pa.timestamp("us"))})
    pq.write_table(table, source, row_group_size=10, use_deprecated_int96_timestamps=True)
    answer = rewritten(source, [0])
    assert answer.name is not None
    assert pq.read_schema(tmp_path / answer.name).field("ts").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_left_when_the_nth_write_goes_wrong(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(odd_table(random.Random(3), 200, nested=True), source, row_group_size=50)
    num_writes = num_writes_that_matter(
        lambda: rewritten(source, [0]), fault, monkeypatch, tmp_path
    )
    assert num_writes > 5


def test_a_file_is_whole_before_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bytes are in the file when its size is looked at, and none comes later."""
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": range(40)}), source, row_group_size=10)
    finish = NewFile.finish
    seen: list[int] = []

    def watched(self: NewFile, size_bytes: int) -> tuple[int, int]:
        (new,) = (path for path in tmp_path.iterdir() if path.name != "old.parquet")
        seen.append(pq.read_table(new).num_rows)
        return finish(self, size_bytes)

    monkeypatch.setattr(NewFile, "finish", watched)
    assert rewritten(source, [15]).kept_rows == 39
    assert seen == [39]


@pytest.mark.parametrize("num_files", [1, 3])
@pytest.mark.parametrize("nullable", [True, False])
def test_combined_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_files: int, nullable: bool
) -> None:
    """Row groups that lose a row are encoded with the levels of the others."""
    monkeypatch.setattr(rewrite_file, "_LARGE_GROUP_BYTES", 1)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=nullable), ("s", pa.string())])
    tasks, kept = [], []
    for number in range(num_files):
        ids = range(100 * number, 100 * number + 40)
        table = pa.table([ids, [f"s{n}" if n % 3 else None for n in ids]], schema=schema)
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path, row_group_size=20)
        tasks.append(replace(task(path, [7]), ordinal=number, group=0, columns=("id", "s")))
        kept += [row for n, row in enumerate(table.to_pylist()) if n != 7]
    (answer,) = rewrite_together(tasks, replace(LIMITS, small_file_rows=0))
    assert answer.name is not None
    new = tmp_path / answer.name
    assert pq.read_table(new).to_pylist() == kept
    assert (answer.copied_groups, answer.physical_rows) == (num_files, 40 * num_files)
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM '{new}'").fetchall()
    assert found == [tuple(row.values()) for row in kept]


def test_files_of_other_levels_are_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite_file, "_LARGE_GROUP_BYTES", 1)
    tasks, kept = [], []
    for number, nullable in enumerate([False, True]):
        schema = pa.schema([pa.field("id", pa.int64(), nullable=nullable)])
        table = pa.table([[5, None if nullable else 6, 7]], schema=schema)
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path)
        tasks.append(replace(task(path, [0]), ordinal=number, group=0, columns=("id",)))
        kept += table["id"].to_pylist()[1:]
    (answer,) = rewrite_together(tasks)
    assert (answer.copied_groups, answer.others) == (0, (1,))
    assert answer.name is not None
    assert pq.read_table(tmp_path / answer.name)["id"].to_pylist() == kept
    (refused,) = rewrite_together([replace(one, columns=("other",)) for one in tasks])
    assert "other columns or codecs" in (refused.refusal or "")
