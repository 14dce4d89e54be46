"""A new data file of column chunks of other files: bytes are copied, nothing is decoded.

A chunk keeps its codec, its encodings and the version of its pages. Its
page index and its Bloom filter move with it, with the places in them written again. The footer
comes from the footer of the old file (`puredelta.worker.footers.footer_parts`).

`PageCheck` steps over the pages of a chunk while it is copied: each page has a header that says how
long it is and how many values it has. Bytes come in parts of any size. A checksum is compared where
a header has one: Spark writes it, Arrow does not unless it is asked to.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.worker.data_files.byte_ranges import (
    ByteRanges,
    MemoryBytes,
    Span,
    reader_of_spans,
)
from puredelta.worker.file_columns import parquet_schema, plain_schema
from puredelta.worker.footers.footer_parts import (
    Chunk,
    Footer,
    FooterColumn,
    FooterGroup,
    bloom_filter_length,
    shifted_pages,
)
from puredelta.worker.footers.sound_footer import (
    MAGIC,
    TRAILER_BYTES,
    UnsoundFooterError,
    footer_length,
)
from puredelta.worker.footers.thrift_compact import (
    I32,
    Fields,
    Struct,
    UnsupportedLayoutError,
)
from puredelta.worker.read_rows import OnlySparkError
from puredelta.worker.sound_kinds import require_sound_footer

_NUMBERS = dict.fromkeys(range(1, 5), I32)
_FIRST_VERSION, _SECOND_VERSION = Struct(_NUMBERS), Struct({**_NUMBERS, 5: I32, 6: I32})
PAGE_HEADER = Struct(
    {**_NUMBERS, 5: _FIRST_VERSION, 7: Struct({1: I32, 2: I32}), 8: _SECOND_VERSION}
)
_KIND, _PLAIN_BYTES, _BYTES, _CHECKSUM = 1, 2, 3, 4
_DETAILS = {0: (5, 2), 2: (7, 2), 3: (8, 4)}
"""By kind of page: the field with its details, and that of its encoding within."""
_DICTIONARY = 2
_PLAIN = frozenset({0, 2})
"""Encodings of dictionaries, by their names of today and before."""
_HEADER_BYTES = 1 << 20
"""More than a header has, with the bounds of its values."""
_USUAL_BYTES = 256
"""What nearly all headers fit into."""
_UNSIGNED = 0xFFFFFFFF


class PageCheck:
    """The pages of chunks that follow each other in a file, as their bytes arrive."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        """``chunks``: in the order of their bytes."""
        self._chunks = iter(chunks)
        self._chunk_bytes = self._plain_bytes = self._values = self._page_bytes = 0
        self._encodings: frozenset[int] = frozenset()
        self._checksum: int | None = None
        self._found = 0
        self._head = b""
        self._path = ""

    def take(self, part: bytes | memoryview) -> None:
        """Check the next bytes.

        Raises:
            UnsupportedLayoutError: the pages are not as long, or have not as many values, as the
                footer says of their chunk.
            OnlySparkError: a page has another checksum than its header says.
        """
        view = memoryview(part)
        at = 0
        while at < len(view):
            if self._page_bytes:
                at += self._take_page(view[at:])
                continue
            while not self._chunk_bytes:
                self._next_chunk()
            at += self._take_header(view[at:])

    def finish(self) -> None:
        """Check that nothing is missing; errors as `take`."""
        if self._chunk_bytes or self._page_bytes or self._values or self._plain_bytes:
            raise UnsupportedLayoutError(
                f"column {self._path} has other pages than its footer says"
            )

    def _next_chunk(self) -> None:
        self.finish()
        chunk = next(self._chunks)
        begin, end = chunk.span
        self._chunk_bytes, self._values = end - begin, chunk.num_values
        self._plain_bytes, self._encodings = chunk.uncompressed_bytes, chunk.encodings
        self._path = b".".join(chunk.path).decode(errors="replace")

    def _take_header(self, view: memoryview) -> int:
        """Read a header that begins here, or began before; return how many bytes it takes."""
        before = len(self._head)
        left = min(_HEADER_BYTES, self._chunk_bytes - before)
        content = self._head + bytes(view[: min(left, _USUAL_BYTES)])
        header, length = _header_at(content)
        if length > len(content) < before + min(left, len(view)):
            content = self._head + bytes(view[:left])
            header, length = _header_at(content)
        if length > len(content):
            if len(content) >= min(_HEADER_BYTES, self._chunk_bytes):
                raise UnsupportedLayoutError(f"a page of column {self._path} has no header")
            self._head = content
            return len(content) - before
        self._head = b""
        size = header.get(_BYTES, -1)
        if not 0 <= size <= self._chunk_bytes - length:
            raise UnsupportedLayoutError(f"a page of column {self._path} is longer than its chunk")
        self._chunk_bytes -= length
        self._page_bytes = size
        self._checksum = header.get(_CHECKSUM)
        self._found = 0
        self._plain_bytes -= length + header.get(_PLAIN_BYTES, 0)
        self._take_details(header)
        if not size:
            self._end_page()
        return length - before

    def _take_details(self, header: Fields) -> None:
        kind = header.get(_KIND, -1)
        try:
            field, encoding = _DETAILS[kind]
            details = header[field]
            found, values = details[encoding], details[1]
        except KeyError:
            raise UnsupportedLayoutError(f"column {self._path} has an unknown page") from None
        if kind != _DICTIONARY:
            self._values -= values
        if found not in (_PLAIN if kind == _DICTIONARY else self._encodings):
            raise UnsupportedLayoutError(f"column {self._path} has a page in another encoding")

    def _take_page(self, view: memoryview) -> int:
        some = view[: self._page_bytes]
        if self._checksum is not None:
            self._found = zlib.crc32(some, self._found)
        self._page_bytes -= len(some)
        self._chunk_bytes -= len(some)
        if not self._page_bytes:
            self._end_page()
        return len(some)

    def _end_page(self) -> None:
        if self._checksum is not None and self._checksum & _UNSIGNED != self._found:
            raise OnlySparkError(f"a page of column {self._path} is not as its checksum says")


def _header_at(content: bytes) -> tuple[Fields, int]:
    """Read a header; its length is more than there is where it goes on in the next part."""
    try:
        return PAGE_HEADER.read(content, 0)
    except IndexError:
        return {}, len(content) + 1


_BLOOM_HEADER_BYTES = 64
"""More than the header of a Bloom filter takes."""
_TAIL_BYTES = 64 * 1024
_COUNTS_NULLS = 26
"""The first Arrow that counts a NULL list where what lists hold are structs."""


@dataclass(frozen=True, slots=True)
class ParquetBytes:
    """A Parquet file as its footer and its bytes."""

    footer: Footer
    content: ByteRanges

    @classmethod
    def of(cls, content: ByteRanges) -> ParquetBytes:
        """Read the footer of a file; it is sound.

        Raises:
            UnsupportedLayoutError: the file cannot be copied chunk by chunk.
            OSError: this worker cannot read it.
        """
        size_bytes = content.size_bytes
        tail = content.read((max(0, size_bytes - _TAIL_BYTES), size_bytes))
        needed = footer_length(tail[-TRAILER_BYTES:], size_bytes)
        if needed > len(tail):
            tail = content.read((size_bytes - needed, size_bytes))
        try:
            return cls(Footer(tail[-needed:-TRAILER_BYTES]), content)
        except IndexError:
            raise UnsupportedLayoutError("a footer that is cut short") from None


def encoded_rows(rows: pa.Table, options: Mapping[str, Any]) -> ParquetBytes:
    """Encode rows as a Parquet file in memory, in one row group unless there are too many."""
    out = pa.BufferOutputStream()
    plain, stored = plain_schema(rows.schema), parquet_schema(rows.schema)
    written = rows.cast(plain) if rows.schema != plain else rows
    written = written if stored is plain else written.cast(stored)
    with pq.ParquetWriter(out, stored, **options) as writer:
        writer.write_table(written, row_group_size=max(1, rows.num_rows))
    buffer = out.getvalue()
    return ParquetBytes.of(MemoryBytes(memoryview(buffer)))


@dataclass(slots=True, kw_only=True)
class _Placed:
    """A chunk in the new file, and what is beside its pages in its own file."""

    chunk: Chunk
    source: ByteRanges
    shift: int
    bloom: tuple[int, int | None] | None
    column_index: Span | None
    offset_index: Span | None
    found: dict[Span, bytes]
    """Indexes that were read already."""

    def bloom_span(self) -> Span | None:
        if self.bloom is None:
            return None
        at, length = self.bloom
        if length is None:
            start = self.source.read((at, at + _BLOOM_HEADER_BYTES))
            length = bloom_filter_length(start)
        return at, at + length


class SplicedFile:
    """A file that is put together in a sink: `add` its row groups, then `finish` it."""

    def __init__(self, footer: Footer, sink: IO[bytes], columns: Sequence[FooterColumn]) -> None:
        """``footer`` is that of the old file, ``columns`` are those of the new one."""
        self._footer, self._sink, self._columns = footer, sink, columns
        self._at = 0
        self._groups: list[tuple[FooterGroup, list[_Placed], int, Sequence[int]]] = []
        self._write(MAGIC)

    @property
    def num_rows(self) -> int:
        """How many rows there are so far."""
        return sum(group.num_rows for group, *_ in self._groups)

    @property
    def size_bytes(self) -> int:
        """How many bytes were written so far."""
        return self._at

    def add(
        self,
        group: FooterGroup,
        chunks: Sequence[tuple[ByteRanges, Chunk]],
        *,
        replaced: Sequence[int] = (),
        nan_leaves: Collection[int] = (),
        mistaken: Collection[int] = (),
    ) -> None:
        """Add a row group of the rows of ``group``: a chunk for every leaf, in order.

        ``replaced`` are the leaves with other values than in the old file, ``nan_leaves`` those
        whose bounds leave a NaN out: they get none. ``mistaken`` are those without statistics.

        Raises:
            UnsupportedLayoutError: pages are not as long as the footer of their file says.
            OnlySparkError: a page is not as its checksum says.
        """
        start = at = self._at
        unsaid = {*nan_leaves, *mistaken}
        placed: list[_Placed] = []
        for leaf, (source, chunk) in enumerate(chunks):
            begin, end = chunk.span
            shift, at = at - begin, at + end - begin
            one = _Placed(
                chunk=chunk.moved(shift),
                source=source,
                shift=shift,
                bloom=chunk.bloom_filter,
                column_index=None if leaf in unsaid else chunk.column_index,
                offset_index=chunk.offset_index,
                found={},
            )
            if leaf in mistaken:
                one.chunk.drop_statistics()
            elif leaf in nan_leaves:
                one.chunk.drop_bounds()
            placed.append(one)
        for source, span, copied in _runs(chunks):
            check = PageCheck([] if source.in_memory else copied)
            for part in source.parts(span):
                if not source.in_memory:  # else they were encoded here
                    check.take(part)
                self._write(part)
            check.finish()
        _read_indexes([one for one in placed if one.source.in_memory])
        self._groups.append((group, placed, start, replaced))

    def finish(self, *, without_pairs: Sequence[bytes] = ()) -> bytes:
        """Write indexes and footer; return the footer as a Parquet file of metadata only.

        ``without_pairs`` are keys of key-value pairs that are left out.

        Raises:
            UnsupportedLayoutError: it would not be a sound file.
        """
        try:
            self._write_indexes()
        except IndexError:
            raise UnsupportedLayoutError("a page index or Bloom filter that is cut short") from None
        groups = [
            group.with_chunks(
                [one.chunk for one in placed], ordinal=number, start=start, replaced=replaced
            )
            for number, (group, placed, start, replaced) in enumerate(self._groups)
        ]
        end = self._footer.with_groups(
            groups,
            num_rows=self.num_rows,
            columns=self._columns,
            without_pairs=without_pairs,
        )
        try:
            require_sound_footer(end, self._at)
        except UnsoundFooterError as reason:
            raise UnsupportedLayoutError(f"put together, {reason}") from None
        self._write(end)
        return MAGIC + end

    def _write_indexes(self) -> None:
        """Write Bloom filters and page indexes; they follow all row groups.

        Raises:
            IndexError: one is cut short.
        """
        every = [one for _, placed, *_ in self._groups for one in placed]
        _read_indexes([one for one in every if not one.source.in_memory])
        for one in every:
            if (span := one.bloom_span()) is not None and (found := _whole(one, span)) is not None:
                one.chunk.set_bloom_filter(self._at, len(found))
                self._write(found)
        for one in every:
            if one.column_index is not None and one.offset_index is not None:
                found = one.found[one.column_index]
                one.chunk.set_column_index(self._at, len(found))
                self._write(found)
        for one in every:
            if one.offset_index is not None:
                found = shifted_pages(one.found[one.offset_index], one.shift)
                one.chunk.set_offset_index(self._at, len(found))
                self._write(found)

    def _write(self, content: bytes | memoryview) -> None:
        self._sink.write(content)
        self._at += len(content)


def _runs(
    chunks: Sequence[tuple[ByteRanges, Chunk]],
) -> list[tuple[ByteRanges, Span, list[Chunk]]]:
    """Return the ranges to copy, and their chunks; chunks that follow each other are one range."""
    runs: list[tuple[ByteRanges, Span, list[Chunk]]] = []
    for source, chunk in chunks:
        start, end = chunk.span
        if runs and runs[-1][0] is source and runs[-1][1][1] == start:
            _, (first, _), copied = runs[-1]
            runs[-1] = source, (first, end), [*copied, chunk]
        else:
            runs.append((source, (start, end), [chunk]))
    return runs


def _read_indexes(placed: Sequence[_Placed]) -> None:
    """Read the indexes of some chunks, those of one file together."""
    sources = {id(one.source): one.source for one in placed}
    for key, source in sources.items():
        mine = [one for one in placed if id(one.source) == key]
        wanted = [(one, span) for one in mine for span in _index_spans(one)]
        find = reader_of_spans(source, [span for _, span in wanted])
        for one, span in wanted:
            one.found[span] = find(span)


def _index_spans(one: _Placed) -> list[Span]:
    spans = (one.bloom_span(), one.column_index, one.offset_index)
    return [span for span in spans if span is not None]


def _whole(one: _Placed, span: Span) -> bytes | None:
    found = one.found[span]
    return found if len(found) == span[1] - span[0] else None


def require_alike(columns: Sequence[FooterColumn], encoded: Footer) -> None:
    """Refuse rows that Arrow encodes otherwise than the schema of a file says.

    Raises:
        UnsupportedLayoutError: a column would be read as other values.
    """
    if len(columns) != len(encoded.columns):
        raise UnsupportedLayoutError("other columns than those of the file")
    for one, other in zip(columns, encoded.columns, strict=True):
        if not one.is_like(other):
            name = one.name.decode(errors="replace")
            raise UnsupportedLayoutError(f"column {name} is stored otherwise")


def mistaken_leaves(encoded: Footer) -> list[int]:
    """Return the leaves whose numbers of NULLs an old Arrow gets wrong.

    Readers know that of Arrow, and not of the writer that the footer of a spliced file names.
    """
    if int(pa.__version__.split(".")[0]) >= _COUNTS_NULLS:
        return []
    repeated = (column for column in encoded.columns if column.is_repeated)
    return [leaf for column in repeated for leaf in column.leaves]


def leaves_at(group: FooterGroup, paths: Collection[tuple[str, ...]]) -> list[int]:
    """Return the numbers of the leaves at some paths."""
    wanted = {tuple(name.encode() for name in path) for path in paths}
    return [n for n, chunk in enumerate(group.chunks) if wanted and chunk.path in wanted]
