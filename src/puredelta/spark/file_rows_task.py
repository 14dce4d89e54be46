"""Reads rows of a data file as Arrow batches, inside a Spark worker.

Shipped by value: it knows the standard library, numpy and pyarrow only.

Traps this module knows:

* INT96 timestamps are read as nanoseconds, which overflow outside 1677..2262: microseconds
  are asked for.
* What Arrow cannot read or does not implement comes as an error of Arrow or of the system
  alike: either says that Spark has to do it, or to say what is wrong with the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

BATCH_ROWS = 65_536

LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_UNFAITHFUL_TYPES = frozenset(
    {"ENUM", "BSON", "JSON", "INTERVAL", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)

Mask: TypeAlias = npt.NDArray[np.bool_]


class OnlySparkError(Exception):
    """Values that Arrow cannot read, or reads or compares otherwise than Spark; or too many."""


def opened(path: str) -> pq.ParquetFile:
    """Open a file to read some of its rows.

    Raises:
        OnlySparkError: Arrow cannot read it here.
    """
    try:
        return pq.ParquetFile(path, coerce_int96_timestamp_unit="us", pre_buffer=False)
    except (OSError, pa.ArrowException) as failure:
        raise OnlySparkError(f"{type(failure).__name__}: {failure}") from failure


def read_batches(
    file: pq.ParquetFile, groups: Sequence[int], *, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows of some row groups; ``None``: all columns.

    Raises:
        OnlySparkError: Arrow cannot read them.
    """
    names = None if columns is None else list(columns)
    try:
        yield from file.iter_batches(
            BATCH_ROWS, row_groups=list(groups), columns=names, use_threads=False
        )
    except (OSError, pa.ArrowException) as failure:
        raise OnlySparkError(f"{type(failure).__name__}: {failure}") from failure


def dropped_rows(
    words: npt.NDArray[np.int64],
    bits: npt.NDArray[np.uint64],
    first_row: int,
    num_rows: int,
) -> Mask | None:
    """Tell which of the rows from ``first_row`` on have their bit set; ``None`` if none has.

    ``words`` say which runs of 64 rows have one, ascending, ``bits`` which rows of each.
    """
    first_word, last_word = first_row >> 6, (first_row + num_rows - 1) >> 6
    low, high = np.searchsorted(words, [first_word, last_word + 1])
    if low == high:
        return None
    dense = np.zeros(last_word - first_word + 1, "<u8")
    dense[words[low:high] - first_word] = bits[low:high]
    flags = np.unpackbits(dense.view(np.uint8), bitorder="little").view(np.bool_)
    start = first_row - (first_word << 6)
    return flags[start : start + num_rows]


def stored_leaves(source: pq.ParquetFile) -> list[Any]:
    """Return the columns of a file as Parquet describes them, those within columns, too."""
    schema = source.schema  # made anew whenever it is asked for
    return [schema.column(i) for i in range(len(schema))]


def unfaithful(source: pq.ParquetFile) -> str | None:
    """Say why a copy through Arrow would not be the same file; ``None`` if it would."""
    leaves = stored_leaves(source)
    for leaf in leaves:
        kind = leaf.logical_type.type
        if kind in _UNFAITHFUL_TYPES:
            return f"column {leaf.path} has logical type {kind}"
    marks = source.metadata.metadata or {}
    if LEGACY_INT96 in marks and any(leaf.physical_type == "INT96" for leaf in leaves):
        return "INT96 timestamps in the hybrid calendar"
    return None
