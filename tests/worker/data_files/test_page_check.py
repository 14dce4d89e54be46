"""Damaged pages within row groups that are copied as bytes are noticed."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.data_files.byte_ranges import byte_ranges
from puredelta.worker.data_files.rewrite_file import rewrite_together
from puredelta.worker.data_files.spliced_file import PAGE_HEADER, PageCheck, ParquetBytes
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError
from puredelta.worker.read_rows import OnlySparkError, OpenFile
from tests.fuzz.damaged import mutated_file
from tests.worker.data_files.test_copied_groups import task

ROWS = 600


def lay(path: Path, *, checksums: bool, **options: object) -> list[tuple[int, int]]:
    """Write two row groups; return where the chunks of the second are."""
    numbers = np.arange(ROWS)
    table = pa.table({"n": numbers, "t": [f"text {n * n % 91}" for n in numbers]})
    options = {"row_group_size": ROWS // 2, "data_page_size": 512, **options}
    pq.write_table(table, path, write_page_checksum=checksums, **options)
    groups = ParquetBytes.of(byte_ranges(str(path))).footer.groups
    return [chunk.span for chunk in groups[1].chunks]


def bodies(content: bytes, spans: list[tuple[int, int]]) -> list[int]:
    """Return the places of the bytes of pages without their headers."""
    places: list[int] = []
    for begin, end in spans:
        at = begin
        while at < end:
            header, at = PAGE_HEADER.read(content, at)
            places += range(at, at + header[3])
            at += header[3]
    return places


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_each_flipped_bit_of_a_page_with_a_checksum_is_noticed(
    tmp_path: Path, version: str, codec: str
) -> None:
    """A copy took such bytes over, and said nothing."""
    path = tmp_path / "old.parquet"
    spans = lay(path, checksums=True, compression=codec, data_page_version=version)
    sound = path.read_bytes()
    draw = random.Random(version + codec)
    places = bodies(sound, spans)
    for _ in range(40):
        damaged = bytearray(sound)
        damaged[draw.choice(places)] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        (answer,) = rewrite_together([task(path, [0])])
        assert answer.refusal is not None
        assert "checksum" in answer.refusal
    assert [file.name for file in tmp_path.iterdir()] == ["old.parquet"]


def test_pages_that_end_elsewhere_than_their_chunk(tmp_path: Path) -> None:
    """The lengths in headers of pages are those of their chunk, in parts of any size."""
    path = tmp_path / "old.parquet"
    lay(path, checksums=False)
    old = ParquetBytes.of(byte_ranges(str(path)))
    chunks = old.footer.groups[1].chunks
    content = path.read_bytes()[chunks[0].span[0] : chunks[-1].span[1]]
    for size in (1, 7, 600, len(content)):
        check = PageCheck(chunks)
        for at in range(0, len(content), size):
            check.take(content[at : at + size])
        check.finish()
    for at in range(64):  # of the first header, and some after it
        damaged = bytearray(content)
        damaged[at] ^= 0x40
        try:
            check = PageCheck(chunks)
            check.take(bytes(damaged))
            check.finish()
        except (UnsupportedLayoutError, OnlySparkError):
            continue
    short = PageCheck(chunks)
    short.take(content[:-1])
    with pytest.raises(UnsupportedLayoutError, match="other pages"):
        short.finish()


def test_a_file_without_checksums_whose_page_is_too_long_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    ((begin, _), *_) = lay(path, checksums=False, use_dictionary=False, compression="none")
    damaged = bytearray(path.read_bytes())
    damaged[begin + 3 : begin + 6] = b"\xff\xff\x7f"  # within the sizes of the first header
    path.write_bytes(damaged)
    (answer,) = rewrite_together([task(path, [0])])
    assert answer.refusal is not None
    assert [file.name for file in tmp_path.iterdir()] == ["old.parquet"]


@pytest.mark.parametrize("seed", [1002, 2641, 2845, 3523])
def test_a_page_that_says_it_is_huge_takes_no_more_than_its_chunk(
    tmp_path: Path, seed: int
) -> None:
    """Files of 6 to 9 KB took up to 2 GB where they were read through a buffer."""
    draw = random.Random(seed)
    draw.random()
    _, content = mutated_file(draw)
    path = tmp_path / "f.parquet"
    path.write_bytes(content)
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        with contextlib.suppress(OSError, pa.ArrowException):
            list(OpenFile(str(path)).read(65_536))
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() < 10 * len(content) + (64 << 20)
