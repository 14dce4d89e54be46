"""Footers that are alike: only the first of a kind is checked field by field.

Files of one program and schema have the same bytes in their footers but for numbers and bounds.
Walking them takes Python ten times as long as Arrow takes to parse them. So the shapes of column
chunks are learnt from a footer that is sound (`puredelta.worker.footers.footer_shapes`): what has
the same schema, byte by byte, and the same shapes has the same types, lengths of bounds and
lengths of lists, and is sound as well. Of the numbers in a chunk those are read that say where its
pages are, which has to be before the footer.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.worker.files import kept
from puredelta.worker.footers.footer_shapes import Ending, FooterShapes
from puredelta.worker.footers.sound_footer import (
    TRAILER_BYTES,
    UnsoundFooterError,
    footer_length,
    require_sound,
)
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError

_KINDS_MAX = 32
_ENDINGS_MAX = 8
_LESSONS_MAX = 64
"""Footers that may be learnt before it must have paid."""


def require_sound_footer(end: bytes, data_end: int) -> None:
    """Check a footer with its trailer as `require_sound` does, and remember its kind."""
    known = kept("sound footers").setdefault("kinds", _KnownKinds())
    content = end[:-TRAILER_BYTES]
    if not known.has(content, data_end):
        require_sound(content, data_end)
        known.learn(content, data_end)


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


@dataclass(frozen=True, slots=True)
class _Kind:
    """Footers of one schema."""

    shapes: FooterShapes
    endings: list[Ending] = field(default_factory=list)

    def is_like(self, content: bytes, data_end: int) -> bool:
        """Return whether a footer has known shapes alone."""
        found = self.shapes.read(content, data_end)
        return found is not None and found[1] in self.endings

    def learn(self, content: bytes, data_end: int) -> None:
        """Make the shapes of a footer known."""
        found = self.shapes.read(content, data_end, learns=True)
        if found is not None and found[1] not in self.endings:
            self.endings[_ENDINGS_MAX - 1 :] = ()
            self.endings.insert(0, found[1])


class _KnownKinds:
    """The kinds of footers that this process has met."""

    def __init__(self) -> None:
        self._kinds: list[_Kind] = []
        self._lessons = self._recognized = 0

    def has(self, content: bytes, data_end: int) -> bool:
        """Return whether a footer is of a known kind, and so is sound."""
        try:
            for number, kind in enumerate(self._kinds):
                if kind.is_like(content, data_end):
                    if number:
                        self._kinds.insert(0, self._kinds.pop(number))
                    self._recognized += 1
                    return True
        except (UnsupportedLayoutError, IndexError, UnicodeDecodeError):
            pass
        return False

    def learn(self, content: bytes, data_end: int) -> None:
        """Make footers like a sound one known, if that may pay."""
        if self._lessons >= _LESSONS_MAX + self._recognized:
            return
        self._lessons += 1
        try:
            known = (kind for kind in self._kinds if kind.shapes.has_schema_of(content))
            kind = next(known, None) or _Kind(FooterShapes.of(content))
            kind.learn(content, data_end)
        except (UnsupportedLayoutError, IndexError):
            return
        self._kinds = [kind, *(k for k in self._kinds if k is not kind)][:_KINDS_MAX]
