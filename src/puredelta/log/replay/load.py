"""Listing, segment, replay: how a `Snapshot` comes about, from scratch or from an older one.

A listing is not atomic and log cleanup deletes files that were just listed, so a log that
looks damaged is listed again before anyone is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from puredelta.errors import CorruptTableError, DeltaError, ErrorCode
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.checkpoint_hint import read_checkpoint_hint
from puredelta.log.replay.checkpoint_read import read_checkpoint
from puredelta.log.replay.commit_columns import parse_columns
from puredelta.log.replay.commit_files import parse_actions, read_commit_info, read_log_file
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
from puredelta.protocol.actions.actions import Action, Add, Metadata, Protocol
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store, StoredFile

LISTINGS_MAX = 3
"""From the hint on, in full, and in full once more."""

_MAY_BE_A_RACE = frozenset(
    {
        ErrorCode.TRUNCATED_TRANSACTION_LOG,
        ErrorCode.VERSIONS_NOT_CONTIGUOUS,
        ErrorCode.LOG_FILE_NOT_FOUND,
    }
)
_MAY_BE_THE_HINT = _MAY_BE_A_RACE | {ErrorCode.TABLE_NOT_FOUND, ErrorCode.VERSION_NOT_FOUND}


def load_snapshot(store: Store, *, version: int | None = None) -> Snapshot:
    """Load a version, the newest unless told, from the files of the log alone.

    Raises:
        TableNotFoundError: no log, or no such version.
        CorruptTableError: the log is damaged (see `find_segment`, `read_actions`,
            `read_checkpoint`), or has no protocol or metadata (DELTA_STATE_RECOVER_ERROR).
        UnsupportedError: the table needs reader features this library lacks (X-51).
    """
    hint = read_checkpoint_hint(store)
    start = hint if hint is not None and (version is None or hint <= version) else 0
    for remaining in reversed(range(LISTINGS_MAX)):
        try:
            return _load_listed(store, list_log(store, start=start), version)
        except DeltaError as error:
            recoverable = _MAY_BE_THE_HINT if start else _MAY_BE_A_RACE
            if remaining == 0 or error.code not in recoverable:
                raise
        start = 0
    raise AssertionError("unreachable: the last listing returns or raises")


def advance_snapshot(
    store: Store, known: Snapshot, listing: LogListing, *, through: int
) -> Snapshot | None:
    """Apply the commits after a known snapshot, up to a listed version.

    ``listing`` starts at the known version. None where that is not enough: the table was
    made anew since, or commits between are missing; `load_snapshot` then decides.
    """
    recreated = known.commit_file is None or listing.commits.get(known.version) != known.commit_file
    if recreated or first_gap(listing, after=known.version, through=through) is not None:
        return None
    checkpoint = listing.newest_checkpoint(through)
    checkpoint_version = known.last_checkpoint_version if checkpoint is None else checkpoint.version
    if through == known.version:
        if checkpoint_version == known.last_checkpoint_version:
            return known
        return replace(known, last_checkpoint_version=checkpoint_version)
    ranges = choose_ranges(listing, after=known.version, through=through)
    state = LogState(
        protocol=known.protocol,
        metadata=known.metadata,
        files=known.files,
        tombstones=known.tombstones,
        set_transactions=known.set_transactions,
        domain_metadata=known.domain_metadata,
    )
    return _snapshot(
        store,
        replay(state, _read_ranges(store, ranges)),
        version=through,
        commit_file=listing.commits[through],
        modified_ms=listing.commits[through].modified_ms,
        last_checkpoint_version=checkpoint_version,
        known_config=known.config,
    )


def first_snapshot(
    root_uri: str, config: TableConfig, actions: Sequence[Action], *, timestamp_ms: int
) -> Snapshot:
    """Return version 0 as its writer knows it, from the actions of its commit alone.

    ``config`` is what those actions make of the table, ``timestamp_ms`` when it was committed.
    No file is named twice, as in every commit of ours (X-06).
    """
    adds = FileTable.of(action for action in actions if isinstance(action, Add))
    others = (action for action in actions if not isinstance(action, Add))
    state = replay(EMPTY_STATE, [*others, adds])
    return Snapshot(
        root_uri=root_uri,
        version=0,
        timestamp_ms=timestamp_ms,
        in_commit_timestamp_ms=timestamp_ms if config.is_active(IN_COMMIT_TIMESTAMP) else None,
        config=config,
        files=state.files,
        tombstones=state.tombstones,
        set_transactions=state.set_transactions,
        domain_metadata=state.domain_metadata,
        commit_file=None,
        last_checkpoint_version=None,
    )


def _load_listed(
    store: Store, listing: LogListing, version: int | None, unreadable: frozenset[int] = frozenset()
) -> Snapshot:
    segment = find_segment(listing, store.root_uri, version=version)
    try:
        base = (
            EMPTY_STATE
            if segment.checkpoint is None
            else read_checkpoint(store, segment.checkpoint)
        )
    except CorruptTableError as error:
        return _load_around(store, segment, error, unreadable)
    return _snapshot(
        store,
        replay(base, _read_ranges(store, segment.ranges)),
        version=segment.version,
        commit_file=segment.commit,
        modified_ms=segment.modified_ms,
        last_checkpoint_version=None if segment.checkpoint is None else segment.checkpoint.version,
        known_config=None,
    )


def _load_around(
    store: Store, segment: LogSegment, error: CorruptTableError, unreadable: frozenset[int]
) -> Snapshot:
    """Rebuild the version without an unreadable checkpoint, where older files still allow it."""
    if segment.checkpoint is None or error.code is not ErrorCode.LOG_CORRUPTED:
        raise error
    avoided = unreadable | {segment.checkpoint.version}
    listing = list_log(store).without_checkpoints(avoided)
    try:
        return _load_listed(store, listing, segment.version, avoided)
    except DeltaError:
        raise error from None


def _read_ranges(store: Store, ranges: tuple[CommitRange, ...]) -> Iterator[Action | FileTable]:
    for part in ranges:
        content = read_log_file(store, part.file.path)
        columns = parse_columns(content)
        if columns is None:
            yield from list(parse_actions(content, f"{store.root_uri}/{part.file.path}"))
        else:
            yield from columns.others
            yield columns.adds


def _snapshot(
    store: Store,
    state: LogState,
    *,
    version: int,
    commit_file: StoredFile | None,
    modified_ms: int,
    last_checkpoint_version: int | None,
    known_config: TableConfig | None,
) -> Snapshot:
    config = _config(store, state, version, known_config)
    in_commit_ms = None
    if config.is_active(IN_COMMIT_TIMESTAMP) and commit_file is not None:
        info = read_commit_info(store, commit_file.path)
        in_commit_ms = None if info is None else info.in_commit_timestamp_ms
    return Snapshot(
        root_uri=store.root_uri,
        version=version,
        timestamp_ms=modified_ms if in_commit_ms is None else in_commit_ms,
        in_commit_timestamp_ms=in_commit_ms,
        config=config,
        files=state.files,
        tombstones=state.tombstones,
        set_transactions=state.set_transactions,
        domain_metadata=state.domain_metadata,
        commit_file=commit_file,
        last_checkpoint_version=last_checkpoint_version,
    )


def _config(store: Store, state: LogState, version: int, known: TableConfig | None) -> TableConfig:
    """Validate protocol and metadata together, unless both are the known ones."""
    protocol, metadata = _require_recovered(store, state, version)
    if known is not None and protocol is known.protocol and metadata is known.metadata:
        return known
    return TableConfig.of(protocol, metadata)


def _require_recovered(store: Store, state: LogState, version: int) -> tuple[Protocol, Metadata]:
    if state.protocol is None:
        raise _not_recovered(store, "protocol", version)
    if state.metadata is None:
        raise _not_recovered(store, "metadata", version)
    return state.protocol, state.metadata


def _not_recovered(store: Store, what: str, version: int) -> CorruptTableError:
    return CorruptTableError(
        f"The {what} of the Delta table {store.root_uri} could not be recovered while "
        f"reconstructing version {version}: no file of its log holds one. Did you manually "
        "delete files in the _delta_log directory?",
        code=ErrorCode.STATE_RECOVER_ERROR,
        operation=what,
        version=version,
        path=store.root_uri,
    )
