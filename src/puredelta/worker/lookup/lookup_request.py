"""Lookup orders to a Spark worker: the files to search, and its answers.

A table may have thousands of files. One object for each of them takes the driver longer to make
and to send than the whole plan, and leaves Python as many objects to search for garbage. So a
`LookupBatch` holds a column per property, in the driver and in the worker.

A batch also knows which of its files can hold a key. Files between two keys of the source are not
opened: if a table is sorted by key and the source has some old and some new rows, these are most
files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from puredelta.worker.expressions import Expression
from puredelta.worker.files import DataPath
from puredelta.worker.lookup.conditions import ResidualConditions
from puredelta.worker.lookup.key_index import Column, KeyIndex, Numbers, whole_numbers
from puredelta.worker.lookup.range_index import KeyRange, RangeIndex
from puredelta.worker.read_rows import Mask
from puredelta.worker.wire import LIMITS, Limits, codec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column of the target that must equal one of the source."""

    target: str
    source: str
    null_safe: bool
    """Whether NULL equals NULL."""
    value: Expression | None = None
    """What is compared of the target's column; ``None``: the column itself."""
    read_as: pa.DataType | None = None
    """The type in which ``value`` reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The columns that find pairs: equal keys, or where there are none, a range."""

    keys: tuple[KeyColumn, ...]
    within: KeyRange | None = None

    @property
    def target_names(self) -> list[str]:
        """The columns of the target, in the order in which an index takes them."""
        if self.within is not None:
            return [self.within.target]
        return [key.target for key in self.keys]

    @property
    def source_names(self) -> list[str]:
        """The columns of the source, in the order in which an index is made of them."""
        if self.within is not None:
            return list(self.within.sources)
        return [key.source for key in self.keys]

    def index(self, columns: Sequence[Column]) -> KeyIndex | RangeIndex:
        """Return the index of the source's columns; without any it is empty.

        Raises:
            OnlySparkError: ranges overlap too much.
        """
        if self.within is not None:
            return RangeIndex(self.within, columns)
        columns = columns or [pa.array([], pa.int64())]
        return KeyIndex(columns, [key.null_safe for key in self.keys] or [False])

    def kinds(self, columns: Sequence[Column]) -> tuple[pa.DataType, ...]:
        """Return the types in which columns of the target are compared with those of the source."""
        return tuple(column.type for column in columns[: len(self.target_names)])


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """The keys, and what is wanted of the rows that have them."""

    keys: tuple[KeyColumn, ...]
    """Under the names that columns have inside of files. Without keys and a range there is no
    source: conditions decide of each row by itself."""
    source_files: tuple[DataPath, ...]
    """In the order that numbers them."""
    within: KeyRange | None = None
    """What finds the pairs where there are no keys."""
    conditions: ResidualConditions | None = None
    """``None``: every pair is for ``clause``."""
    clause: int = 0
    finds_target: bool = True
    finds_source: bool = True
    parts: int = 1
    """In how many parts the source is held, one after the other; more than one only if no clause
    is for rows that are unmatched in all of them."""
    limits: Limits = LIMITS

    @property
    def searched(self) -> Searched:
        """What finds the pairs."""
        return Searched(keys=self.keys, within=self.within)


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


Constants: TypeAlias = tuple[tuple[str, Any], ...]
"""Names and values of columns that have one value in a whole file: those of partitions."""


@dataclass(frozen=True, slots=True)
class FileLookup:
    """One file in which keys are looked up."""

    ordinal: int
    path: DataPath
    constants: Constants = ()
    words: bytes = b""
    """Rows that a deletion vector deletes, as in `RewriteTask`."""
    bits: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """The least and the greatest value of a column in each file, dates as days."""

    known: Mask
    """Of which files they are known; the numbers of others mean nothing."""
    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]

    def take(self, places: Numbers) -> ColumnBounds:
        """Return those of some files."""
        return ColumnBounds(
            known=self.known[places], lows=self.lows[places], highs=self.highs[places]
        )

    def might_hold(self, column: pa.Array, *, sorted_max: int) -> Mask:
        """Return which files might hold a value of a column of whole numbers or dates.

        More than ``sorted_max`` values are not looked at: then any file might.
        """
        if not self.known.any() or len(column) > sorted_max:
            return np.ones(len(self.known), np.bool_)
        values, valid = whole_numbers(column)
        values = np.sort(values if valid is None else values[valid])
        first = np.searchsorted(values, self.lows, "left")
        end = np.searchsorted(values, self.highs, "right")
        return ~self.known | (first < end)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupBatch:
    """Files in which keys are looked up."""

    ordinals: npt.NDArray[np.int32]
    paths: Sequence[DataPath]
    constants: Sequence[Constants] = ()
    """Of every file; empty: no file has any."""
    deleted: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)
    """By ordinal: words and bits of a `FileLookup`."""
    bounds: tuple[ColumnBounds | None, ...] = ()
    """Per column of the key, or of the column with ranges; ``None``: nothing is known. Empty: all
    files are read."""

    def __len__(self) -> int:
        """How many files they are."""
        return len(self.paths)

    def take(self, places: Sequence[int]) -> LookupBatch:
        """Return the files in some places."""
        chosen = np.array(places, np.int64)
        ordinals = self.ordinals[chosen]
        return LookupBatch(
            ordinals=ordinals,
            paths=[self.paths[place] for place in places],
            constants=[self.constants[place] for place in places] if self.constants else (),
            deleted={n: self.deleted[n] for n in self.deleted.keys() & ordinals.tolist()},
            bounds=tuple(known and known.take(chosen) for known in self.bounds),
        )

    def candidates(
        self,
        key_columns: Sequence[pa.Array],
        *,
        sorted_max: int = LIMITS.sorted_keys,
        ranges: RangeIndex | None = None,
    ) -> list[FileLookup]:
        """Return the files that might hold a value of every column of the key, or of the ranges."""
        kept: Mask = np.ones(len(self), np.bool_)
        if ranges is not None:
            for known in self.bounds:
                if known is not None:
                    kept = ~known.known | ranges.might_meet(known.lows, known.highs)
            return [self._file(place) for place in np.flatnonzero(kept).tolist()]
        for known, column in zip(self.bounds, key_columns, strict=False):
            if known is not None:
                kept &= known.might_hold(column, sorted_max=sorted_max)
        return [self._file(place) for place in np.flatnonzero(kept).tolist()]

    def _file(self, place: int) -> FileLookup:
        ordinal = int(self.ordinals[place])
        constants = self.constants[place] if self.constants else ()
        return FileLookup(ordinal, self.paths[place], constants, *self.deleted.get(ordinal, ()))


LOOKUP_BATCHES = codec_of(LookupBatch)
