"""Whether a table is still the one that was read (X-08a).

Between the reading and the commit of a long job somebody may drop a table and make another one at
its place. A commit onto the version that was read would then leave a gap in the other table's log,
which nobody can read any more, or put rows of one schema into a table of another.
"""

from __future__ import annotations

from collections.abc import Callable

from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog

REMOVED = -1
"""The version of a table that is there no more."""
_WAITS_S = (0.05, 0.25, 1.0)
"""A listing out of a cache may lack the version that another listing has shown."""


def version_instead(log: TableLog, read: Snapshot, *, sleep: Callable[[float], None]) -> int | None:
    """Return the version that lies at the place of a table instead of it, None if nothing does.

    One listing where nothing has happened. A commit that a clean-up took, and one that came back
    from a copy of the table, are told by the table's id.
    """
    listing = list_log(log.store, start=read.version)
    for wait_s in _WAITS_S:
        if listing.latest_version is None:
            sleep(wait_s)
            listing = list_log(log.store, start=read.version)
    if listing.latest_version is None:
        shorter = TableLog(log.store).latest_version()
        return REMOVED if shorter is None else shorter
    if read.commit_file is None:
        if read.version in listing.checkpoints:
            return None
    elif listing.commits.get(read.version) == read.commit_file:
        return None
    newest = TableLog(log.store).find_snapshot()
    if newest is None:
        return REMOVED
    return None if newest.metadata.id == read.metadata.id else newest.version
