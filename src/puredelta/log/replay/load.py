"""Loading of a `Snapshot`: the files of a version are listed, chosen and replayed.

A listing is not atomic, and a clean-up of the log may delete files that were just listed. So a log
that looks damaged is listed again before an error is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from puredelta.errors import CorruptTableError, DeltaError, ErrorCode, Message
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.action_columns import parse_commit
from puredelta.log.replay.checkpoint_read import (
    CheckpointHint,
    read_checkpoint,
    read_checkpoint_hint,
)
from puredelta.log.replay.commit_files import read_commit_info, read_log_file
from puredelta.log.replay.history import IN_COMMIT_TIMESTAMP
from puredelta.log.replay.replay import EMPTY_STATE, LogState, replay
from puredelta.log.replay.segment import (
    CommitRange,
    LogListing,
    LogSegment,
    choose_ranges,
    find_segment,
    first_gap,
    list_log,
)
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Action, Add, FileActionKey, Remove
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store

LISTINGS_MAX = 3
"""First from the hint on, then in full, then in full once more."""

_MIGHT_BE_A_RACE = frozenset(
    {
        ErrorCode.TRUNCATED_TRANSACTION_LOG,
        ErrorCode.VERSIONS_NOT_CONTIGUOUS,
        ErrorCode.LOG_FILE_NOT_FOUND,
    }
)
_MIGHT_BE_THE_HINT = _MIGHT_BE_A_RACE | {ErrorCode.TABLE_NOT_FOUND, ErrorCode.VERSION_NOT_FOUND}


def load_snapshot(store: Store, *, version: int | None = None) -> Snapshot:
    """Load a version, by default the newest, from the files of the log.

    Raises:
        TableNotFoundError: no log, or no such version.
        CorruptTableError: the log is damaged (see `find_segment`, `read_actions`,
            `read_checkpoint`), or has no protocol or metadata (DELTA_STATE_RECOVER_ERROR).
        UnsupportedError: the table needs reader features that this library lacks (X-51).
    """
    hint = read_checkpoint_hint(store)
    start = 0 if hint is None or (version is not None and hint.version > version) else hint.version
    for remaining in reversed(range(LISTINGS_MAX)):
        try:
            return _load_listed(store, list_log(store, start=start), version, hint)
        except DeltaError as error:
            recoverable = _MIGHT_BE_THE_HINT if start else _MIGHT_BE_A_RACE
            if remaining == 0 or error.code not in recoverable:
                raise
        start = 0
    raise AssertionError("unreachable: the last listing returns or raises")


def advance_snapshot(
    store: Store, known: Snapshot, listing: LogListing, *, through: int
) -> Snapshot | None:
    """Apply the commits after a known snapshot, up to a listed version.

    ``listing`` starts at the known version. Returns None if that is not enough: the table was
    recreated, or commits in between are missing. Then `load_snapshot` decides.
    """
    recreated = known.commit_file is None or listing.commits.get(known.version) != known.commit_file
    if recreated or first_gap(listing, after=known.version, through=through) is not None:
        return None
    segment = LogSegment(
        version=through,
        checkpoint=listing.newest_checkpoint(through),
        ranges=choose_ranges(listing, after=known.version, through=through),
        commit=listing.commits[through],
    )
    if through == known.version:
        seen = _last_checkpoint_version(segment, known)
        unchanged = seen == known.last_checkpoint_version
        return known if unchanged else replace(known, last_checkpoint_version=seen)
    return _snapshot(store.read_ahead(segment.commits), segment, base=known.state, known=known)


def first_snapshot(
    store: Store, config: TableConfig, actions: Sequence[Action], *, timestamp_ms: int
) -> Snapshot:
    """Return version 0 from the actions of its commit, without reading the log.

    ``config`` is the configuration that the actions set, ``timestamp_ms`` the time of the commit.
    No file may be named twice, which commits of this library guarantee (X-06).
    """
    adds = FileTable.of(action for action in actions if isinstance(action, Add))
    others = (action for action in actions if not isinstance(action, Add))
    return Snapshot(
        root_uri=store.root_uri,
        version=0,
        timestamp_ms=timestamp_ms,
        in_commit_timestamp_ms=timestamp_ms if config.is_active(IN_COMMIT_TIMESTAMP) else None,
        config=config,
        state=replay(EMPTY_STATE, [*others, adds]),
        commit_file=None,
        last_checkpoint_version=None,
        open_at=store.at,
    )


def _load_listed(
    store: Store,
    listing: LogListing,
    version: int | None,
    hint: CheckpointHint | None,
    unreadable: frozenset[int] = frozenset(),
) -> Snapshot:
    segment = find_segment(listing, store.root_uri, version=version)
    store = store.read_ahead(segment.files)
    if segment.checkpoint is None:
        return _snapshot(store, segment, base=EMPTY_STATE, known=None)
    base: LogState | None = None
    try:
        found = read_checkpoint(store, segment.checkpoint, hint)
        if not found.misses_actions:
            return _snapshot(store, segment, base=found.state, known=None)
        # The hint may be that of another checkpoint of this version, so this one still counts.
        base, error = found.state, None
    except CorruptTableError as damage:
        if damage.code is not ErrorCode.LOG_CORRUPTED:
            raise
        error = damage
    avoided = unreadable | {segment.checkpoint.version}
    older = list_log(store).without_checkpoints(avoided)
    try:
        return _load_listed(store, older, segment.version, hint, avoided)
    except DeltaError:
        if base is not None:
            return _snapshot(store, segment, base=base, known=None)
        assert error is not None  # noqa: S101 - one of both is set
        raise error from None


def _read_ranges(store: Store, ranges: tuple[CommitRange, ...]) -> Iterator[Action | FileTable]:
    for part in ranges:
        compacted = _read_compacted(store, part.file.path) if part.commits else None
        if compacted is not None:
            yield from compacted
            continue
        for file in part.commits or (part.file,):
            yield from _read_commit(store, file.path)


def _read_commit(store: Store, path: str) -> Iterator[Action | FileTable]:
    return parse_commit(read_log_file(store, path), f"{store.root_uri}/{path}")


def _read_compacted(store: Store, path: str) -> list[Action | FileTable] | None:
    """Read a compaction file; None if only the commits that it replaces can be believed.

    Some writers put every action of the commits into it. Whether a file that is both added and
    removed is in the table then depends on an order that the protocol does not promise.
    """
    try:
        actions = list(_read_commit(store, path))
    except CorruptTableError:
        return None
    keys = [FileActionKey.of(action) for action in actions if isinstance(action, Add | Remove)]
    return actions if actions and len(keys) == len(set(keys)) else None


def _snapshot(
    store: Store, segment: LogSegment, *, base: LogState, known: Snapshot | None
) -> Snapshot:
    """Replay the commits of a segment on a state: that of its checkpoint, or of ``known``."""
    state = replay(base, _read_ranges(store, segment.ranges))
    config = _config(store, state, segment.version, known)
    in_commit_ms = None
    if config.is_active(IN_COMMIT_TIMESTAMP) and segment.commit is not None:
        info = read_commit_info(store, segment.commit.path)
        in_commit_ms = None if info is None else info.in_commit_timestamp_ms
    return Snapshot(
        root_uri=store.root_uri,
        version=segment.version,
        timestamp_ms=segment.modified_ms if in_commit_ms is None else in_commit_ms,
        in_commit_timestamp_ms=in_commit_ms,
        config=config,
        state=state,
        commit_file=segment.commit,
        last_checkpoint_version=_last_checkpoint_version(segment, known),
        open_at=store.at,
    )


def _last_checkpoint_version(segment: LogSegment, known: Snapshot | None) -> int | None:
    if segment.checkpoint is not None:
        return segment.checkpoint.version
    return None if known is None else known.last_checkpoint_version


def _config(store: Store, state: LogState, version: int, known: Snapshot | None) -> TableConfig:
    """Validate protocol and metadata together; those of ``known`` are valid already."""
    if state.protocol is None:
        raise _not_recovered(store, "protocol", version)
    if state.metadata is None:
        raise _not_recovered(store, "metadata", version)
    if known is not None and (state.protocol, state.metadata) == (known.protocol, known.metadata):
        return known.config
    return TableConfig.of(state.protocol, state.metadata)


def _not_recovered(store: Store, what: str, version: int) -> CorruptTableError:
    return CorruptTableError(
        Message.STATE_RECOVER_ERROR_LOG, operation=what, version=version, path=store.root_uri
    )
