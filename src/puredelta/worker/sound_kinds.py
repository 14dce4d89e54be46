"""Footers that are alike: only the first of a kind is checked field by field.

Files of one program and schema have the same bytes in their footers but for numbers and bounds.
Walking them takes Python ten times as long as Arrow takes to parse them. So the shapes of column
chunks are learnt from a footer that is sound (`puredelta.worker.footers.chunk_shapes`): what has
the same schema, byte by byte, and the same shapes has the same types, lengths of bounds and
lengths of lists, and is sound as well. The numbers in a chunk are then not looked at: wrong places
are noticed when pages are read, and end nothing.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.worker.files import kept
from puredelta.worker.footers.chunk_shapes import KnownShapes, Walk
from puredelta.worker.footers.sound_footer import (
    PHYSICAL_NAMES,
    TRAILER_BYTES,
    UnsoundFooterError,
    footer_length,
    leaves_of,
    require_sound,
)
from puredelta.worker.footers.thrift_compact import (
    LIST,
    NEXT_I32,
    NEXT_I64,
    NEXT_LIST,
    UnsupportedLayoutError,
    list_at,
    list_header,
    signed,
    varint,
)

_KINDS_MAX = 32
_CLOSINGS_MAX = 8
_LESSONS_MAX = 64
"""Footers that may be learnt before it must have paid."""


def require_sound_footer(end: bytes, data_end: int) -> None:
    """Check a footer with its trailer as `require_sound` does, and remember its kind."""
    known = kept("sound footers").setdefault("kinds", _KnownKinds())
    content = end[:-TRAILER_BYTES]
    if not known.has(content):
        require_sound(content, data_end)
        known.learn(content)


def require_sound_file(file: BinaryIO) -> int:
    """Check the footer of a file that is open, and go back to its begin; return where it is.

    Raises:
        pa.ArrowInvalid: Arrow must not look at it.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - TRAILER_BYTES))
    try:
        length = footer_length(file.read(TRAILER_BYTES), size)
        file.seek(size - length)
        require_sound_footer(file.read(length), size - length)
    except UnsoundFooterError as reason:
        raise pa.ArrowInvalid(str(reason)) from reason
    file.seek(0)
    return size - length


def require_sound_path(path: str) -> int:
    """Check the footer of a file on a file system, as `require_sound_file` does."""
    with open(path, "rb") as file:  # noqa: PTH123 - as pyarrow opens it
        return require_sound_file(file)


def sound_parquet(file: BinaryIO, **options: Any) -> pq.ParquetFile:
    """Open a file for Arrow's reader; ``options`` are those of Arrow."""
    require_sound_file(file)
    return pq.ParquetFile(file, **options)


@dataclass(slots=True, kw_only=True)
class _Kind:
    """Footers of one schema."""

    prefix: bytes
    """Version and schema."""
    columns: bytes
    """How a row group begins."""
    parts: tuple[KnownShapes, ...]
    group_end: KnownShapes
    closings: list[bytes] = field(default_factory=list)
    """What came after the row groups."""

    def is_like(self, content: bytes, *, learns: bool = False) -> bool:
        """Return whether a footer has known shapes alone; with ``learns`` others become known."""
        at = len(self.prefix)
        if not content.startswith(self.prefix) or content[at : at + 1] != NEXT_I64:
            return False
        rows, at = varint(content, at + 1)
        if content[at : at + 1] != NEXT_LIST:
            return False
        count, _, at = list_at(content, at + 1)
        total = 0
        for _ in range(count):
            if not content.startswith(self.columns, at):
                return False
            at += len(self.columns)
            for part in self.parts:
                found = part.read(content, at)
                if found is None:
                    if not learns:
                        return False
                    found = part.learn(content, at, number=0)
                at = found[0]
            found = self.group_end.read(content, at)
            if found is None:
                if not learns:
                    return False
                found = self.group_end.learn(content, at, number=1)
            at = found[0]
            total += found[1] or 0
        closing = content[at:]
        if learns and closing not in self.closings:
            self.closings = [closing, *self.closings[: _CLOSINGS_MAX - 1]]
        return total == signed(rows) and closing in self.closings


class _KnownKinds:
    """The kinds of footers that this process has met."""

    def __init__(self) -> None:
        self._kinds: list[_Kind] = []
        self._lessons = self._recognized = 0

    def has(self, content: bytes) -> bool:
        """Return whether a footer is of a known kind, and so is sound."""
        try:
            for number, kind in enumerate(self._kinds):
                if kind.is_like(content):
                    if number:
                        self._kinds.insert(0, self._kinds.pop(number))
                    self._recognized += 1
                    return True
        except (UnsupportedLayoutError, IndexError):
            pass
        return False

    def learn(self, content: bytes) -> None:
        """Make footers like a sound one known, if that may pay."""
        if self._lessons >= _LESSONS_MAX + self._recognized:
            return
        self._lessons += 1
        try:
            kind = self._kind_of(content)
            if kind.is_like(content, learns=True) and kind.is_like(content):
                self._kinds = [kind, *(k for k in self._kinds if k is not kind)][:_KINDS_MAX]
        except (UnsupportedLayoutError, IndexError):
            return

    def _kind_of(self, content: bytes) -> _Kind:
        walk = Walk(content)
        for header, kind in ((NEXT_I32, NEXT_I32[0] & 15), (NEXT_LIST, LIST)):
            if content[walk.position : walk.position + 1] != header:
                raise UnsupportedLayoutError("an unusual footer")
            walk.position += 1
            walk.value(kind, (0,))
        prefix = content[: walk.position]
        known = next((kind for kind in self._kinds if kind.prefix == prefix), None)
        if known is not None:
            return known
        leaves = leaves_of(content)
        return _Kind(
            prefix=prefix,
            columns=NEXT_LIST + list_header(len(leaves)),
            parts=tuple(KnownShapes(PHYSICAL_NAMES[leaf.physical]) for leaf in leaves),
            group_end=KnownShapes(""),
        )
