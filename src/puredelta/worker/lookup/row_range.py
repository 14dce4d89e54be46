"""Rows of one file that follow each other, with columns that are decoded when they are asked for.

A condition often decides after its first column. The others are then never decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from puredelta.worker.lookup.key_index import Numbers
from puredelta.worker.lookup.lookup_request import FileLookup
from puredelta.worker.read_rows import Mask, OpenFile, dropped_rows

_NUMBER_BYTES = 4
_TEXT_BYTES = 16
"""Of a text at least: where it begins, and some characters."""


class LateColumns:
    """Columns of an open file, each decoded only as far as its rows are asked for.

    Rows are asked for in ascending ranges. Its methods raise Arrow's errors.
    """

    def __init__(self, file: OpenFile, batch_rows: int) -> None:
        self._file = file
        self._batch_rows = batch_rows
        groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        self._starts: Numbers = np.cumsum([0, *groups])
        self._decoding: dict[str, _Decoding] = {}

    def size(self, name: str) -> int:
        """Return about how many bytes the column has in the first row group, decoded."""
        (leaf,) = self._file.leaves_of([name])
        self._file.require_sound()
        chunk = self._file.metadata.row_group(0).column(leaf)
        is_text = chunk.physical_type == "BYTE_ARRAY"
        # Of a dictionary, and indices of some bits, come values of their own.
        least = chunk.num_values * (_TEXT_BYTES if is_text else _NUMBER_BYTES)
        return int(max(chunk.total_uncompressed_size, least))

    def rows(self, name: str, first_row: int, num_rows: int) -> pa.Array:
        """Return a column's values in some rows of the file."""
        decoding = self._decoding.get(name)
        if decoding is None:
            group = int(np.searchsorted(self._starts, first_row, "right")) - 1
            batches = self._file.read(
                self._batch_rows,
                groups=range(group, self._file.num_row_groups),
                leaves=self._file.leaves_of([name]),
            )
            decoding = self._decoding[name] = _Decoding(batches, int(self._starts[group]))
        return decoding.rows(first_row, num_rows)


@dataclass(slots=True)
class _Decoding:
    """A column that is decoded as far as it was asked for."""

    batches: Iterator[pa.RecordBatch]
    next_row: int
    """Of the file: where the values begin that are decoded next, or left."""
    left: pa.Array | None = None
    """Values that are decoded and were not asked for yet."""

    def rows(self, first_row: int, num_rows: int) -> pa.Array:
        """Return values of rows; those before them are forgotten."""
        found: list[pa.Array] = []
        end = first_row + num_rows
        while self.next_row < end:
            values = next(self.batches).column(0) if self.left is None else self.left
            low = max(first_row - self.next_row, 0)
            high = min(end - self.next_row, len(values))
            if low < high:
                found.append(values.slice(low, high - low))
            self.left = values.slice(high) if high < len(values) else None
            self.next_row += high
        return found[0] if len(found) == 1 else pa.concat_arrays(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows of one file that follow each other."""

    file: FileLookup
    first_row: int
    num_rows: int
    """Deleted ones included."""
    names: Sequence[str]
    """Of the columns, in the order asked for."""
    late: LateColumns | None = None
    """Decodes the columns that are not there yet."""
    columns: list[pa.Array | None] = field(repr=False)
    """In the types of the file; ``None``: not decoded."""

    def column(self, place: int) -> pa.Array:
        """Return a column, decoded now if it was not. Raises Arrow's errors."""
        found = self.columns[place]
        if found is None:
            late = cast("LateColumns", self.late)
            found = late.rows(self.names[place], self.first_row, self.num_rows)
            self.columns[place] = found
        return found

    def cost(self, place: int) -> int:
        """Return about how many bytes are decoded for a column; 0: none, for it is there."""
        if self.late is None or self.columns[place] is not None:
            return 0
        return self.late.size(self.names[place])

    def deleted(self) -> Mask | None:
        """Return which of its rows are deleted; ``None`` if none is."""
        return dropped_rows(self.file.words, self.file.bits, self.first_row, self.num_rows)
