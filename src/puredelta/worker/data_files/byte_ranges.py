"""Bytes of a file by their places: of a file system, of a store, or in memory.

Large ranges are passed on in parts of a bounded size, and nothing is decoded. Small ranges that
are near each other are read together: a request of a store takes longer than the bytes between.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Protocol

from puredelta.worker.files import KILOBYTE, MEGABYTE, DataPath
from puredelta.worker.range_file import RangeFile

_LOCAL_BYTES = 1 * MEGABYTE
_OBJECT_BYTES = 32 * MEGABYTE
"""Of an object that is brought at once, by several requests."""
_GAP_BYTES = 64 * KILOBYTE

Span = tuple[int, int]
"""Where bytes begin and end."""


class ByteRanges(Protocol):
    """A file whose bytes are read by their places."""

    in_memory: bool
    """Whether its bytes are there already, and gone once it is let go of."""

    @property
    def size_bytes(self) -> int:
        """How long it is."""
        ...

    def parts(self, span: Span) -> Iterator[bytes | memoryview]:
        """Yield the bytes of a range in parts of a bounded size.

        Raises:
            OSError: there are fewer.
        """
        ...

    def read(self, span: Span) -> bytes:
        """Return the bytes of a small range; fewer where the file ends."""
        ...


class LocalBytes:
    """A file of a file system."""

    in_memory = False

    def __init__(self, path: str) -> None:
        """Open it; closed with its last reference."""
        self._file: IO[bytes] = open(path, "rb", buffering=0)  # noqa: PTH123, SIM115
        self._path = path

    @property
    def size_bytes(self) -> int:
        """How long the file is."""
        return self._file.seek(0, io.SEEK_END)

    def parts(self, span: Span) -> Iterator[bytes | memoryview]:
        """Yield parts of one buffer: use a part before the next one is asked for."""
        at, end = span
        buffer = memoryview(bytearray(min(_LOCAL_BYTES, max(0, end - at))))
        self._file.seek(at)
        while at < end:
            count = self._file.readinto(buffer[: min(len(buffer), end - at)])  # type: ignore[attr-defined]
            if not count:
                raise OSError(f"{self._path} ends at {at}, before {end}")
            yield buffer[:count]
            at += count

    def read(self, span: Span) -> bytes:
        """Read a small range."""
        self._file.seek(span[0])
        found = bytearray()
        while len(found) < span[1] - span[0]:
            part = self._file.read(span[1] - span[0] - len(found))
            if not part:
                break
            found += part
        return bytes(found)


class ObjectBytes:
    """An object of a store."""

    in_memory = False

    def __init__(self, file: RangeFile) -> None:
        """Use what is there of the object."""
        self._file = file

    @property
    def size_bytes(self) -> int:
        """How long the object is."""
        return self._file.size

    def parts(self, span: Span) -> Iterator[bytes | memoryview]:
        """Bring parts of 32 MB."""
        at, end = span
        if end > self._file.size:
            raise OSError(f"an object ends at {self._file.size}, before {end}")
        while at < end:
            until = min(end, at + _OBJECT_BYTES)
            self._file.fetch([(at, until)])
            yield self._file.between(at, until)
            at = until

    def read(self, span: Span) -> bytes:
        """Read a small range."""
        return self._file.between(span[0], min(span[1], self._file.size))


class MemoryBytes:
    """A file in memory."""

    in_memory = True

    def __init__(self, content: memoryview) -> None:
        """Use bytes that do not change."""
        self._content = content

    @property
    def size_bytes(self) -> int:
        """How many bytes there are."""
        return len(self._content)

    def parts(self, span: Span) -> Iterator[bytes | memoryview]:
        """Yield the range."""
        if span[1] > len(self._content):
            raise OSError(f"bytes end at {len(self._content)}, before {span[1]}")
        yield self._content[span[0] : span[1]]

    def read(self, span: Span) -> bytes:
        """Return the range."""
        return bytes(self._content[span[0] : span[1]])


def byte_ranges(path: DataPath, brought: RangeFile | None = None) -> ByteRanges:
    """Open a file; ``brought`` is what is there of an object.

    Raises:
        OSError: this worker cannot read it.
    """
    if isinstance(path, str):
        return LocalBytes(path)
    return ObjectBytes(RangeFile(path) if brought is None else brought)


def reader_of_spans(source: ByteRanges, spans: Sequence[Span]) -> Callable[[Span], bytes]:
    """Read small ranges, those near each other at once; return what finds one of them."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start - merged[-1][1] <= _GAP_BYTES:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    read = [(start, end, source.read((start, end))) for start, end in merged]

    def find(span: Span) -> bytes:
        for start, end, content in read:
            if start <= span[0] and span[1] <= end:
                return content[span[0] - start : span[1] - start]
        raise OSError(f"the bytes from {span[0]} to {span[1]} were not read")

    return find
