"""Check of the pages of column chunks that are copied as bytes: nothing is decoded.

A chunk is pages one after the other, each with a header that says how long it is and how many
values it has. Bytes come in parts of any size. A checksum is compared where a header has one:
Spark writes it, Arrow does not unless it is asked to.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from puredelta.worker.footers.footer_parts import Chunk
from puredelta.worker.footers.thrift_compact import (
    I32,
    Fields,
    Struct,
    UnsupportedLayoutError,
)
from puredelta.worker.read_rows import OnlySparkError

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
