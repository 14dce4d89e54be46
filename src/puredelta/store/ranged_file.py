"""An object as a file that can be read anywhere: one request for its end, one for each other read.

Parquet readers ask for the ranges they want, so nothing is buffered but the end, where the
footer is. The end comes with the size, which saves a request.
"""

from __future__ import annotations

import io
from collections.abc import Callable

from puredelta.store.base import FileEnd

END_BYTES = 1 << 16


class RangedFile(io.RawIOBase):
    """Reads an object of which the end is known; ``read_range`` gets (start, length)."""

    def __init__(self, end: FileEnd, read_range: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._end, self._read_range = end, read_range
        self._end_start = end.size_bytes - len(end.content)
        self._position = 0

    def read(self, size: int | None = -1) -> bytes:
        """Return up to so many bytes, all that are left by default."""
        left = max(0, self._end.size_bytes - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        start, self._position = self._position, self._position + wanted
        if wanted == 0:
            return b""
        if start >= self._end_start:
            first = start - self._end_start
            return self._end.content[first : first + wanted]
        return self._read_range(start, wanted)

    def readall(self) -> bytes:
        """Return all that is left."""
        return self.read()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer, as the standard library's readers do."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; nothing is read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._end.size_bytes}
        self._position = max(0, base[whence] + offset)
        return self._position

    def tell(self) -> int:
        """Return the place where the next read starts."""
        return self._position

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True
