"""What a Spark worker is asked to look up, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.worker.limits import LIMITS, Limits
from puredelta.worker.lookup.conditions import ResidualConditions
from puredelta.worker.wire import codec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column of the target that must equal one of the source."""

    target: str
    source: str
    null_safe: bool
    """Whether NULL equals NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """The keys, and what is wanted of the rows that have them."""

    keys: tuple[KeyColumn, ...]
    """Under the names that columns have inside of files."""
    source_files: tuple[str, ...]
    """In the order that numbers them."""
    conditions: ResidualConditions | None = None
    """``None``: every pair is for ``clause``."""
    clause: int = 0
    finds_target: bool = True
    finds_source: bool = True
    parts: int = 1
    """In how many parts the source is held, one after the other; more than one only if no clause
    is for rows that are unmatched in all of them."""
    limits: Limits = LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRows:
    """Rows of one file that one clause acts on."""

    of_source: bool
    """Whether it is a file of the source."""
    clause: int
    file: int
    """The ordinal of the file."""
    words: bytes
    """Little-endian int64: which runs of 64 rows have a found row, ascending."""
    bits: bytes
    """Little-endian uint64 per word: a set bit is a found row."""
    hits: bytes
    """Little-endian int64 per word: in how many pairs its rows are, together."""


LOOKUP_REQUESTS = codec_of(LookupRequest)
FOUND_ROWS = codec_of(FoundRows)
