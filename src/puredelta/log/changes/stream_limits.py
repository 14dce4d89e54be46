"""How much one batch of a stream takes.

Files count against a limit of files, their sizes against one of bytes. A batch takes at least one
file, and the file that reaches a limit is its last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_FILES_DEFAULT = 1000
_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The limits of a batch; None is no limit."""

    max_files: int | None = None
    max_bytes: int | None = None

    @classmethod
    def of_options(cls, max_files: int | None, max_bytes: int | None) -> ReadLimits:
        """Return the limits that options ask for; without any, a number of files.

        >>> ReadLimits.of_options(None, None).max_files
        1000
        """
        if max_files is None and max_bytes is None:
            return cls(max_files=MAX_FILES_DEFAULT)
        return cls(max_files=max_files, max_bytes=max_bytes)


EVERYTHING = ReadLimits()


class Admission:
    """What one batch may still take."""

    def __init__(self, limits: ReadLimits) -> None:
        self._files = _NO_LIMIT if limits.max_files is None else limits.max_files
        self._bytes = _NO_LIMIT if limits.max_bytes is None else limits.max_bytes
        self._has_taken = False

    @property
    def has_room(self) -> bool:
        """Whether another file may come."""
        return self._files > 0 and self._bytes > 0

    def admits(self, size_bytes: int) -> bool:
        """Take one file if there is room for any; return whether it is taken."""
        had_room = self.has_room
        self._take([size_bytes])
        return had_room

    def admits_together(self, sizes_bytes: Sequence[int]) -> bool:
        """Take files if there is room for all of them, or if they are the first."""
        fits = len(sizes_bytes) <= self._files and sum(sizes_bytes) <= self._bytes
        taken = fits or not self._has_taken or not sizes_bytes
        self._take(sizes_bytes)
        return taken

    def _take(self, sizes_bytes: Sequence[int]) -> None:
        self._has_taken = self._has_taken or bool(sizes_bytes)
        self._files -= len(sizes_bytes)
        self._bytes -= sum(sizes_bytes)
