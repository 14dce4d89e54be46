"""Footers of Parquet files that are bytes in memory."""

from __future__ import annotations

import pyarrow.parquet as pq

from puredelta.log.files.parquet_footer import map_footers
from puredelta.store.base import FileEnd


def read_end(content: bytes, num_bytes: int) -> FileEnd:
    """Return the end of a file as a store would."""
    return FileEnd(content[max(0, len(content) - num_bytes) :], len(content))


def read_footer(content: bytes) -> pq.FileMetaData:
    """Return the footer of a whole file, or of the end of one."""
    (footer,) = map_footers([content], lambda _, found: found, read_end=read_end)
    return footer
