"""Two commits that delete different rows of one data file with deletion vectors can both stand.

By the rules for files the second would be a conflict: it commits a vector that lacks the rows of
the first. Here the rows themselves are compared. A winning commit that let the vector of a file
grow is no conflict for us if

* each row of the table was judged on its own (`ReadSet.judges_rows_alone`), so that the rows which
  are gone now could not have changed what we do with others;
* its vector contains the one that we read: no row came back;
* we delete none of the rows that it deleted, or leave the file alone.

Then our vector is the union of both. Rows that the winning commit wrote elsewhere are in files it
added, which the other rules look at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from puredelta.errors import DeltaError
from puredelta.log.commit.commit_content import StagedCommit
from puredelta.log.commit.conflicts import WinningCommit
from puredelta.log.commit.row_places import ReadVector, is_at, rows_beyond, rows_of
from puredelta.log.files.clock import IdSource
from puredelta.log.files.deletion_vectors import DeletionVectorUpdate, WrittenVectors, write_vectors
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    """A file that the winning commit removed and added again, with another vector or none."""

    before: Remove
    after: Add


@dataclass(frozen=True, slots=True, kw_only=True)
class _OurChange:
    """Our change of the same file: our vector replaces the one that we read."""

    remove: Remove
    rows: RowIndexes
    """All rows that are deleted after our commit."""


def reconcile_rows(
    staged: StagedCommit, winner: WinningCommit, *, read: ReadVector
) -> tuple[StagedCommit, WinningCommit]:
    """Return our commit on top of the winning one, and what is left of it for the other rules.

    ``read`` reads a deletion vector. Files that cannot be reconciled stay as they are in both: they
    are conflicts by the other rules. Nothing is written (`with_unions`).
    """
    for path, growth in _growths(winner).items():
        try:
            found = _reconciled(staged, path, growth, read)
        except (DeltaError, OSError):  # a vector that a VACUUM took, or that cannot be reached
            found = None
        if found is not None:
            staged, winner = found, _without(winner, growth)
    return staged, winner


def with_unions(
    staged: StagedCommit, *, store: Store, config: TableConfig, new_id: IdSource
) -> tuple[StagedCommit, WrittenVectors]:
    """Write the vectors of reconciled files; a file without rows is removed only.

    The new file of a compaction changes no data, whatever rows of it are deleted.
    """
    if not staged.unions:
        return staged, WrittenVectors()
    written = write_vectors(staged.unions, store=store, config=config, new_id=new_id)
    quiet = {moved.into.path for moved in staged.moved.values()}
    adds = (replace(add, data_change=add.path not in quiet) for add in written.adds)
    return replace(staged, actions=(*staged.actions, *adds), unions=()), written


def _growths(winner: WinningCommit) -> Mapping[CanonicalPath, _Growth]:
    removed = {canonical_path(remove.path): remove for remove in winner.removes}
    added = {canonical_path(add.path): add for add in winner.adds}
    return {
        path: _Growth(before=removed[path], after=added[path])
        for path in sorted(removed.keys() & added.keys())
    }


def _reconciled(
    staged: StagedCommit, path: CanonicalPath, growth: _Growth, read: ReadVector
) -> StagedCommit | None:
    """Return our commit on top of the growth of one file; ``None`` if the two conflict."""
    before = rows_of(growth.before.deletion_vector, read)
    after = rows_of(growth.after.deletion_vector, read)
    theirs = rows_beyond(before, after)
    if theirs is None:
        return None
    ours = _our_change(staged, path, read)
    if ours is None:
        is_ours = any(is_at(path, action) for action in staged.actions)
        return None if is_ours else staged
    if ours.remove.deletion_vector != growth.before.deletion_vector:
        return None
    deleted = np.setdiff1d(ours.rows, before, assume_unique=True)
    if len(np.intersect1d(deleted, theirs, assume_unique=True)):
        return None
    union = DeletionVectorUpdate(file=growth.after, rows=np.union1d(ours.rows, after))
    remove = replace(ours.remove, deletion_vector=growth.after.deletion_vector)
    return replace(
        staged,
        actions=(*(a for a in staged.actions if not is_at(path, a)), remove),
        unions=(*(u for u in staged.unions if canonical_path(u.file.path) != path), union),
    )


def _our_change(staged: StagedCommit, path: CanonicalPath, read: ReadVector) -> _OurChange | None:
    """Find what we do to a file, if we give it a vector and do nothing else to it."""
    at_path = [action for action in staged.actions if is_at(path, action)]
    removes = [action for action in at_path if isinstance(action, Remove)]
    adds = [action for action in at_path if isinstance(action, Add)]
    unions = [u for u in staged.unions if canonical_path(u.file.path) == path]
    if len(removes) != 1 or len(adds) + len(unions) != 1:
        return None
    if unions:
        return _OurChange(remove=removes[0], rows=unions[0].rows)
    if adds[0].deletion_vector is None:
        return None
    return _OurChange(remove=removes[0], rows=read(adds[0].deletion_vector))


def _without(winner: WinningCommit, growth: _Growth) -> WinningCommit:
    return replace(
        winner,
        adds=tuple(add for add in winner.adds if add is not growth.after),
        removes=tuple(remove for remove in winner.removes if remove is not growth.before),
    )
