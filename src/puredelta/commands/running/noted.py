"""How far a statement without Spark jobs is, for whoever watches it: the progress line, the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

logger = logging.getLogger(__name__)

Note: TypeAlias = Callable[[str], None]
"""Is told what a statement does now."""

_EVERY_FILES = 256
_LOGGED_EVERY_S = 30.0

T = TypeVar("T")


def note_nothing(_text: str) -> None:
    """Do nothing."""


def counted(
    files: Iterable[T], total: int, note: Note, *, logged_every_s: float = _LOGGED_EVERY_S
) -> Iterator[T]:
    """Yield files whose footers have been read, and note how many; now and then in the log, too."""
    logged = time.monotonic()
    for number, file in enumerate(files):
        if number % _EVERY_FILES == 0:
            text = f"reading footers, {number}/{total} files"
            note(text)
            if time.monotonic() - logged > logged_every_s:
                logged = time.monotonic()
                logger.info("CONVERT TO DELTA: %s", text)
        yield file
