"""Rows of a checkpoint as a Parquet file that need not fit into memory."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

_PART_BYTES = 8 * 1024 * 1024
_IN_MEMORY_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """A Parquet file that waits to be put."""

    num_rows: int
    size_bytes: int
    _file: IO[bytes]

    def parts(self) -> Iterator[bytes]:
        """Yield the content from its start."""
        self._file.seek(0)
        while part := self._file.read(_PART_BYTES):
            yield part


@contextlib.contextmanager
def encoded_rows(rows: pa.Table, more: Iterable[pa.Table] = ()) -> Iterator[EncodedRows]:
    """Encode rows, and those that follow them; a long file waits on the disk."""
    num_rows = rows.num_rows
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_MAX_BYTES) as file:
        with pq.ParquetWriter(
            file,
            rows.schema,
            compression="snappy",
            store_schema=False,
            write_page_checksum=True,
        ) as sink:
            sink.write_table(rows)
            for further in more:
                sink.write_table(further)
                num_rows += further.num_rows
        yield EncodedRows(num_rows, file.tell(), file)
