"""A Parquet file whose footer is read as bytes, without parsing it, inside a Spark worker."""

from __future__ import annotations

import io

from puredelta.worker.files import DataPath
from puredelta.worker.footers.sound_footer import UnsoundFooterError, footer_length
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError
from puredelta.worker.range_file import RangeFile

_TAIL_BYTES = 8 * 1024
"""Read at first from a file's end; most footers are smaller."""


class FooterFile:
    """An open file and the bytes of its footer; to be closed."""

    def __init__(self, path: DataPath) -> None:
        self._file = io.FileIO(path) if isinstance(path, str) else RangeFile(path)
        try:
            size = self._file.seek(0, io.SEEK_END)
            self.tail, needed = self._read_tail(size)
        except BaseException:
            self._file.close()
            raise
        self.footer_at = len(self.tail) - needed
        """Where it begins in ``tail``."""
        self.data_end = size - len(self.tail) + self.footer_at
        """Where it begins in the file."""

    @classmethod
    def opened(cls, path: DataPath) -> FooterFile | None:
        """Open a file; ``None`` if it has no footer that could be read.

        Raises:
            OSError: it cannot be read.
        """
        try:
            return cls(path)
        except (UnsupportedLayoutError, UnsoundFooterError):
            return None

    def _read_tail(self, size: int) -> tuple[bytes, int]:
        """Return the last bytes, and how long the footer is with what follows it."""
        tail = self.read(max(0, size - _TAIL_BYTES), size)
        needed = footer_length(tail, size)
        return tail if needed <= len(tail) else self.read(size - needed, size), needed

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes between two places."""
        self._file.seek(begin)
        content = self._file.read(end - begin)
        if len(content) != end - begin:
            raise UnsupportedLayoutError
        return content

    def close(self) -> None:
        """Close the file; ``tail`` stays."""
        self._file.close()
