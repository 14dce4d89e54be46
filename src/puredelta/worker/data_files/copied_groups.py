"""Data files written again without some rows, where row groups that keep every row are copied.

Only row groups that lose a row are decoded and encoded; the others are copied as bytes. The schema
of the file stays, so rows that Arrow would store otherwise than the file does are left to a copy
of the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from puredelta.worker.data_files.byte_ranges import byte_ranges
from puredelta.worker.data_files.spliced_file import (
    ParquetBytes,
    SplicedFile,
    encoded_rows,
    leaves_at,
    mistaken_leaves,
    require_alike,
)
from puredelta.worker.data_files.write_file import (
    FileAnswer,
    FileOrder,
    columns_with_nan,
    float_leaves,
    in_new_file,
    known_options,
)
from puredelta.worker.files import DataPath, NewFile
from puredelta.worker.footers.footer_parts import FooterColumn, FooterGroup
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError
from puredelta.worker.read_rows import OpenFile, dropped_rows

_INTEGER_DIGITS = 18
"""Up to so many digits a decimal may be stored as an integer."""


class Kept(Enum):
    """The rows that a row group keeps."""

    EVERY_ROW = "every row"
    SOME_ROWS = "some rows"
    NO_ROW = "no row"


def kept_of_groups(source: OpenFile, words: bytes, bits: bytes) -> list[Kept]:
    """Return what each row group of a file keeps without the rows of a bitmap."""
    kept: list[Kept] = []
    first_row = 0
    for number in range(source.num_row_groups):
        num_rows = source.metadata.row_group(number).num_rows
        dropped = dropped_rows(words, bits, first_row, num_rows)
        first_row += num_rows
        if dropped is None or not np.any(dropped):
            kept.append(Kept.EVERY_ROW)
        else:
            kept.append(Kept.NO_ROW if np.all(dropped) else Kept.SOME_ROWS)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """A file whose row groups are copied."""

    path: DataPath
    source: OpenFile
    kept: Sequence[Kept]
    tables: Callable[[int], Iterable[pa.Table]]
    """Returns the rows that a row group keeps, a table for each new row group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCopy:
    """The copy of one file or several, one after the other, row group by row group."""

    order: FileOrder
    files: Sequence[CopiedFile]
    schema: pa.Schema
    """Of the rows of files."""
    codec: str
    """Names the file."""
    options: Callable[[pa.Table], Mapping[str, Any]]
    """Those of Arrow's writer, by the first table."""

    def write(self) -> FileAnswer | None:
        """Write the file; ``None``: it cannot be copied group by group, and nothing is left.

        What else `write_file` refuses or raises is refused or raised here, too.
        """
        try:
            return in_new_file(self.order, self.codec, self._written)
        except UnsupportedLayoutError:
            return None

    def _written(self, target: NewFile) -> FileAnswer:
        every = [ParquetBytes.of(byte_ranges(one.path, one.source.ranges)) for one in self.files]
        footer = every[0].footer
        for old in every[1:]:
            require_alike(footer.columns, old.footer)
        self._require_alike(footer.columns)
        nan_columns: set[tuple[str, ...]] = set()
        with target.stream() as sink:
            spliced = SplicedFile(footer, sink, footer.columns)
            for file, old in zip(self.files, every, strict=True):
                nan_columns |= self._add(spliced, file, old)
            written = spliced.finish()
        size_bytes, modified_ms = target.finish(spliced.size_bytes)
        return FileAnswer(
            ordinal=self.order.ordinal,
            kept_rows=spliced.num_rows,
            size_bytes=size_bytes,
            modified_ms=modified_ms,
            footer=written,
            nan_columns=tuple(sorted(nan_columns)),
            unread=tuple(float_leaves(self.schema)),
            copied_groups=sum(one.kept.count(Kept.EVERY_ROW) for one in self.files),
        )

    def _add(
        self, spliced: SplicedFile, file: CopiedFile, old: ParquetBytes
    ) -> set[tuple[str, ...]]:
        """Add the row groups of a file; return the float columns that hold a NaN."""
        nan_columns: set[tuple[str, ...]] = set()
        chosen: Mapping[str, Any] | None = None
        for number, (group, kept) in enumerate(zip(old.footer.groups, file.kept, strict=True)):
            if kept is Kept.EVERY_ROW and group.num_rows:
                spliced.add(group, [(old.content, chunk) for chunk in group.chunks])
            if kept is not Kept.SOME_ROWS:
                continue
            for table in file.tables(number):
                if chosen is None:
                    chosen = {**self.options(table), **decimal_options(self.files[0].source)}
                nan_columns |= _add_rows(spliced, group, table, chosen)
        return nan_columns

    def _require_alike(self, columns: Sequence[FooterColumn]) -> None:
        if any(Kept.SOME_ROWS in one.kept for one in self.files):
            options = decimal_options(self.files[0].source)
            empty = encoded_rows(self.schema.empty_table(), options)
            require_alike(columns, empty.footer)


def decimal_options(source: OpenFile) -> dict[str, Any]:
    """Return the option of Arrow's writer that stores decimals as a file does."""
    decimals = [leaf for leaf in source.leaves() if leaf.logical_type.type == "DECIMAL"]
    small = {leaf.physical_type for leaf in decimals if leaf.precision <= _INTEGER_DIGITS}
    return known_options(store_decimal_as_integer="FIXED_LEN_BYTE_ARRAY" not in small)


def _add_rows(
    file: SplicedFile, base: FooterGroup, table: pa.Table, options: Mapping[str, Any]
) -> set[tuple[str, ...]]:
    """Add rows that were encoded again; return the float columns that hold a NaN."""
    nan_columns = set(columns_with_nan(table))
    encoded = encoded_rows(table, options)
    for group in encoded.footer.groups:
        file.add(
            base.of_rows(group.num_rows),
            [(encoded.content, chunk) for chunk in group.chunks],
            nan_leaves=leaves_at(group, nan_columns),
            mistaken=mistaken_leaves(encoded.footer),
        )
    return nan_columns
