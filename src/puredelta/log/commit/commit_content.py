"""The actions of one commit file: a staged commit bound to a version.

A staged commit is what a command wants to commit. It is never edited: each attempt builds the
content from the staged commit and the base, which is the table as the attempt will find it. So a
commit that lost three races reads as if it had been prepared last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from puredelta.errors import CorruptTableError, InvalidRequestError, Message
from puredelta.log.commit.conflicts import IsolationLevel, OurCommit, WinningCommit
from puredelta.log.commit.row_ids import (
    NO_ROW_ID,
    PRESERVED_TAG,
    RowIds,
    assign_row_ids,
    assigns_row_ids,
    high_water_mark,
)
from puredelta.log.commit.row_places import MovedFile
from puredelta.log.files.deletion_vectors import DeletionVectorUpdate
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import Action, Add, CommitInfo, Metadata, Protocol, Remove
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path
from puredelta.protocol.table.table_config import TableConfig

NO_VERSION = -1

_SHOWN = 60
_ICT_VERSION = "delta.inCommitTimestampEnablementVersion"
_ICT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCommit:
    """The content that a command wants to commit, independent of the version."""

    info: CommitInfo
    """Provenance, complete but for what depends on the version."""
    actions: tuple[Action, ...]
    """Everything else: no provenance, at most one metadata and one protocol."""
    isolation: IsolationLevel
    is_blind_append: bool
    new_files: SpooledFiles | None = None
    """Files beside those of the actions, of a table that is created."""
    unions: tuple[DeletionVectorUpdate, ...] = ()
    """Files whose rows a winning commit and this one delete: their vectors are not written yet."""
    moved: Mapping[CanonicalPath, MovedFile] = field(default_factory=dict)
    """Files whose rows a compaction moves to known places, by path."""
    read_later: tuple[Add, ...] = ()
    """Files into which winning commits have moved rows that were read."""

    @property
    def metadata(self) -> Metadata | None:
        """The metadata it sets."""
        return next((a for a in self.actions if isinstance(a, Metadata)), None)

    @property
    def protocol(self) -> Protocol | None:
        """The protocol it sets."""
        return next((a for a in self.actions if isinstance(a, Protocol)), None)

    def without_table_definition(self) -> StagedCommit:
        """Drop protocol and metadata: the rest is an append to a table that is there."""
        kept = tuple(a for a in self.actions if not isinstance(a, Metadata | Protocol))
        return replace(self, actions=kept)

    def for_conflicts(self) -> OurCommit:
        """Show what conflict detection looks at."""
        return OurCommit(
            actions=self.actions,
            isolation=self.isolation,
            is_blind_append=self.is_blind_append,
            operation=self.info.operation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBase:
    """The table as the next commit will find it."""

    version: int
    """The newest version known; -1 where there is no table yet."""
    config: TableConfig | None
    """None where there is no table yet."""
    timestamp_ms: int
    """In-commit timestamp of ``version``, else when its file was written."""
    highest_row_id: int = NO_ROW_ID
    recommitted: Mapping[CanonicalPath, RowIds] = field(default_factory=dict)
    """Row ids that winning commits gave to files of the table, by canonical path."""
    tracking_switched_on: bool = False
    """Whether a winning commit enabled row tracking after the files were prepared without it."""

    @property
    def table(self) -> TableConfig:
        """The configuration, where there is a table."""
        if self.config is None:
            raise ValueError("there is no table yet")
        return self.config

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> CommitBase:
        """Start from what the transaction read."""
        if snapshot is None:
            return cls(version=NO_VERSION, config=None, timestamp_ms=0)
        in_commit = snapshot.in_commit_timestamp_ms
        return cls(
            version=snapshot.version,
            config=snapshot.config,
            timestamp_ms=snapshot.timestamp_ms if in_commit is None else in_commit,
            highest_row_id=high_water_mark(snapshot.domain_metadata.values()),
        )

    def after(self, winner: WinningCommit) -> CommitBase:
        """Move on to the version of a winning commit, adopting its protocol and metadata.

        Raises:
            UnsupportedError: this library cannot read the table any more.
            CorruptTableError: the winning commit created the table without protocol or metadata
                (DELTA_STATE_RECOVER_ERROR).
        """
        config = next_config(self.config, winner.protocol, winner.metadata)
        if config is None:
            raise _not_created(winner)
        tracked = self.config is not None and self.config.properties.enable_row_tracking
        ids = {
            canonical_path(add.path): RowIds(
                base_row_id=add.base_row_id,
                default_row_commit_version=add.default_row_commit_version,
            )
            for add in winner.adds
            if not add.data_change and add.base_row_id is not None
        }
        return CommitBase(
            version=winner.version,
            config=config,
            timestamp_ms=winner.timestamp_ms,
            highest_row_id=max(self.highest_row_id, high_water_mark(winner.domains)),
            recommitted={**self.recommitted, **ids},
            tracking_switched_on=self.tracking_switched_on
            or (not tracked and config.properties.enable_row_tracking),
        )


def next_config(
    config: TableConfig | None, protocol: Protocol | None, metadata: Metadata | None
) -> TableConfig | None:
    """Return the table after a commit that sets these; None where it would lack one of them."""
    if config is not None:
        if protocol is None and metadata is None:
            return config
        protocol = protocol or config.protocol
        metadata = metadata or config.metadata
    if protocol is None or metadata is None:
        return None
    return TableConfig.of(protocol, metadata)


def build_actions(
    staged: StagedCommit, base: CommitBase, config: TableConfig
) -> tuple[Action, ...]:
    """Bind a commit to the version after its base: commitInfo, metaData, protocol, the rest (X-03).

    What depends on the version is given out here: in-commit timestamps (X-11), row ids and
    row commit versions (X-14). ``config`` is the table as the commit leaves it.
    """
    version = base.version + 1
    info, metadata = staged.info, staged.metadata
    if config.properties.in_commit_timestamps:
        timestamp_ms = max(info.timestamp_ms or 0, base.timestamp_ms + 1)
        info = replace(info, in_commit_timestamp_ms=timestamp_ms)
        if metadata is not None and _switches_timestamps_on(base):
            metadata = _with_enablement(metadata, version, timestamp_ms)
    rest = staged.without_table_definition().actions
    if assigns_row_ids(config):
        rest = assign_row_ids(
            rest, version=version, highest=base.highest_row_id, recommitted=base.recommitted
        )
        if config.properties.enable_row_tracking:
            info = _with_preserved_tag(info, staged, base)
    head = (info, metadata, staged.protocol)
    return (*(action for action in head if action is not None), *rest)


def encode_commit(actions: tuple[Action, ...]) -> bytes:
    """Write the content of a commit file: one action per line (X-01)."""
    text = "".join(f"{encode_action(action)}\n" for action in actions)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        shown = text[max(0, error.start - _SHOWN) : error.end]
        raise InvalidRequestError(Message.INVALID_ARGUMENT_COMMIT_TEXT, shown=shown) from error


def _not_created(winner: WinningCommit) -> CorruptTableError:
    missing = "protocol" if winner.protocol is None else "metadata"
    return CorruptTableError(
        Message.STATE_RECOVER_ERROR_NO_METADATA,
        operation_or_commit=winner.info.operation or "commit",
        operation=missing,
        version=winner.version,
    )


def _switches_timestamps_on(base: CommitBase) -> bool:
    return base.config is not None and not base.config.properties.in_commit_timestamps


def _with_enablement(metadata: Metadata, version: int, timestamp_ms: int) -> Metadata:
    """Record since when commits carry their own time; a table born with it needs no record."""
    return replace(
        metadata,
        configuration={
            **metadata.configuration,
            _ICT_VERSION: str(version),
            _ICT_TIMESTAMP: str(timestamp_ms),
        },
    )


def _with_preserved_tag(info: CommitInfo, staged: StagedCommit, base: CommitBase) -> CommitInfo:
    """Say whether rows kept their ids: a command that moved rows says so itself, or they did not.

    A commit that only adds files, or only removes some, has moved none.
    """
    tags = dict(info.tags or {})
    if base.tracking_switched_on:
        tags[PRESERVED_TAG] = "false"
    elif PRESERVED_TAG not in tags:
        kinds = {type(action) for action in staged.actions}
        moved = {Add, Remove} <= kinds
        tags[PRESERVED_TAG] = "false" if moved else "true"
    return replace(info, tags=tags)
