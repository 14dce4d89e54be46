"""Running VACUUMs, and the files that RESTORE and CLONE must not count on.

A VACUUM commits that it starts, reads the log once more, deletes, and commits that it has ended.
Files that are restored before that reading are kept. Files restored later may be deleted, so
RESTORE and CLONE are refused until the end if they need files that the VACUUM does not keep.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc

from puredelta.errors import ConcurrentDeleteReadException, CorruptTableError, ErrorCode, Message
from puredelta.log.files.file_table import FileTable, file_keys
from puredelta.log.replay.commit_files import read_commit_info
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.actions.operations import VACUUM_END, VACUUM_START
from puredelta.quantities import in_milliseconds
from puredelta.store.base import Store

RUNNING_MAX = timedelta(days=1)
"""A VACUUM that has not ended after this time has died."""


def require_kept(store: Store, latest: Snapshot, restored: FileTable, *, now_ms: int) -> None:
    """Refuse to add files again that a running VACUUM may delete.

    Raises:
        ConcurrentDeleteReadException: there is such a VACUUM (DELTA_CONCURRENT_DELETE_READ).
    """
    if not len(restored):
        return
    expired_before_ms = _expired_before(store, now_ms=now_ms)
    if expired_before_ms is None or not _any_expired(latest, restored, expired_before_ms):
        return
    raise ConcurrentDeleteReadException(
        Message.CONCURRENT_DELETE_READ,
        running_max=RUNNING_MAX // timedelta(hours=1),
        tableName=latest.root_uri,
        readVersion=latest.version,
    )


def _expired_before(store: Store, *, now_ms: int) -> int | None:
    """Return the time before which removed files may be deleted now, None if no VACUUM runs."""
    commits = list_log(store).commits
    since_ms = now_ms - in_milliseconds(RUNNING_MAX)
    num_ended = 0
    running = False
    expired_before: list[int] = []
    for version in sorted(commits, reverse=True):
        if commits[version].modified_ms < since_ms:
            break
        info = _commit_info(store, commits[version].path)
        if info is None:
            continue
        if info.operation == VACUUM_END:
            num_ended += 1
        elif info.operation == VACUUM_START:
            # Which start an end belongs to is not recorded: their numbers tell if one is open.
            running = running or not num_ended
            num_ended = max(0, num_ended - 1)
            expired_before.append((info.timestamp_ms or now_ms) - _retention_ms(info))
    return max(expired_before) if running else None


def _commit_info(store: Store, path: str) -> CommitInfo | None:
    """Read what a commit says of itself, None if a clean-up has removed it since the listing."""
    try:
        return read_commit_info(store, path)
    except CorruptTableError as error:
        if error.code is not ErrorCode.LOG_FILE_NOT_FOUND:
            raise
        return None


def _retention_ms(info: CommitInfo) -> int:
    parameters = info.operation_parameters
    asked = parameters.get("specifiedRetentionMillis", parameters.get("defaultRetentionMillis"))
    return int(asked or 0)


def _any_expired(latest: Snapshot, restored: FileTable, expired_before_ms: int) -> bool:
    """Tell whether a restored file is kept by no tombstone that is young enough."""
    tombstones = latest.tombstones
    young = pc.greater_equal(tombstones["deleted_ms"], expired_before_ms)
    kept = file_keys(tombstones.filter(pc.fill_null(young, fill_value=False)))
    return not pc.all(pc.is_in(file_keys(restored.rows), value_set=kept.combine_chunks())).as_py()
