"""How much a Spark worker reads, holds and writes at a time, and what it does not read at all.

Limits travel with every order, so that a session, or a test, can have others.
"""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.worker.wire import codec_of

_MEGABYTE = 1024 * 1024
INT96 = "int96"
"""Timestamps of 96 bits, which settings of Spark shift."""
OLD_TIMES = "old times"
"""Dates and timestamps of a time in which calendars differ, in files that do not name theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one order."""

    read_rows: int = 65_536
    """Rows of a batch that is read to be copied."""
    read_bytes: int = 32 * _MEGABYTE
    """Decoded bytes of a batch that is read, unless one row has more."""
    row_group_bytes: int = 128 * _MEGABYTE
    """Decoded bytes after which a row group is closed early: what bounds a task's memory."""
    coalesced_rows: int = 16_384
    coalesced_bytes: int = 16 * _MEGABYTE
    """Batches of fewer rows and bytes are coalesced before they are filtered and written."""
    partitioned_bytes: int = 256 * _MEGABYTE
    """Decoded bytes that are distributed over partitions in memory."""
    lookup_rows: int = 131_072
    """Rows that are looked up at a time."""
    lookup_pairs: int = 20_000_000
    """Pairs of one batch of rows: where keys repeat on both sides there could be any number."""
    sorted_keys: int = 1 << 22
    """Keys that are sorted to leave files out; among more there are few gaps."""
    small_file_rows: int = 16_384
    """Files of fewer rows are decoded together (`puredelta.worker.small_files`); 0: none is.
    Opening a larger file is a small part of reading it.
    """
    only_spark: tuple[str, ...] = ()
    """`INT96`, `OLD_TIMES`: what Spark reads otherwise than Arrow, by settings of the session."""


LIMITS = Limits()
LIMITS_CODEC = codec_of(Limits)
