"""Footers that Arrow may look at, and those that would end its process."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from random import Random
from unittest.mock import ANY

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.log.files.parquet_footer import FooterEnd, NoFooterError, parse_footer
from puredelta.worker.footers import footer_shapes
from puredelta.worker.footers.footer_shapes import FooterShapes, _OneGroup
from puredelta.worker.footers.sound_footer import (
    EncryptedFileError,
    UnsoundFooterError,
    footer_length,
    require_sound,
)
from puredelta.worker.footers.thrift_compact import (
    I32,
    I64,
    Struct,
    UnsupportedLayoutError,
    i64,
    list_at,
    passed,
    varint,
)
from puredelta.worker.read_rows import OpenFile
from puredelta.worker.sound_kinds import _KnownKinds, require_sound_path
from tests.fuzz.parquet_files import _arrow, rows, valid_files
from tests.fuzz.parquet_mutations import footer_place, mutated_file, with_footer

ROOT = Path(__file__).parent.parent.parent.parent
FILE = _arrow(["id", "t"], write_page_index=True)


def footer_of(content: bytes) -> tuple[bytes, int]:
    length = footer_length(content[-8:], len(content))
    return content[-length:], len(content) - length


@pytest.mark.parametrize("kind", sorted(valid_files()))
def test_footers_of_all_programs_are_sound(kind: str) -> None:
    content = valid_files()[kind]
    if kind == "spark encrypted-footer":
        with pytest.raises(EncryptedFileError, match="footer is encrypted"):
            footer_of(content)
    elif kind == "spark encrypted-column":
        with pytest.raises(EncryptedFileError, match="encrypted"):
            require_sound(*footer_of(content))
    else:
        require_sound(*footer_of(content))


FLIPS = """
import sys
from puredelta.log.files.parquet_footer import FooterEnd, NoFooterError, parse_footer
from tests.worker.footers.test_sound_footer import FILE, footer_of
end, place = footer_of(FILE)
refused = 0
for bit in range(8 * (len(end) - 8)):
    flipped = bytearray(end)
    flipped[bit // 8] ^= 1 << bit % 8
    try:
        footer = parse_footer(FooterEnd(bytes(flipped), place))
    except NoFooterError:
        refused += 1
        continue
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            known = chunk.statistics
            if known is not None and known.has_min_max:
                known.min_raw, known.max_raw, known.null_count
            chunk.compression, chunk.encodings, chunk.has_column_index
print(refused)
"""


def test_no_flipped_bit_of_a_footer_ends_the_process() -> None:
    """A process of its own looks at all that the library looks at."""
    done = subprocess.run(
        [sys.executable, "-c", FLIPS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert 1000 < int(done.stdout) < 8 * len(FILE)


def replaced(old: bytes, new: bytes) -> bytes:
    """Return the file with other bytes in its footer, where they are first."""
    footer = FILE[footer_place(FILE) : -8]
    assert old in footer
    return with_footer(FILE, footer.replace(old, new, 1))


LIES: dict[str, tuple[bytes, str]] = {
    "rows": (replaced(b"\x16\x78\x19\x1c", b"\x16\x76\x19\x1c"), "59 rows"),
    "type": (replaced(b"\x1c\x15\x04\x19", b"\x1c\x15\x02\x19"), "another type"),
    "bound": (replaced(b"\x18\x08\x3b", b"\x18\x07\x3b"), "damaged"),
    "list": (replaced(b"\x19\x3c", b"\x19\xfc\xff\xff\xff\xff\x07"), "a list longer"),
    "end": (with_footer(FILE, FILE[footer_place(FILE) : -60]), "cut short"),
    "name": (replaced(b"\x18\x02id", b"\x18\x02\xff\xfe"), "UTF-8"),
    "path": (replaced(b"\x19\x18\x01t", b"\x19\x18\x01\xfe"), "the chunk of another"),
    "length": (FILE[:-8] + b"\xff\xff\xff\x7f" + FILE[-4:], "claims a footer"),
    "magic": (FILE[:-4] + b"PAR2", "magic"),
    "empty": (b"", "magic"),
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_what_a_footer_says_is_checked(lie: str, tmp_path: Path) -> None:
    content, reason = LIES[lie]
    with pytest.raises(UnsoundFooterError, match=reason):
        require_sound(*footer_of(content))
    (tmp_path / "f.parquet").write_bytes(content)
    with pytest.raises(pa.ArrowInvalid):
        require_sound_path(str(tmp_path / "f.parquet"))


@pytest.mark.parametrize("alike_min", [0, 200])
def test_a_footer_like_a_sound_one_is_known_and_says_nothing_else(
    alike_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is taken for known passes the whole check, but for places of indexes."""
    monkeypatch.setattr(footer_shapes, "_ALIKE_MIN", alike_min)
    known = _KnownKinds()
    for content in valid_files().values():
        try:
            end, place = footer_of(content)
            require_sound(end, place)
        except UnsoundFooterError:
            continue
        known.learn(end[:-8], place)
        known.learn(end[:-8], place)
    places = ((content, footer_place(content)) for content in valid_files().values())
    assert sum(known.has(content[place:-8], place) for content, place in places) > 20
    recognized, unlike = 0, list[str]()
    for seed in range(1500):
        _, content = mutated_file(Random(seed))
        try:
            end, place = footer_of(content)
        except UnsoundFooterError:
            continue
        if known.has(end[:-8], place):
            recognized += 1
            try:
                require_sound(end, place)
            except UnsoundFooterError as reason:
                unlike.append(str(reason))
    assert recognized > 200
    assert all("an index" in one or "values of" in one for one in unlike), unlike


@pytest.mark.thorough
def test_one_pattern_of_all_chunks_says_what_the_patterns_of_the_chunks_say() -> None:
    """Also of damaged footers; it may leave them to the others."""
    contents = [content for _, content in sorted(valid_files().items())]
    contents += [mutated_file(Random(seed))[1] for seed in range(1000)]
    footers = []
    for content in contents:
        with contextlib.suppress(UnsoundFooterError):
            end, place = footer_of(content)
            footers.append((end[:-8], place))
    read = 0
    for sound, place in footers[: len(valid_files())]:
        try:
            require_sound(sound, place)
            shapes = FooterShapes.of(sound, range(100))
            shapes.read(sound, place, learns=True)
        except (UnsoundFooterError, UnsupportedLayoutError):
            continue
        whole = _OneGroup(shapes.columns, (*shapes.parts, shapes.group_end))
        for content, data_end in footers:
            if not shapes.has_schema_of(content):
                continue
            for end in (data_end, data_end - 1, data_end // 2):
                with contextlib.suppress(UnsupportedLayoutError, IndexError, UnicodeDecodeError):
                    found = whole.read(content, len(shapes.prefix), end)
                    if found is not None:
                        read += 1
                        assert shapes.read(content, end) == ([found[0]], ANY)
    assert read > 100


def test_chunks_outside_of_a_file_are_not_brought(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(FILE[:4] + FILE[400:])
    with pytest.raises(pa.ArrowInvalid, match=r"outside of the file|bytes"):
        list(OpenFile(str(path)).chunks(0, None))


def test_rows_that_a_footer_counts_and_pages_lack(tmp_path: Path) -> None:
    """The footer says of 60 rows, and of 60 values in each column; the pages hold 59."""
    path = tmp_path / "f.parquet"
    short = _short_of_a_row()
    path.write_bytes(short)
    with pytest.raises((pa.ArrowException, OSError)):
        list(OpenFile(str(path)).read(1000))


def _short_of_a_row() -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows().select(["id"]).slice(0, 59), sink, compression="none")
    content = sink.getvalue()
    footer = content[footer_place(content) : -8].replace(b"\x16\x76", b"\x16\x78")
    return with_footer(content, footer)


def test_bytes_that_are_no_thrift() -> None:
    for content in (b"\xff" * 20, b"\x1c" * 50 + b"\x00" * 50, b"\x1d\x00"):
        with pytest.raises((UnsupportedLayoutError, IndexError)):
            passed(content, 0, 12)
    with pytest.raises(UnsupportedLayoutError, match="ten bytes"):
        varint(b"\xff" * 20, 0)
    with pytest.raises(UnsupportedLayoutError, match="longer"):
        list_at(b"\xfc\xff\xff\xff\xff\x07", 0)
    with pytest.raises(UnsupportedLayoutError, match="kind"):
        Struct({1: I64}).read(b"\x15\x02\x00", 0)
    with pytest.raises(UnsupportedLayoutError, match="twice"):
        Struct({1: I32}).read(b"\x15\x02\x05\x02\x02\x00", 0)
    assert Struct({1: I32}).read(b"\x15\x02\x15\x04\x00", 0) == ({1: 1}, 5)


def test_a_refused_footer_says_whether_it_takes_keys() -> None:
    content = valid_files()["spark encrypted-column"]
    with pytest.raises(NoFooterError) as refused:
        parse_footer(FooterEnd(*footer_of(content)))
    assert refused.value.is_encrypted


@pytest.mark.parametrize("place", [1 << 40, -1], ids=["far", "negative"])
@pytest.mark.parametrize("buffer_size", [0, 1 << 17])
def test_arrow_refuses_a_chunk_outside_of_the_file(
    place: int, buffer_size: int, tmp_path: Path
) -> None:
    """A footer of a known kind is not searched for wrong places, since Arrow compares them."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(300)}), path, use_dictionary=False)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - size : -8]
    old = b"\x26" + i64(4)  # data_page_offset is field 9, after field 7
    assert old in footer  # the row group has such a field, too, after its columns
    footer = footer.replace(old, b"\x26" + (b"\x01" if place < 0 else i64(place)), 1)
    length = len(footer).to_bytes(4, "little")
    path.write_bytes(content[: -8 - size] + footer + length + b"PAR1")
    with pytest.raises(OSError, match="corrupt file"):
        pq.ParquetFile(path, buffer_size=buffer_size).read()
