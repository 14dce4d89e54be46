"""Bloom filters of Parquet files, read before the key columns that they describe.

Keys that say nothing about files, such as UUIDs, are in few of them. Where a file has a Bloom
filter for a column of the key, and the filter holds none of the source's values, no row of the file
has one of them, and its column is not decoded.

A filter is a split block Bloom filter over the XXH64 hashes of values in Parquet's plain encoding.
Whatever else a file says there is not understood: then the file is read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from puredelta.worker.files import MEGABYTE, DataPath
from puredelta.worker.footers.thrift_compact import RawStruct, UnsupportedLayoutError
from puredelta.worker.lookup.key_index import Column, whole_numbers
from puredelta.worker.lookup.lookup_request import FileLookup
from puredelta.worker.range_file import RangeFile, fetched_ahead
from puredelta.worker.read_rows import OpenFile

KEYS_MAX = 100_000
"""Among more keys there is one for nearly every file."""
_TEXT_MAX = 256
_SMALL_BYTES = MEGABYTE
"""A smaller file is read as soon as its filter."""
_SMALL_OBJECT_BYTES = 16 * MEGABYTE
"""The same where a request takes time: a file takes two, with a filter and without."""
_LOOKED_AT = 4
"""Files that are asked for a filter; if none has one, no other is asked."""
_TRIED = 16
"""Files after which filters that left none out are not read any more: of many keys a filter holds
some by mistake."""
_HEADER_BYTES = 64
_FILTER_BYTES_MAX = 128 * MEGABYTE
_NUM_BYTES, _ALGORITHM, _HASH, _COMPRESSION = 1, 2, 3, 4
_BLOCK_WORDS = 8
_BLOCK_BYTES = 4 * _BLOCK_WORDS

_SHORT, _LONG, _STRIPE = 4, 8, 32
"""Bytes that are hashed at a time."""
Span: TypeAlias = tuple[int, int]
"""Where bytes begin and end."""
_Hashes: TypeAlias = npt.NDArray[np.uint64]
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_SALTS = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    np.uint32,
)


def xxh64(rows: npt.NDArray[np.uint8]) -> _Hashes:
    """Return the XXH64 hash of each row of bytes; all rows are of one length.

    >>> [hex(n) for n in xxh64(np.frombuffer(b"abc", np.uint8).reshape(1, 3)).tolist()]
    ['0x44bc2cf5ad770999']
    """
    num_rows, length = rows.shape
    at = 0
    with np.errstate(over="ignore"):
        if length >= _STRIPE:
            starts = (_P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1)
            lanes = [np.full(num_rows, start, np.uint64) for start in starts]
            while length - at >= _STRIPE:
                lanes = [_round(v, _words(rows, at + _LONG * n)) for n, v in enumerate(lanes)]
                at += _STRIPE
            hashes = sum((_turned(v, n) for v, n in zip(lanes, (1, 7, 12, 18), strict=True)), _NONE)
            for lane in lanes:
                hashes = (hashes ^ _round(_NONE, lane)) * _P1 + _P4
        else:
            hashes = np.full(num_rows, _P5, np.uint64)
        hashes = hashes + np.uint64(length)
        while length - at >= _LONG:
            hashes = _turned(hashes ^ _round(_NONE, _words(rows, at)), 27) * _P1 + _P4
            at += _LONG
        if length - at >= _SHORT:
            hashes = _turned(hashes ^ (_words(rows, at, "<u4") * _P1), 23) * _P2 + _P3
            at += _SHORT
        for place in range(at, length):
            hashes = _turned(hashes ^ (rows[:, place].astype(np.uint64) * _P5), 11) * _P1
        hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
        hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
        found: _Hashes = hashes ^ (hashes >> np.uint64(32))
    return found


_NONE = np.zeros(1, np.uint64)


def _words(rows: npt.NDArray[np.uint8], at: int, kind: str = "<u8") -> _Hashes:
    width = np.dtype(kind).itemsize
    return np.ascontiguousarray(rows[:, at : at + width]).view(kind)[:, 0].astype(np.uint64)


def _turned(values: _Hashes, bits: int) -> _Hashes:
    found: _Hashes = (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
    return found


def _round(lane: _Hashes, words: _Hashes) -> _Hashes:
    found: _Hashes = _turned(lane + words * _P2, 31) * _P1
    return found


class KeyHashes:
    """The hashes of the values of one column of the source's key."""

    def __init__(self, column: Column) -> None:
        """Take texts, whole numbers or dates; NULL has no hash."""
        self._column = column
        self._known: dict[str, tuple[_Hashes, npt.NDArray[np.uint32]] | None] = {}

    def might_be_in(self, words: npt.NDArray[np.uint32], physical: str) -> bool:
        """Tell whether a filter might hold a value, stored as the ``physical`` type.

        ``words`` are its blocks, a row of eight each.
        """
        if physical not in self._known:
            hashes = self._hashes(physical)
            self._known[physical] = None if hashes is None else (hashes, _masks(hashes))
        known = self._known[physical]
        if known is None:
            return True
        hashes, masks = known
        blocks = ((hashes >> np.uint64(32)) * np.uint64(len(words))) >> np.uint64(32)
        return bool(np.all((words[blocks] & masks) == masks, axis=1).any())

    def _hashes(self, physical: str) -> _Hashes | None:
        """Return the hashes of all values; ``None``: they are not known."""
        kind = self._column.type
        if physical == "BYTE_ARRAY":
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            return _of_texts(self._column) if is_text else None
        if not (pa.types.is_integer(kind) or pa.types.is_date(kind)):
            return None
        values, valid = whole_numbers(self._column)
        values = values if valid is None else values[valid]
        if physical == "INT32":
            limits = np.iinfo(np.int32)
            values = values[(values >= limits.min) & (values <= limits.max)].astype("<i4")
        elif physical != "INT64":
            return None
        rows = np.ascontiguousarray(np.unique(values)).view(np.uint8)
        return xxh64(rows.reshape(-1, values.dtype.itemsize))


def _masks(hashes: _Hashes) -> npt.NDArray[np.uint32]:
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    masks: npt.NDArray[np.uint32] = np.uint32(1) << ((low[:, None] * _SALTS) >> np.uint32(27))
    return masks


def _of_texts(column: Column) -> _Hashes | None:
    found: list[_Hashes] = []
    for part in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        texts = part.drop_null().cast(pa.large_binary())
        if not len(texts):
            continue
        _, offsets, content = texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(content or b"", np.uint8)
        lengths = np.diff(ends)
        if lengths.max() > _TEXT_MAX:
            return None
        for length in np.unique(lengths).tolist():
            starts = ends[:-1][lengths == length]
            found.append(xxh64(data[starts[:, None] + np.arange(length)]))
    return np.concatenate(found) if found else np.empty(0, np.uint64)


@dataclass(slots=True)
class FilteredFiles:
    """Files of which Bloom filters leave some out."""

    keys: Sequence[tuple[str, KeyHashes]]
    """The columns of the key by their names in files; each has to have a value of the source."""
    num_left_out: int = 0
    _has_filters: bool = False
    """Whether some file has one."""

    def kept(self, files: Sequence[FileLookup]) -> Iterator[FileLookup]:
        """Yield the files that might hold a key."""
        large = [file for file in files if _is_large(file.path)]
        yield from (file for file in files if not _is_large(file.path))
        yield from self._kept(large[:_LOOKED_AT])
        some, rest = large[_LOOKED_AT:_TRIED], large[_TRIED:]
        yield from self._kept(some) if self._has_filters else some
        yield from self._kept(rest) if self.num_left_out else rest

    def _kept(self, files: Sequence[FileLookup]) -> Iterator[FileLookup]:
        for file in fetched_ahead(files, lambda file: file.path, self._spans):
            if self._might_hold(file):
                yield file
            else:
                self.num_left_out += 1

    def _spans(self, source: RangeFile) -> list[Span]:
        file = OpenFile(pa.PythonFile(source, mode="r"))
        file.require_sound()
        return [one.span for one in self._filters(file, ())]

    def _might_hold(self, file: FileLookup) -> bool:
        try:
            opened = OpenFile(file.path)
            opened.require_sound()
            found = list(self._filters(opened, {name for name, _ in file.constants}))
            self._has_filters |= bool(found)
            contents = _read(file.path, opened.ranges, [one.span for one in found])
            filters = zip(found, contents, strict=True)
            ruled_out = {one.group for one, content in filters if not one.might_hold(content)}
            return len(ruled_out) < opened.num_row_groups
        except (OSError, pa.ArrowException, UnsupportedLayoutError, IndexError):
            return True  # reading the file says what is wrong

    def _filters(self, file: OpenFile, but: Collection[str]) -> Iterator[_Filter]:
        """Yield the filters of the columns of the key, but for some, in each row group."""
        stored: pa.Schema | None = None
        for name, hashes in self.keys:
            leaves = [] if name in but else file.leaves_of([name])
            if len(leaves) != 1:
                continue
            for group in range(file.num_row_groups):
                chunk = file.metadata.row_group(group).column(leaves[0])
                if (span := _span(chunk)) is None:
                    continue
                stored = file.schema_arrow if stored is None else stored
                if _is_plain(stored.field(name).type):
                    yield _Filter(group, hashes, str(chunk.physical_type), span)


@dataclass(frozen=True, slots=True)
class _Filter:
    """The filter of a column chunk."""

    group: int
    hashes: KeyHashes
    physical: str
    span: Span

    def might_hold(self, content: bytes) -> bool:
        """Tell whether a value of the source might be in the chunk, given the filter's bytes."""
        words = filter_words(content)
        return words is None or self.hashes.might_be_in(words, self.physical)


def _read(path: DataPath, brought: RangeFile | None, spans: Sequence[Span]) -> list[bytes]:
    """Return some ranges of a file; fewer bytes where it ends."""
    if brought is not None:
        return [brought.between(*span) for span in spans]
    if isinstance(path, tuple) or not spans:
        return []
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as pyarrow opens it
        return [os.pread(file.fileno(), end - start, start) for start, end in spans]


def _is_large(path: DataPath) -> bool:
    if isinstance(path, tuple):
        return path[2] >= _SMALL_OBJECT_BYTES
    try:
        return os.path.getsize(path) >= _SMALL_BYTES  # noqa: PTH202 - of many files
    except OSError:
        return False  # reading the file says what is wrong


def _span(chunk: Any) -> Span | None:
    """Return where a filter is; ``None``: there is none, or this Arrow does not say."""
    at = getattr(chunk, "bloom_filter_offset", None)
    length = getattr(chunk, "bloom_filter_length", None)
    if not at or not length or not _BLOCK_BYTES < length <= _FILTER_BYTES_MAX:
        return None
    return at, at + length


def _is_plain(kind: pa.DataType) -> bool:
    """Tell whether values are hashed as they are compared."""
    is_number = pa.types.is_signed_integer(kind) or pa.types.is_date32(kind)
    return bool(is_number or pa.types.is_string(kind) or pa.types.is_binary(kind))


def filter_words(content: bytes) -> npt.NDArray[np.uint32] | None:
    """Return the blocks of a filter, a row of eight words each; ``None``: it is of another kind.

    Raises:
        IndexError: the header is cut short.
    """
    header, end = RawStruct.read(content[:_HEADER_BYTES], 0)
    if any(not _is_first(header, number) for number in (_ALGORITHM, _HASH, _COMPRESSION)):
        return None
    bits = content[end:]
    size = header.number(_NUM_BYTES)
    if size != len(bits) or not size or size % _BLOCK_BYTES:
        return None
    return np.frombuffer(bits, "<u4").reshape(-1, _BLOCK_WORDS)


def _is_first(header: RawStruct, number: int) -> bool:
    """Tell whether a union has its first member, and no other: all that the format defines."""
    union = header.struct(number)
    return union is not None and list(union.fields) == [1]
