"""Footers as parts that are moved: the writer of footers, for files made of chunks of other files.

Every value is kept as its bytes, and only what depends on a chunk's place is written again:
offsets, sizes and numbers of rows. So statistics, encodings, key-value pairs and whatever else a
writer noted live on. A field that this code does not know might depend on a place, too: then the
footer is refused.

Traps this module knows:

* A chunk begins at its dictionary page if it has one, else at its first data page; a place of 0
  says that there is none. A chunk without rows may have a dictionary page alone.
* parquet-mr before 1.2.9 left the header of the dictionary page out of a chunk's size
  (PARQUET-816).
* ``RowGroup.file_offset`` and ``total_compressed_size`` decide which task of Spark reads a group.
* A claim of sorted rows ends at the first column whose values are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from puredelta.worker.footers.sound_footer import MAGIC
from puredelta.worker.footers.thrift_compact import (
    FALSE,
    I16,
    I32,
    STRUCT,
    TRUE,
    RawStruct,
    UnsupportedLayoutError,
    list_at,
    passed,
    signed,
    struct_fields,
    structs_at,
    varint,
)

_FILE_KNOWN = frozenset(range(1, 8))
"""Without encryption (8) and signatures (9)."""
_SCHEMA, _NUM_ROWS, _GROUPS, _PAIRS, _CREATED_BY, _COLUMN_ORDERS = 2, 3, 4, 5, 6, 7
_GROUP_KNOWN = frozenset(range(1, 8))
_COLUMNS, _TOTAL_BYTES, _GROUP_ROWS, _SORTING, _GROUP_AT, _GROUP_STORED, _ORDINAL = range(1, 8)
_CHUNK_KNOWN = frozenset(range(2, 8))
"""Without a path of another file (1) and encryption (8, 9)."""
_CHUNK_AT, _META = 2, 3
_OFFSET_INDEX, _COLUMN_INDEX = (4, 5), (6, 7)
_META_KNOWN = frozenset(range(1, 18))
_ENCODINGS, _PATH, _VALUES, _UNCOMPRESSED, _COMPRESSED = 2, 3, 5, 6, 7
_DATA_AT, _INDEX_PAGE_AT, _DICTIONARY_AT = 9, 10, 11
_STATISTICS, _BLOOM = 12, (14, 15)
_BOUNDS = (1, 2, 5, 6, 7, 8)
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION = range(1, 9)
_LOGICAL = 10
_LEVELS, _DECIMAL = (_TYPE, _REPETITION), (_SCALE, _PRECISION)
_INT32, _INT64, _FIXED_LENGTH = 1, 2, 7
_INTEGER = 10
"""Of ``LogicalType``."""
_CONVERTED_INT32, _CONVERTED_INT64 = 17, 18
_REPEATED = 2
_ORDER_OF_TYPE = b"\x1c\x00\x00"
"""A ``ColumnOrder``: the one that the type of a column defines."""
_PARQUET_MR = re.compile(rb"parquet-mr(?: version (\d+)\.(\d+)(?:\.(\d+))?)?")
_WHOLE_CHUNKS = (1, 2, 9)
"""The first version of parquet-mr whose chunks are as long as it says."""

Span = tuple[int, int]
"""Where some bytes of a file begin and end."""


class Chunk:
    """One column of one row group."""

    def __init__(self, raw: RawStruct, meta: RawStruct) -> None:
        """``raw`` is the ``ColumnChunk``, ``meta`` the ``ColumnMetaData`` in it.

        Raises:
            UnsupportedLayoutError: it has what this code does not understand.
        """
        if not raw.fields.keys() <= _CHUNK_KNOWN:
            raise UnsupportedLayoutError("a column chunk with unknown fields")
        if not meta.fields.keys() <= _META_KNOWN or meta.number(_INDEX_PAGE_AT):
            raise UnsupportedLayoutError("metadata of a column chunk with unknown fields")
        self.raw, self.meta = raw, meta
        places = (meta.number(_DATA_AT), meta.number(_DICTIONARY_AT))
        start = min((at for at in places if at > 0), default=0)
        self.span: Span = (start, start + meta.number(_COMPRESSED))
        """Its pages, the dictionary page included."""

    @classmethod
    def read(cls, content: bytes, at: int) -> tuple[Chunk, int]:
        """Return the chunk that is described at a place, and the place after it."""
        raw, at = RawStruct.read(content, at, {_META: _struct_at})
        if _META not in raw:
            raise UnsupportedLayoutError("a column chunk that is not described")
        return cls(raw, raw.parts[_META]), at

    @property
    def path(self) -> tuple[bytes, ...]:
        """The names of its column and of the fields within."""
        encoded = self.meta.raw(_PATH) or b"\x00"
        length, _, at = list_at(encoded, 0)
        names = []
        for _ in range(length):
            size, at = varint(encoded, at)
            names.append(encoded[at : at + size])
            at += size
        return tuple(names)

    @property
    def uncompressed_bytes(self) -> int:
        """The size of its pages before compression, with their headers."""
        return self.meta.number(_UNCOMPRESSED)

    @property
    def num_values(self) -> int:
        """How many values its pages have, NULLs included."""
        return self.meta.number(_VALUES)

    @property
    def encodings(self) -> frozenset[int]:
        """The encodings of its pages, by their numbers."""
        encoded = self.meta.raw(_ENCODINGS) or b"\x00"
        length, _, at = list_at(encoded, 0)
        found = []
        for _ in range(length):
            number, at = varint(encoded, at)
            found.append(signed(number))
        return frozenset(found)

    @property
    def offset_index(self) -> Span | None:
        """Where the places of its pages are."""
        return _place(self.raw, _OFFSET_INDEX)

    @property
    def column_index(self) -> Span | None:
        """Where the bounds of its pages are."""
        return _place(self.raw, _COLUMN_INDEX)

    @property
    def bloom_filter(self) -> tuple[int, int | None] | None:
        """Where its Bloom filter begins, and how long it is, if that is known."""
        at, length = (self.meta.number(number) for number in _BLOOM)
        return None if at <= 0 else (at, length or None)

    def moved(self, shift: int) -> Chunk:
        """Return the chunk at another place, with no index and no Bloom filter."""
        raw, meta = RawStruct(self.raw.fields), RawStruct(self.meta.fields)
        start, end = self.span
        for number in (_DATA_AT, _DICTIONARY_AT):
            if meta.number(number):
                meta.set_number(number, meta.number(number) + shift)
        at = raw.number(_CHUNK_AT)
        raw.set_number(_CHUNK_AT, at + shift if start <= at < end else 0)
        raw.drop(*_OFFSET_INDEX, *_COLUMN_INDEX)
        meta.drop(*_BLOOM)
        return Chunk(raw, meta)

    def set_offset_index(self, at: int, length: int) -> None:
        """Say where the places of its pages are."""
        _set_place(self.raw, _OFFSET_INDEX, at, length)

    def set_column_index(self, at: int, length: int) -> None:
        """Say where the bounds of its pages are."""
        _set_place(self.raw, _COLUMN_INDEX, at, length)

    def set_bloom_filter(self, at: int, length: int) -> None:
        """Say where its Bloom filter is."""
        _set_place(self.meta, _BLOOM, at, length)

    def drop_bounds(self) -> None:
        """Leave minimum and maximum out, of pages, too: they are not those of all values."""
        statistics = self.meta.struct(_STATISTICS)
        if statistics is not None:
            statistics.drop(*_BOUNDS)
            self.meta.fields[_STATISTICS] = self.meta.fields[_STATISTICS][0], statistics.encode()
        self.raw.drop(*_COLUMN_INDEX)

    def drop_statistics(self) -> None:
        """Leave out all that is said of its values."""
        self.meta.drop(_STATISTICS)
        self.raw.drop(*_COLUMN_INDEX)

    def encode(self) -> bytes:
        """Return the ``ColumnChunk``."""
        kind, _ = self.raw.fields[_META]
        self.raw.fields[_META] = kind, self.meta.encode()
        return self.raw.encode()


def _place(raw: RawStruct, numbers: tuple[int, int]) -> Span | None:
    at, length = (raw.number(number) for number in numbers)
    return (at, at + length) if at > 0 and length > 0 else None


def _set_place(raw: RawStruct, numbers: tuple[int, int], at: int, length: int) -> None:
    raw.set_number(numbers[0], at)
    raw.set_number(numbers[1], length, kind=I32)


@dataclass(frozen=True, slots=True)
class FooterGroup:
    """A row group of a file."""

    raw: RawStruct
    chunks: tuple[Chunk, ...]

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self.raw.number(_GROUP_ROWS)

    def of_rows(self, num_rows: int) -> FooterGroup:
        """Return the same row group with another number of rows."""
        raw = RawStruct(self.raw.fields)
        raw.set_number(_GROUP_ROWS, num_rows)
        return FooterGroup(raw, self.chunks)

    def with_chunks(
        self, chunks: Sequence[Chunk], *, ordinal: int, start: int, replaced: Sequence[int] = ()
    ) -> bytes:
        """Return the ``RowGroup`` of the same rows with chunks at other places.

        ``replaced`` are the leaves whose values changed, ``start`` is where the first chunk begins.
        """
        raw = RawStruct(self.raw.fields)
        raw.set_structs(_COLUMNS, [chunk.encode() for chunk in chunks])
        raw.set_number(_TOTAL_BYTES, sum(chunk.uncompressed_bytes for chunk in chunks))
        for number, value in (
            (_GROUP_AT, start),
            (_GROUP_STORED, sum(end - begin for begin, end in (c.span for c in chunks))),
        ):
            if number in raw:
                raw.set_number(number, value)
        if _ORDINAL in raw:
            if ordinal < 1 << 15:
                raw.set_number(_ORDINAL, ordinal, kind=I16)
            else:
                raw.drop(_ORDINAL)
        sorting = self.raw.structs(_SORTING)
        kept = next((n for n, by in enumerate(sorting) if by.number(1) in replaced), len(sorting))
        if kept == 0:
            raw.drop(_SORTING)
        elif kept < len(sorting):
            raw.set_structs(_SORTING, [by.encode() for by in sorting[:kept]])
        return raw.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterColumn:
    """A column of the table, whole: its elements of the schema, and its leaves."""

    name: bytes
    elements: tuple[RawStruct, ...]
    leaves: range

    @property
    def is_repeated(self) -> bool:
        """Whether it has lists or maps."""
        return any(element.number(_REPETITION) == _REPEATED for element in self.elements)

    def is_like(self, other: FooterColumn) -> bool:
        """Return whether chunks of the other one hold values of this one, level for level."""
        return len(self.elements) == len(other.elements) and all(
            map(_are_alike, self.elements, other.elements)
        )


def _are_alike(one: RawStruct, other: RawStruct) -> bool:
    if one.raw(_NAME) != other.raw(_NAME):
        return False
    if any(one.number(number, -1) != other.number(number, -1) for number in _LEVELS):
        return False
    if one.number(_CHILDREN) or other.number(_CHILDREN):
        return one.number(_CHILDREN) == other.number(_CHILDREN)
    if any(one.number(number) != other.number(number) for number in _DECIMAL):
        return False
    if one.number(_TYPE) == _FIXED_LENGTH and one.number(_LENGTH) != other.number(_LENGTH):
        return False
    if _is_plain(one) or _is_plain(other):
        return _is_plain(one) and _is_plain(other)
    if _LOGICAL in one and _LOGICAL in other:
        return one.raw(_LOGICAL) == other.raw(_LOGICAL)
    return _CONVERTED in one and one.raw(_CONVERTED) == other.raw(_CONVERTED)


def _is_plain(element: RawStruct) -> bool:
    """Return whether values are what their physical type says, whole numbers with their sign."""
    logical = element.struct(_LOGICAL)
    if logical is not None:
        integer = logical.struct(_INTEGER)
        bits = {_INT32: 32, _INT64: 64}.get(element.number(_TYPE))
        return (
            integer is not None
            and integer.raw(1) == bytes([bits or 0])
            and integer.fields.get(2, (FALSE, b""))[0] == TRUE
        )
    own = _CONVERTED_INT32 if element.number(_TYPE) == _INT32 else _CONVERTED_INT64
    return _CONVERTED not in element or element.number(_CONVERTED) == own


class Footer:
    """The footer of a file, as parts."""

    def __init__(self, content: bytes) -> None:
        """``content`` is the footer, which is sound; what follows it is ignored.

        Raises:
            UnsupportedLayoutError: it has what this code does not understand.
            IndexError: it is cut short.
        """
        self.raw, _ = RawStruct.read(content, 0, {_GROUPS: _groups_at})
        if not self.raw.fields.keys() <= _FILE_KNOWN:
            raise UnsupportedLayoutError("a footer with unknown fields")
        elements = self.raw.structs(_SCHEMA)
        self.root, self.columns = elements[0], tuple(_columns(elements))
        self.groups: tuple[FooterGroup, ...] = tuple(self.raw.parts.get(_GROUPS, ()))
        _require_whole_chunks(self.raw)

    def pairs(self) -> dict[bytes, bytes]:
        """Return the key-value pairs, encoded, by key."""
        return {_text(pair.raw(1)): pair.encode() for pair in self.raw.structs(_PAIRS)}

    def with_groups(
        self,
        groups: Sequence[bytes],
        *,
        num_rows: int,
        columns: Sequence[FooterColumn],
        without_pairs: Sequence[bytes] = (),
    ) -> bytes:
        """Return a footer, with what follows it in a file, of encoded row groups.

        ``without_pairs`` are keys that are left out.
        """
        raw = RawStruct(self.raw.fields)
        raw.set_structs(_GROUPS, groups)
        raw.set_number(_NUM_ROWS, num_rows)
        if [id(column) for column in columns] != [id(column) for column in self.columns]:
            root = RawStruct(self.root.fields)
            root.set_number(_CHILDREN, len(columns), kind=I32)
            elements = [root, *(element for column in columns for element in column.elements)]
            raw.set_structs(_SCHEMA, [element.encode() for element in elements])
            if _COLUMN_ORDERS in raw:
                num_leaves = sum(len(column.leaves) for column in columns)
                orders = _orders(raw.fields[_COLUMN_ORDERS][1])
                added = [_ORDER_OF_TYPE] * (num_leaves - len(orders))
                raw.set_structs(_COLUMN_ORDERS, [*orders, *added][:num_leaves])
        if without_pairs and _PAIRS in raw:
            kept = [pair for key, pair in self.pairs().items() if key not in without_pairs]
            raw.set_structs(_PAIRS, kept)
        content = raw.encode()
        return content + len(content).to_bytes(4, "little") + MAGIC


def _columns(elements: Sequence[RawStruct]) -> Iterator[FooterColumn]:
    at = 1
    leaf = 0
    for _ in range(elements[0].number(_CHILDREN)):
        end = _end_of(elements, at)
        mine = tuple(elements[at:end])
        leaves = sum(not element.number(_CHILDREN) for element in mine)
        yield FooterColumn(
            name=_text(mine[0].raw(_NAME)), elements=mine, leaves=range(leaf, leaf + leaves)
        )
        at, leaf = end, leaf + leaves
    if at != len(elements):
        raise UnsupportedLayoutError("a schema with more elements than columns")


def _end_of(elements: Sequence[RawStruct], at: int) -> int:
    left = 1
    while left:
        left += elements[at].number(_CHILDREN) - 1
        at += 1
    return at


def _text(encoded: bytes | None) -> bytes:
    if encoded is None:
        raise UnsupportedLayoutError("a text that is not there")
    return encoded[varint(encoded, 0)[1] :]


def _struct_at(content: bytes, at: int, kind: int) -> tuple[RawStruct, int]:
    if kind != STRUCT:
        raise UnsupportedLayoutError(f"a value of kind {kind} that should be a struct")
    return RawStruct.read(content, at)


def _groups_at(content: bytes, at: int, kind: int) -> tuple[list[FooterGroup], int]:
    return structs_at(content, at, kind, _group_at)


def _group_at(content: bytes, at: int) -> tuple[FooterGroup, int]:
    raw, at = RawStruct.read(content, at, {_COLUMNS: _chunks_at})
    if not raw.fields.keys() <= _GROUP_KNOWN:
        raise UnsupportedLayoutError("a row group with unknown fields")
    return FooterGroup(raw, tuple(raw.parts.get(_COLUMNS, ()))), at


def _chunks_at(content: bytes, at: int, kind: int) -> tuple[list[Chunk], int]:
    return structs_at(content, at, kind, Chunk.read)


def _orders(encoded: bytes) -> list[bytes]:
    length, kind, at = list_at(encoded, 0)
    found = []
    for _ in range(length):
        end = passed(encoded, at, kind)
        found.append(encoded[at:end])
        at = end
    return found


def _require_whole_chunks(raw: RawStruct) -> None:
    """Refuse files of a writer that says of some chunks that they are shorter than they are."""
    found = _PARQUET_MR.match(_text(raw.raw(_CREATED_BY))) if _CREATED_BY in raw else None
    if found is not None and tuple(int(part or 0) for part in found.groups()) < _WHOLE_CHUNKS:
        raise UnsupportedLayoutError("chunks of an old parquet-mr, which are longer than it says")


def shifted_pages(offset_index: bytes, shift: int) -> bytes:
    """Return an ``OffsetIndex`` whose pages are at other places.

    Raises:
        UnsupportedLayoutError: it has what this code does not understand.
    """
    if not struct_fields(offset_index, 0)[0].keys() <= {1, 2}:
        raise UnsupportedLayoutError("an offset index with unknown fields")
    index, _ = RawStruct.read(offset_index, 0)
    pages = index.structs(1)
    for page in pages:
        page.set_number(1, page.number(1) + shift)
    index.set_structs(1, [page.encode() for page in pages])
    return index.encode()


def bloom_filter_length(start: bytes) -> int:
    """Return how long a Bloom filter is with its header, by its first bytes."""
    header, end = RawStruct.read(start, 0)
    return end + header.number(1)
