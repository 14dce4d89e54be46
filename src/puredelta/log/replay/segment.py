"""The files of ``_delta_log`` for one version (section "Delta Log Entries", X-30).

A version is made of listed files only. Files that cannot be used (parts of an unfinished
checkpoint, empty checkpoints, unknown names) are skipped. Nothing here reads a file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import assert_never

from puredelta.errors import CorruptTableError, Message, TableNotFoundError
from puredelta.protocol.actions.log_paths import (
    LOG_DIRECTORY,
    ChecksumFile,
    ClassicCheckpoint,
    CommitFile,
    CompactedFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    commit_name,
    log_path,
    parse_log_name,
    version_prefix,
)
from puredelta.store.base import Store, StoredFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """A complete checkpoint: one file, or all parts in order. Sidecars are named in the file."""

    version: int
    files: tuple[StoredFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRange:
    """A file with the actions of the versions ``low`` to ``high``; in a commit both are equal."""

    low: int
    high: int
    file: StoredFile
    commits: tuple[StoredFile, ...] = ()
    """The commit files of these versions, where ``file`` is a compaction of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogListing:
    """The files of ``_delta_log`` from some version on."""

    commits: Mapping[int, StoredFile]
    compacted: tuple[CommitRange, ...]
    checkpoints: Mapping[int, CheckpointFiles]
    """Complete checkpoints; if a version has several, the one of the newest format."""

    @property
    def earliest_version(self) -> int | None:
        """The oldest version that can be rebuilt: 0, or the version of the oldest checkpoint."""
        return 0 if 0 in self.commits else min(self.checkpoints, default=None)

    @property
    def latest_version(self) -> int | None:
        """The newest version there is."""
        return max((*self.commits, *self.checkpoints), default=None)

    def without_checkpoints(self, versions: Collection[int]) -> LogListing:
        """Return the listing without the checkpoints of some versions."""
        kept = {v: c for v, c in self.checkpoints.items() if v not in versions}
        return replace(self, checkpoints=kept)

    def newest_checkpoint(self, through: int) -> CheckpointFiles | None:
        """Return the newest complete checkpoint at or below a version."""
        version = max((v for v in self.checkpoints if v <= through), default=None)
        return None if version is None else self.checkpoints[version]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The files to replay for one version: a checkpoint, then ranges without gap or overlap.

    A segment that continues an older state has a checkpoint for information only.
    """

    version: int
    checkpoint: CheckpointFiles | None
    ranges: tuple[CommitRange, ...]
    commit: StoredFile | None
    """The commit file of ``version`` itself; None where only its checkpoint is left."""

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """The files to read: those of the checkpoint, then `commits`."""
        return (*(() if self.checkpoint is None else self.checkpoint.files), *self.commits)

    @property
    def commits(self) -> tuple[StoredFile, ...]:
        """The files of the ranges."""
        return tuple(part.file for part in self.ranges)

    @property
    def modified_ms(self) -> int:
        """When the version was written, by the times of the file system."""
        if self.commit is not None:
            return self.commit.modified_ms
        files = () if self.checkpoint is None else self.checkpoint.files
        return max((file.modified_ms for file in files), default=0)


def list_log(store: Store, *, start: int = 0) -> LogListing:
    """List the log from version ``start`` on; an absent directory gives an empty listing."""
    commits: dict[int, StoredFile] = {}
    compacted: list[CommitRange] = []
    candidates: dict[int, list[_Candidate]] = defaultdict(list)
    for file in store.list_from(LOG_DIRECTORY, version_prefix(start)):
        match parse_log_name(file.name):
            case CommitFile(version):
                commits[version] = file
            case CompactedFile(low, high):
                compacted.append(CommitRange(low=low, high=high, file=file))
            case ClassicCheckpoint(version):
                candidates[version].append(_Candidate(0, 1, 1, file))
            case MultiPartCheckpoint(version, part, parts):
                candidates[version].append(_Candidate(1, part, parts, file))
            case V2Checkpoint(version):
                candidates[version].append(_Candidate(2, 1, 1, file))
            case ChecksumFile() | None:
                pass
            case other:
                assert_never(other)
    complete = ((v, _newest_complete(v, found)) for v, found in candidates.items())
    return LogListing(
        commits=commits,
        compacted=tuple(compacted),
        checkpoints={v: checkpoint for v, checkpoint in complete if checkpoint is not None},
    )


def find_segment(listing: LogListing, root_uri: str, *, version: int | None = None) -> LogSegment:
    """Choose the files of a version, by default the newest.

    Raises:
        TableNotFoundError: no log, or no such version (DELTA_TABLE_NOT_FOUND,
            DELTA_VERSION_NOT_FOUND).
        CorruptTableError: commits are missing (DELTA_TRUNCATED_TRANSACTION_LOG,
            DELTA_VERSIONS_NOT_CONTIGUOUS).
    """
    latest = listing.latest_version
    if latest is None:
        raise table_not_found(root_uri)
    target = latest if version is None else version
    earliest = listing.earliest_version
    if earliest is None:
        require_contiguous(listing, root_uri, after=-1, through=latest)
    elif not earliest <= target <= latest:
        raise version_not_found(root_uri, target, earliest=earliest, latest=latest)
    checkpoint = listing.newest_checkpoint(target)
    after = -1 if checkpoint is None else checkpoint.version
    require_contiguous(listing, root_uri, after=after, through=target)
    return LogSegment(
        version=target,
        checkpoint=checkpoint,
        ranges=choose_ranges(listing, after=after, through=target),
        commit=listing.commits.get(target),
    )


def choose_ranges(listing: LogListing, *, after: int, through: int) -> tuple[CommitRange, ...]:
    """Cover the versions after ``after`` with as few files as a greedy choice finds.

    Every commit of the range must be listed, even if a compaction file replaces it: as in
    delta-spark, a compaction file without its commits is a damaged log.
    """
    widest: dict[int, CommitRange] = {}
    for candidate in listing.compacted:
        known = widest.get(candidate.low)
        if candidate.high <= through and (known is None or candidate.high > known.high):
            widest[candidate.low] = candidate
    chosen = []
    version = after + 1
    while version <= through:
        single = CommitRange(low=version, high=version, file=listing.commits[version])
        compaction = widest.get(version)
        chosen.append(single if compaction is None else _with_commits(compaction, listing))
        version = chosen[-1].high + 1
    return tuple(chosen)


def _with_commits(compaction: CommitRange, listing: LogListing) -> CommitRange:
    versions = range(compaction.low, compaction.high + 1)
    return replace(compaction, commits=tuple(listing.commits[v] for v in versions))


def first_gap(listing: LogListing, *, after: int, through: int) -> int | None:
    """Return the first version above ``after`` without a commit file, None if there is none."""
    return next((v for v in range(after + 1, through + 1) if v not in listing.commits), None)


def table_not_found(root_uri: str) -> TableNotFoundError:
    """Build the error for a location without a log."""
    return TableNotFoundError(
        Message.TABLE_NOT_FOUND_LOG, log_directory=LOG_DIRECTORY, path=root_uri
    )


def version_not_found(
    root_uri: str, version: int, *, earliest: int, latest: int
) -> TableNotFoundError:
    """Build the error for a version that the log does not hold (any more)."""
    return TableNotFoundError(
        Message.VERSION_NOT_FOUND_LOG,
        path=root_uri,
        version=version,
        earliest=earliest,
        latest=latest,
    )


@dataclass(frozen=True, slots=True, order=True)
class _Candidate:
    """One file of a checkpoint. Formats rank as in delta-spark."""

    rank: int
    part: int
    parts: int
    file: StoredFile


def _newest_complete(version: int, candidates: Sequence[_Candidate]) -> CheckpointFiles | None:
    groups: dict[tuple[int, int, str], list[_Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.file.size_bytes > 0:
            name = candidate.file.name if candidate.parts == 1 else ""
            groups[candidate.rank, candidate.parts, name].append(candidate)
    complete = [key for key, found in groups.items() if len(found) == key[1]]
    if not complete:
        return None
    parts = sorted(groups[max(complete)], key=lambda candidate: candidate.part)
    return CheckpointFiles(version=version, files=tuple(part.file for part in parts))


def require_contiguous(listing: LogListing, root_uri: str, *, after: int, through: int) -> None:
    """Raise delta-spark's error unless every commit above ``after`` is listed."""
    gap = first_gap(listing, after=after, through=through)
    if gap is None:
        return
    if gap == after + 1:
        raise CorruptTableError(
            Message.TRUNCATED_TRANSACTION_LOG,
            gap=log_path(commit_name(gap)),
            path=root_uri,
            version=through,
            missing=gap,
        )
    next_version = min((v for v in listing.commits if v > gap), default=through)
    raise CorruptTableError(
        Message.VERSIONS_NOT_CONTIGUOUS,
        gap=gap - 1,
        next_version=next_version,
        gap_shown=commit_name(gap),
        path=root_uri,
        version=through,
        missing=gap,
    )
