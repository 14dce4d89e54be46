"""Which files keys are looked up in, in columns, on the way to Spark workers and inside them.

Shipped by value: it knows the standard library, numpy, pyarrow and modules like it only.

Thousands of files as a tuple each take the driver longer to make and to send than to plan, and
leave Python as many objects to look through for garbage.

The bounds of all keys together let most files of a table through that is sorted by key, if the
source changes some old rows and brings some new ones. Between the keys there are gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from puredelta.worker.key_index import Numbers, whole_numbers
from puredelta.worker.read_rows import Mask

VALUES_MAX = 1 << 22
"""Keys that are sorted to leave files out; among more there are few gaps."""

Constants: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class FileLookup:
    """Look the keys up in ``path``."""

    ordinal: int
    path: str
    constants: Constants = ()
    """Columns that have one value in the whole file: those of partitions."""
    words: bytes = b""
    """Rows that a deletion vector deletes, as in `puredelta.worker.rewrite_file.RewriteTask`."""
    bits: bytes = b""


@dataclass(frozen=True, slots=True)
class Spans:
    """The least and the greatest value that files may hold in a column, dates as days."""

    known: Mask
    """Of which files anything is known; the numbers of others mean nothing."""
    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]

    def some(self, places: Numbers) -> Spans:
        """Return those of some files."""
        return Spans(self.known[places], self.lows[places], self.highs[places])

    def may_hold(self, column: pa.Array) -> Mask:
        """Tell which files may hold a value of a column of whole numbers or dates."""
        if not self.known.any() or len(column) > VALUES_MAX:
            return np.ones(len(self.known), np.bool_)
        values, valid = whole_numbers(column)
        values = np.sort(values if valid is None else values[valid])
        first = np.searchsorted(values, self.lows, "left")
        behind = np.searchsorted(values, self.highs, "right")
        return ~self.known | (first < behind)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupBatch:
    """Look the keys up in several files."""

    ordinals: npt.NDArray[np.int32]
    paths: Sequence[str]
    constants: Sequence[Constants] = ()
    """Of every file; empty: no file has any."""
    deleted: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)
    """By ordinal: words and bits of a `FileLookup`."""
    spans: Sequence[Spans | None] = ()
    """Per column of the key; ``None``: nothing is known. Empty: all files are read."""

    def __len__(self) -> int:
        """How many files they are."""
        return len(self.paths)

    def some(self, places: Sequence[int]) -> LookupBatch:
        """Return the orders in some places."""
        chosen = np.array(places, np.int64)
        ordinals = self.ordinals[chosen]
        return LookupBatch(
            ordinals=ordinals,
            paths=[self.paths[place] for place in places],
            constants=[self.constants[place] for place in places] if self.constants else (),
            deleted={n: self.deleted[n] for n in self.deleted.keys() & ordinals.tolist()},
            spans=[None if spans is None else spans.some(chosen) for spans in self.spans],
        )

    def likely(self, columns: Sequence[pa.Array]) -> list[FileLookup]:
        """Return the orders whose files may hold a value of every column of the key."""
        kept: Mask = np.ones(len(self), np.bool_)
        for spans, column in zip(self.spans, columns, strict=False):
            if spans is not None:
                kept &= spans.may_hold(column)
        return [self._order(place) for place in np.flatnonzero(kept).tolist()]

    def _order(self, place: int) -> FileLookup:
        ordinal = int(self.ordinals[place])
        constants = self.constants[place] if self.constants else ()
        return FileLookup(ordinal, self.paths[place], constants, *self.deleted.get(ordinal, ()))

    def packed(self) -> tuple[Any, ...]:
        """Return what can be unpacked by a worker that lacks the libraries."""
        return (
            self.ordinals.tobytes(),
            list(self.paths),
            list(self.constants),
            dict(self.deleted),
            [
                None
                if spans is None
                else (spans.known.tobytes(), spans.lows.tobytes(), spans.highs.tobytes())
                for spans in self.spans
            ],
        )

    @classmethod
    def unpacked(cls, packed: tuple[Any, ...]) -> LookupBatch:
        """Return them again."""
        ordinals, paths, constants, deleted, columns = packed
        return cls(
            ordinals=np.frombuffer(ordinals, np.int32),
            paths=paths,
            constants=constants,
            deleted=deleted,
            spans=[
                None
                if spans is None
                else Spans(
                    np.frombuffer(spans[0], np.bool_), *(np.frombuffer(n, "i8") for n in spans[1:])
                )
                for spans in columns
            ],
        )
