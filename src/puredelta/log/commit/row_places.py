"""Places of the rows that a compaction moves, by what its commit says of itself.

A compaction that keeps the order of rows has a tag: how many of the removed files, in their order,
are in each added file. With the row counts of the log the place of each row follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from puredelta.log.files.row_counts import logical_rows, physical_rows
from puredelta.protocol.actions.actions import Action, Add, DeletionVectorDescriptor, Remove
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path

ReadVector: TypeAlias = Callable[[DeletionVectorDescriptor], RowIndexes]
_NO_ROWS: RowIndexes = np.empty(0, np.uint64)


def rows_of(vector: DeletionVectorDescriptor | None, read: ReadVector) -> RowIndexes:
    """Return the rows that a vector deletes; none without a vector."""
    return _NO_ROWS if vector is None else read(vector)


def rows_beyond(before: RowIndexes, after: RowIndexes) -> RowIndexes | None:
    """Return the rows that are deleted after a change and not before; None if rows came back.

    >>> rows_beyond(np.array([1]), np.array([1, 3])), rows_beyond(np.array([1]), np.array([3]))
    (array([3]), None)
    """
    more: RowIndexes = np.setdiff1d(after, before, assume_unique=True)
    return more if len(more) == len(after) - len(before) else None


def is_at(path: CanonicalPath, action: Action) -> bool:
    """Return whether an action adds or removes the file of a path."""
    return isinstance(action, Add | Remove) and canonical_path(action.path) == path


ROW_ORDER_TAG = "puredelta.rowOrder"
"""A tag of ``commitInfo``: JSON, the number of removed files in each added file, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedFile:
    """A file whose rows a compaction puts, in their order, into a part of another file."""

    vector: DeletionVectorDescriptor | None
    """The rows that did not move, because they were deleted before."""
    into: Add
    first: int
    """The position of its first row in the other file."""
    num_rows: int

    def places(self, rows: RowIndexes | None, read: ReadVector) -> RowIndexes:
        """Return the new positions of some rows that moved; None stands for all of them."""
        if rows is None:
            return np.arange(self.first, self.first + self.num_rows, dtype=np.uint64)
        before = np.searchsorted(rows_of(self.vector, read), rows).astype(np.uint64)
        found: RowIndexes = rows - before + np.uint64(self.first)
        return found


def row_order_tag(files_in_each: Sequence[int]) -> dict[str, str]:
    """Return the tag of a compaction whose adds hold the rows of its removes, in both orders.

    >>> row_order_tag([3, 2])
    {'puredelta.rowOrder': '[3, 2]'}
    """
    return {ROW_ORDER_TAG: json.dumps(list(files_in_each))}


def moved_files(
    adds: Sequence[Add], removes: Sequence[Remove], tags: Mapping[str, str] | None
) -> Mapping[CanonicalPath, MovedFile]:
    """Return the files of a compaction whose rows can be found again, by their paths."""
    counts = _counts((tags or {}).get(ROW_ORDER_TAG))
    if len(counts) != len(adds) or sum(counts) != len(removes):
        return {}
    found: dict[CanonicalPath, MovedFile] = {}
    ends = list(accumulate(counts))
    for add, count, end in zip(adds, counts, ends, strict=True):
        sources = removes[end - count : end]
        rows = [logical_rows(remove) for remove in sources]
        known = [number for number in rows if number is not None]
        if len(known) < count or physical_rows(add) != sum(known) or add.deletion_vector:
            continue
        if add.data_change or any(remove.data_change for remove in sources):
            continue
        for remove, first, number in zip(sources, accumulate([0, *known]), known, strict=False):
            found[canonical_path(remove.path)] = MovedFile(
                vector=remove.deletion_vector, into=add, first=first, num_rows=number
            )
    return found


def _counts(text: str | None) -> list[int]:
    try:
        counts = json.loads(text or "[]")
    except ValueError:
        return []
    is_valid = isinstance(counts, list) and all(type(n) is int and n > 0 for n in counts)
    return counts if is_valid else []
