"""The deep check of a table: its whole log, then its data files; nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from puredelta.errors import DeltaError
from puredelta.inspection.damage.data_files import (
    CheckedFiles,
    check_change_files,
    check_data_files,
    check_orphans,
)
from puredelta.inspection.damage.history import History
from puredelta.inspection.damage.kinds import Damage, Damages
from puredelta.inspection.findings import Finding, Severity
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.files.file_table import file_keys
from puredelta.log.replay.checkpoint_read import read_checkpoint, read_checkpoint_hint
from puredelta.log.replay.commit_files import Commit, read_actions
from puredelta.log.replay.replay import LogState
from puredelta.log.replay.segment import CheckpointFiles, LogListing, list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, FileActionKey, Remove
from puredelta.protocol.actions.log_paths import (
    LAST_CHECKPOINT,
    LOG_DIRECTORY,
    ChecksumFile,
    log_path,
    parse_log_name,
)
from puredelta.quantities import counted, in_milliseconds
from puredelta.store.base import Store

_SHOWN = 3


def check_checkpoint(
    store: Store, checkpoint: CheckpointFiles, history: History, found: Damages
) -> None:
    """Compare a checkpoint with the commits up to its version."""
    name = f"checkpoint of version {checkpoint.version}"
    try:
        state = read_checkpoint(store, checkpoint, None).state
    except (DeltaError, OSError) as error:
        found.add(Damage.CHECKPOINT_UNREADABLE, f"{name}: {str(error).partition(chr(10))[0]}")
        return
    if not history.is_complete:
        return
    for text in _differences(state, history):
        found.add(Damage.CHECKPOINT_DIFFERS, f"{name}: {text}")


def _differences(state: LogState, history: History) -> list[str]:
    texts = []
    listed = set(file_keys(state.files.rows).to_pylist())
    active = {key.encoded for key in history.active}
    if missing := sorted(active - listed):
        texts.append(f"lacks {len(missing)} files, {_some(missing)}")
    if extra := sorted(listed - active):
        texts.append(f"has {len(extra)} files that were removed, {_some(extra)}")
    if state.metadata != history.metadata:
        texts.append("has another schema or other properties")
    if state.protocol != history.protocol:
        texts.append("has another protocol")
    for application, transaction in state.set_transactions.items():
        known = history.applications.get(application)
        if known is not None and known != transaction.version:
            texts.append(f"has version {transaction.version} of {application}, not {known}")
    known_domains = {d.domain: d for d in history.domains.values() if not d.removed}
    if dict(state.domain_metadata) != known_domains:
        texts.append("has other domain metadata")
    return texts


def _some(keys: list[str]) -> str:
    return ", ".join(key.replace("\0", " with vector ") for key in keys[:_SHOWN])


def check_hint(store: Store, listing: LogListing, found: Damages) -> None:
    """Check that the hint names a checkpoint that is there."""
    if not store.exists(log_path(LAST_CHECKPOINT)):
        return
    hint = read_checkpoint_hint(store)
    if hint is None:
        found.add(Damage.CHECKPOINT_HINT, f"{LAST_CHECKPOINT} cannot be read")
    elif hint.version not in listing.checkpoints:
        found.add(Damage.CHECKPOINT_HINT, f"version {hint.version} has no checkpoint")


def check_compactions(store: Store, listing: LogListing, found: Damages) -> None:
    """Compare compactions of the log with the commits that they replace."""
    for part in listing.compacted:
        versions = range(part.low, part.high + 1)
        if any(version not in listing.commits for version in versions):
            continue
        name = f"versions {part.low} to {part.high}"
        try:
            compacted = _last_adds(store, [part.file.path])
            committed = _last_adds(store, [listing.commits[v].path for v in versions])
        except (DeltaError, OSError) as error:
            found.add(Damage.COMPACTED_FILE, f"{name}: {str(error).partition(chr(10))[0]}")
            continue
        if compacted != committed:
            found.add(Damage.COMPACTED_FILE, f"{name}: other files are added")


def _last_adds(store: Store, paths: list[str]) -> set[FileActionKey]:
    """Return the active files after commits."""
    last: dict[FileActionKey, bool] = {}
    for path in paths:
        actions = [a for a in read_actions(store, path) if isinstance(a, Add | Remove)]
        for action in sorted(actions, key=lambda one: isinstance(one, Add)):
            last[FileActionKey.of(action)] = isinstance(action, Add)
    return {key for key, is_added in last.items() if is_added}


def checksum_files(store: Store) -> Mapping[int, str]:
    """Return the path of the checksum file of each version that has one."""
    found = {}
    for file in store.list_from(LOG_DIRECTORY):
        name = parse_log_name(file.name)
        if isinstance(name, ChecksumFile):
            found[name.version] = file.path
    return found


def check_checksum(store: Store, path: str, version: int, history: History, found: Damages) -> None:
    """Compare the totals of a checksum file with the version."""
    try:
        said = json.loads(store.read(path))
    except (OSError, ValueError):
        said = None
    if not isinstance(said, dict):
        found.add(Damage.CHECKSUM_FILE, f"version {version}: cannot be read")
        return
    if not history.is_complete:
        return
    totals = {
        "numFiles": len(history.active),
        "tableSizeBytes": sum(add.size_bytes for add in history.active.values()),
    }
    for name, total in totals.items():
        if name in said and said[name] != total:
            found.add(Damage.CHECKSUM_FILE, f"version {version}: {name} {said[name]}, not {total}")


_COMMITS_BETWEEN_NOTES = 1_000


def deep_findings(
    log: TableLog,
    *,
    clock: Clock = wall_clock,
    progress: Callable[[str], None] = lambda _: None,
    resume: Path | None = None,
) -> Iterator[Finding]:
    """Yield a finding for each kind of damage, with evidence, or one that says there is none.

    Reads every commit and checkpoint that is left, and the footers, deletion vectors and change
    files of the data files. ``progress`` is called with a line of text from time to time.
    ``resume`` is a file that remembers which data files are checked, until all of them are: a check
    that is interrupted goes on from there, with the files of the version that it began with.

    Raises:
        InvalidRequestError: ``resume`` is a file of something else.

    Examples:
        >>> for finding in deep_findings(TableLog.open("/data/events")):  # doctest: +SKIP
        ...     print(finding.check, finding.evidence)
    """
    found = Damages()
    listing = list_log(log.store)
    history = _read_history(log, listing, found, progress)
    check_hint(log.store, listing, found)
    check_compactions(log.store, listing, found)
    snapshot = _version(log)
    if snapshot is not None:
        now_ms = clock()
        checked = CheckedFiles(resume, snapshot)
        begun = snapshot if checked.version == snapshot.version else _version(log, checked.version)
        if begun is None:  # its commits are cleaned up
            checked.forget()
            checked, begun = CheckedFiles(resume, snapshot), snapshot
        check_data_files(begun, log.store, checked, progress)
        found.include(checked.found)
        retention = snapshot.config.properties.deleted_file_retention
        kept_since_ms = now_ms - in_milliseconds(retention)
        progress(f"{counted(len(history.changes), 'commit')} with change files")
        check_change_files(history.changes, log.store, found, kept_since_ms=kept_since_ms)
        oldest_ms = min((file.modified_ms for file in listing.commits.values()), default=now_ms)
        since_ms = 0 if 0 in listing.commits else oldest_ms
        check_orphans(
            snapshot, log.store, found, named=history.named, written_ms=(since_ms, now_ms)
        )
        checked.forget()
    if found.counts:
        yield from found.findings()
        return
    yield Finding(
        check="damage",
        severity=Severity.OK,
        message=f"{counted(len(listing.commits), 'commit')} and "
        f"{counted(0 if snapshot is None else len(snapshot.files), 'data file')} agree.",
    )


def _version(log: TableLog, version: int | None = None) -> Snapshot | None:
    """Return a version, the newest if none is given; None if it cannot be read."""
    try:
        return log.snapshot(version=version)
    except DeltaError:
        return None


def _read_history(
    log: TableLog, listing: LogListing, found: Damages, progress: Callable[[str], None]
) -> History:
    history = History(found=found)
    checksums = checksum_files(log.store)
    first = _begin(log, listing, history)
    expected = min(listing.commits, default=0)
    for count, (version, file) in enumerate(sorted(listing.commits.items()), start=1):
        for missing in range(expected, version):
            found.add(Damage.COMMIT_MISSING, f"version {missing}")
            history.is_complete = history.is_complete and missing <= first
        expected = version + 1
        try:
            actions = tuple(read_actions(log.store, file.path))
        except (DeltaError, OSError) as error:
            found.add(Damage.COMMIT_UNREADABLE, f"version {version}: {_line(error)}")
            history.is_complete = history.is_complete and version <= first
            continue
        if not actions:
            found.add(Damage.COMMIT_UNREADABLE, f"version {version}: has no action")
            history.is_complete = history.is_complete and version <= first
            continue
        commit = Commit(version=version, modified_ms=file.modified_ms, actions=actions)
        if version <= first:
            history.see_older(commit)
        else:
            history.see(commit)
        if version in listing.checkpoints and version > first:
            check_checkpoint(log.store, listing.checkpoints[version], history, found)
        if version in checksums and version >= first:
            check_checksum(log.store, checksums[version], version, history, found)
        if count % _COMMITS_BETWEEN_NOTES == 0:
            progress(f"{count:,} of {counted(len(listing.commits), 'commit')} are checked")
    history.finish()
    return history


def _begin(log: TableLog, listing: LogListing, history: History) -> int:
    """Start the history at the oldest version that is known; return it, -1 for the creation."""
    if 0 in listing.commits or not listing.checkpoints:
        return -1
    version = min(listing.checkpoints)
    try:
        history.begin(log.snapshot(version=version))
    except DeltaError as error:
        history.found.add(Damage.CHECKPOINT_UNREADABLE, f"version {version}: {_line(error)}")
        history.is_complete = False
    return version


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
