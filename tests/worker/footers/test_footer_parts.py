"""Footers as parts: what is not moved is written as it was, and the rest by its new place."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.data_files.byte_ranges import byte_ranges
from puredelta.worker.data_files.spliced_file import ParquetBytes
from puredelta.worker.footers.footer_parts import Footer, bloom_filter_length, shifted_pages
from puredelta.worker.footers.sound_footer import TRAILER_BYTES
from puredelta.worker.footers.thrift_compact import RawStruct, UnsupportedLayoutError
from tests.data_dir import find_data

GOLDEN = find_data("golden")


def footer_bytes(path: Path) -> bytes:
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    return content[-TRAILER_BYTES - length :]


def written_again(end: bytes) -> bytes:
    footer = Footer(end[:-TRAILER_BYTES])
    groups = [
        group.with_chunks(group.chunks, ordinal=number, start=group.raw.number(5))
        for number, group in enumerate(footer.groups)
    ]
    rows = sum(group.num_rows for group in footer.groups)
    return footer.with_groups(groups, num_rows=rows, columns=footer.columns)


def sample(path: Path, **options: object) -> pa.Table:
    table = pa.table(
        {
            "id": pa.array(range(100), pa.int64()),
            "text": [None if n % 7 == 0 else f"t{n % 5}" for n in range(100)],
            "st": [{"a": n / 3, "b": [n, None]} for n in range(100)],
        }
    )
    pq.write_table(table, path, row_group_size=30, **options)
    return table


def test_a_footer_is_written_as_it_was_read(tmp_path: Path) -> None:
    sample(tmp_path / "a.parquet", write_page_index=True, sorting_columns=[pq.SortingColumn(0)])
    end = footer_bytes(tmp_path / "a.parquet")
    assert written_again(end) == end


@pytest.mark.skipif(GOLDEN is None, reason="optional test data is absent: golden")
def test_every_footer_of_the_golden_tables_is_written_as_it_was_read() -> None:
    assert GOLDEN is not None
    files = [path for path in GOLDEN.rglob("*.parquet") if path.is_file()]
    assert files
    for path in files:
        end = footer_bytes(path)
        again = written_again(end)
        if again != end:  # other programs add the sizes of a row group up in another way
            one, other = (pq.read_metadata(pa.BufferReader(b"PAR1" + e)) for e in (end, again))
            assert one.schema.equals(other.schema), path
            assert one.num_rows == other.num_rows, path
            assert one.metadata == other.metadata, path
            for number in range(one.num_row_groups):
                for leaf in range(one.num_columns):
                    a, b = (f.row_group(number).column(leaf).to_dict() for f in (one, other))
                    assert a == b, path


def test_chunks_know_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    sample(path)
    footer = ParquetBytes.of(byte_ranges(str(path))).footer
    assert [column.name for column in footer.columns] == [b"id", b"text", b"st"]
    assert [column.leaves for column in footer.columns] == [range(1), range(1, 2), range(2, 4)]
    at = 4
    for group in footer.groups:
        for chunk in group.chunks:
            assert chunk.span[0] == at
            at = chunk.span[1]
    assert footer.groups[0].chunks[3].path == (b"st", b"b", b"list", b"element")


def test_a_claim_of_order_ends_at_the_first_column_with_other_values(tmp_path: Path) -> None:
    order = [pq.SortingColumn(0), pq.SortingColumn(1)]
    sample(tmp_path / "a.parquet", sorting_columns=order)
    (group, *_) = Footer(footer_bytes(tmp_path / "a.parquet")).groups

    def claimed(*replaced: int) -> int:
        encoded = group.with_chunks(group.chunks, ordinal=0, start=4, replaced=replaced)
        return len(RawStruct.read(encoded, 0)[0].structs(4))

    assert [claimed(), claimed(2), claimed(1), claimed(0)] == [2, 2, 1, 0]


def test_what_is_not_understood_is_refused(tmp_path: Path) -> None:
    sample(tmp_path / "a.parquet")
    end = footer_bytes(tmp_path / "a.parquet")
    for number in (8, 9, 10, 300):
        raw, _ = RawStruct.read(end, 0)
        raw.fields[number] = 8, b"\x01x"
        with pytest.raises(UnsupportedLayoutError, match="unknown fields"):
            Footer(raw.encode())
    raw, _ = RawStruct.read(end, 0)
    raw.fields[6] = 8, b"\x18parquet-mr version 1.2.8"
    with pytest.raises(UnsupportedLayoutError, match="old parquet-mr"):
        Footer(raw.encode())
    raw.fields[6] = 8, b"\x19parquet-mr version 1.13.1"
    assert len(Footer(raw.encode()).groups) == 4


def test_a_field_of_a_chunk_that_might_be_a_place_is_refused(tmp_path: Path) -> None:
    sample(tmp_path / "a.parquet")
    (group, *_) = Footer(footer_bytes(tmp_path / "a.parquet")).groups
    for raw in (group.chunks[0].raw, group.chunks[0].meta):
        raw.set_number(30, 5)
        with pytest.raises(UnsupportedLayoutError, match="unknown fields"):
            group.chunks[0].moved(7)
        raw.drop(30)


def test_pages_move_with_their_chunk() -> None:
    page = RawStruct()
    page.set_number(1, 40)
    page.set_number(2, 5, kind=5)
    index = RawStruct()
    index.set_structs(1, [page.encode()])
    moved, _ = RawStruct.read(shifted_pages(index.encode(), -36), 0)
    assert [(one.number(1), one.number(2)) for one in moved.structs(1)] == [(4, 5)]
    with pytest.raises(UnsupportedLayoutError, match="would be -1"):
        shifted_pages(index.encode(), -41)
    index.set_number(3, 1)
    with pytest.raises(UnsupportedLayoutError, match="unknown fields"):
        shifted_pages(index.encode(), 0)


def test_the_length_of_a_bloom_filter_is_in_its_header() -> None:
    header = RawStruct()
    header.set_number(1, 1024, kind=5)
    encoded = header.encode()
    assert bloom_filter_length(encoded + bytes(50)) == len(encoded) + 1024


def test_columns_are_alike_level_for_level(tmp_path: Path) -> None:
    kinds = {
        "a": pa.int32(),
        "b": pa.int64(),
        "c": pa.timestamp("us"),
        "d": pa.timestamp("us", "UTC"),
        "e": pa.decimal128(9, 2),
        "f": pa.decimal128(9, 3),
        "g": pa.list_(pa.int32()),
        "h": pa.list_(pa.field("element", pa.int32(), nullable=False)),
        "i": pa.string(),
        "j": pa.binary(),
    }
    fields = [pa.field("x", kind) for kind in kinds.values()]
    fields.append(pa.field("x", pa.int32(), nullable=False))

    def column(field: pa.Field) -> object:
        path = tmp_path / "x.parquet"
        pq.write_table(pa.schema([field]).empty_table(), path)
        return Footer(footer_bytes(path)).columns[0]

    columns = [column(field) for field in fields]
    again = [column(field) for field in fields]
    for n, one in enumerate(columns):
        for m, other in enumerate(again):
            assert one.is_like(other) == (n == m), (fields[n], fields[m])  # type: ignore[attr-defined]
