"""What a statement did, as counts that the stages returned (M-160).

Nothing here is an accumulator: a retried task cannot inflate a number (W-9). Every command
makes its own ``operationMetrics`` of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.log.files.row_counts import RowChanges
from puredelta.protocol.actions.actions import Add, AddChangeFile, Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """How many rows met which fate."""

    source: int
    inserted: int = 0
    matched_updated: int = 0
    matched_deleted: int = 0
    by_source_updated: int = 0
    """NOT MATCHED BY SOURCE clauses, like `by_source_deleted`."""
    by_source_deleted: int = 0
    copied: int = 0
    """Rows rewritten unchanged because a neighbour in their file changed."""

    @property
    def updated(self) -> int:
        """Rows a fired UPDATE replaced, also by equal values."""
        return self.matched_updated + self.by_source_updated

    @property
    def deleted(self) -> int:
        """Rows a fired DELETE removed; once, however many source rows matched (M-72)."""
        return self.matched_deleted + self.by_source_deleted

    @property
    def changes(self) -> RowChanges:
        """The same for the laws that every commit obeys."""
        return RowChanges(
            inserted=self.inserted, updated=self.updated, deleted=self.deleted, copied=self.copied
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """How many files and bytes came and went.

    A file that stays with another deletion vector was neither added nor removed here.
    """

    added: int = 0
    added_bytes: int = 0
    removed: int = 0
    removed_bytes: int = 0
    change_files: int = 0
    change_bytes: int = 0
    vectors_added: int = 0
    """Files that had no deletion vector and have one now."""
    vectors_removed: int = 0
    """Removed files that carried a deletion vector."""
    vectors_updated: int = 0
    """Files whose deletion vector was replaced by a larger one."""


def count_files(
    *,
    removes: Sequence[Remove],
    added: Sequence[Add],
    kept: Sequence[Add],
    changes: Sequence[AddChangeFile] = (),
) -> FileCounts:
    """Count the files of a commit; ``kept`` are those that bear a new deletion vector.

    A path that is removed and kept changed its vector only (M-133).
    """
    staying = {add.path for add in kept}
    gone = [remove for remove in removes if remove.path not in staying]
    updated = sum(r.path in staying and r.deletion_vector is not None for r in removes)
    return FileCounts(
        added=len(added),
        added_bytes=sum(add.size_bytes for add in added),
        removed=len(gone),
        removed_bytes=sum(remove.size_bytes or 0 for remove in gone),
        change_files=len(changes),
        change_bytes=sum(change.size_bytes for change in changes),
        vectors_added=len(kept) - updated,
        vectors_removed=sum(remove.deletion_vector is not None for remove in gone),
        vectors_updated=updated,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Wall-clock time of the phases; 0 for one that did not run."""

    execution_ms: int = 0
    materialize_source_ms: int = 0
    scan_ms: int = 0
    """Pruning and the search for positions."""
    rewrite_ms: int = 0
    """Writing changed rows and splitting touched files, which overlap."""


MetricsOf: TypeAlias = Callable[[RowCounts, FileCounts, PhaseTimes], Mapping[str, int]]
"""Gives the counts the names of a command's ``operationMetrics``."""


def ms_since(moment: float) -> int:
    """Return the milliseconds since a `time.monotonic`, at least 1: the phase ran."""
    return max(1, round((time.monotonic() - moment) * 1000))
