"""Reconciliation of rows: two commits on one data file that change different rows.

**Two vectors.** By the rules for files the second commit would be a conflict: its vector lacks the
rows of the first. Here the rows themselves are compared. A winning commit that let the vector of a
file grow is no conflict if

* each row of the table was judged on its own (`ReadSet.judges_rows_alone`), so that the rows which
  are gone now could not have changed the result of others;
* its vector contains the vector that this commit read: no row came back;
* this commit deletes none of the rows that it deleted, or leaves the file alone.

The vector of this commit is then the union of both. Rows that the winning commit wrote elsewhere
are in files that it added, which the other rules judge.

**A compaction and a change of rows.** Where a compaction tells the places of the rows that it moves
(`row_places`), the commit that lost the race follows them:

* a compaction that lost to deletions gives its new file a vector for the rows that are gone;
* a change that lost to a compaction deletes its rows in the new file instead of the old one.

Both need deletion vectors, and the vectors that both commits read must be the same. Otherwise the
files stay as they are in both commits, and are conflicts by the other rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from puredelta.errors import DeltaError
from puredelta.log.commit.commit_content import StagedCommit
from puredelta.log.commit.commit_request import ReadSet
from puredelta.log.commit.conflicts import WinningCommit
from puredelta.log.commit.row_places import (
    ROW_ORDER_TAG,
    ReadVector,
    is_at,
    moved_files,
    rows_beyond,
    rows_of,
)
from puredelta.log.files.clock import IdSource
from puredelta.log.files.deletion_vectors import DeletionVectorUpdate, WrittenVectors, write_vectors
from puredelta.log.files.file_table import remove_file
from puredelta.protocol.actions.actions import Action, Add, DeletionVectorDescriptor, Remove
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


def with_moved_files(staged: StagedCommit) -> StagedCommit:
    """Return a commit that knows which rows it moves itself; call it before the first race."""
    adds, removes = _files_of(staged.actions)
    return replace(staged, moved=moved_files(adds, removes, staged.info.tags))


def follow_moves(
    staged: StagedCommit, winner: WinningCommit, config: TableConfig, *, read: ReadVector
) -> tuple[StagedCommit, WinningCommit]:
    """Return our commit on top of the winning one, and what is left of it for the other rules.

    ``config`` is the table before the winning commit. Nothing is written.
    """
    if not (config.properties.enable_deletion_vectors and config.supports("deletionVectors")):
        return staged, winner
    try:
        if staged.moved:
            return _after_deletions(staged, winner, read)
        return _after_compaction(staged, winner, read), winner
    except (DeltaError, OSError):  # a vector that a VACUUM took, or that cannot be reached
        return staged, winner


def with_later_reads(staged: StagedCommit, winner: WinningCommit, reads: ReadSet) -> StagedCommit:
    """Let the reads of our commit follow the rows that a winner moved to other files."""
    known = reads.files.keys() | {canonical_path(add.path) for add in staged.read_later}
    if not any(canonical_path(r.path) in known for r in winner.removes if not r.data_change):
        return staged
    later = tuple(add for add in winner.adds if not add.data_change)
    return replace(staged, read_later=(*staged.read_later, *later))


def _after_deletions(
    staged: StagedCommit, winner: WinningCommit, read: ReadVector
) -> tuple[StagedCommit, WinningCommit]:
    """Hide the rows that the winner deleted in the files to which our compaction moves them."""
    removed = {canonical_path(remove.path): remove for remove in winner.removes}
    added = {canonical_path(add.path): add for add in winner.adds}
    for path in sorted(staged.moved.keys() & removed.keys()):
        gone, again = removed[path], added.get(path)
        _, ours = _files_of(_at(path, staged.actions))
        if len(ours) != 1 or ours[0].deletion_vector != gone.deletion_vector:
            continue
        if again is None and not gone.data_change:
            continue  # another compaction has moved the rows
        rows = None if again is None else _more_rows(gone.deletion_vector, again, read)
        if again is not None and rows is None:
            continue
        moved = staged.moved[path]
        staged = _hide(staged, moved.into, moved.places(rows, read))
        kept = tuple(a for a in staged.actions if not is_at(path, a))
        if again is not None:
            kept = (*kept, replace(ours[0], deletion_vector=again.deletion_vector))
        # The places of rows no longer follow from the actions.
        tags = {k: v for k, v in (staged.info.tags or {}).items() if k != ROW_ORDER_TAG}
        staged = replace(staged, actions=kept, info=replace(staged.info, tags=tags or None))
        winner = replace(
            winner,
            adds=tuple(add for add in winner.adds if add is not again),
            removes=tuple(remove for remove in winner.removes if remove is not gone),
        )
    return staged, winner


def _after_compaction(
    staged: StagedCommit, winner: WinningCommit, read: ReadVector
) -> StagedCommit:
    """Delete our rows in the files to which the winner has moved them."""
    moved = moved_files(winner.adds, winner.removes, winner.info.tags)
    touched = {canonical_path(a.path) for a in staged.actions if isinstance(a, Add | Remove)}
    for path in sorted(moved.keys() & touched):
        file = moved[path]
        adds, removes = _files_of(_at(path, staged.actions))
        unions = [u for u in staged.unions if canonical_path(u.file.path) == path]
        if len(removes) != 1 or not removes[0].data_change or len(adds) + len(unions) > 1:
            continue
        if removes[0].deletion_vector != file.vector:
            continue
        rows = None
        if unions:
            rows = rows_beyond(rows_of(file.vector, read), unions[0].rows)
        elif adds:
            rows = _more_rows(file.vector, adds[0], read)
        if rows is None and (unions or adds):
            continue
        kept = tuple(a for a in staged.actions if not is_at(path, a))
        if not _at(canonical_path(file.into.path), kept):
            kept = (*kept, remove_file(file.into, deleted_ms=removes[0].deleted_ms))
        others = tuple(u for u in staged.unions if canonical_path(u.file.path) != path)
        staged = replace(staged, actions=kept, unions=others)
        staged = _hide(staged, file.into, file.places(rows, read))
    return staged


def _hide(staged: StagedCommit, file: Add, rows: RowIndexes) -> StagedCommit:
    """Let the commit delete rows of a file, besides those that it deletes already."""
    known = [u for u in staged.unions if u.file.path == file.path]
    for union in known:
        rows = np.union1d(union.rows, rows)
    others = tuple(u for u in staged.unions if u.file.path != file.path)
    return replace(
        staged,
        actions=tuple(
            a for a in staged.actions if not (isinstance(a, Add) and a.path == file.path)
        ),
        unions=(*others, DeletionVectorUpdate(file=file, rows=rows)),
    )


def _more_rows(
    before: DeletionVectorDescriptor | None, after: Add, read: ReadVector
) -> RowIndexes | None:
    """Return the rows that a new vector deletes beyond the one before; None if rows came back."""
    return rows_beyond(rows_of(before, read), rows_of(after.deletion_vector, read))


def _files_of(actions: Sequence[Action]) -> tuple[list[Add], list[Remove]]:
    adds = [action for action in actions if isinstance(action, Add)]
    return adds, [action for action in actions if isinstance(action, Remove)]


def _at(path: CanonicalPath, actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if is_at(path, action)]
