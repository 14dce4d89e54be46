"""A winning commit: one version that another writer committed before us, sorted by kind."""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.log.replay.commit_files import Commit
from puredelta.protocol.actions.actions import (
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    SetTransaction,
)

_IDENTITY_TAG = "delta.identity.schemaUpdate"


@dataclass(frozen=True, slots=True, kw_only=True)
class WinningCommit:
    """The actions of one version, by kind."""

    version: int
    modified_ms: int
    """When its file was written: the time of the commit unless it has an in-commit timestamp."""
    info: CommitInfo
    protocol: Protocol | None
    metadata: Metadata | None
    app_ids: frozenset[str]
    domains: tuple[DomainMetadata, ...]
    adds: tuple[Add, ...]
    removes: tuple[Remove, ...]

    @classmethod
    def of(cls, commit: Commit) -> WinningCommit:
        """Sort the actions of one commit."""
        actions = commit.actions
        return cls(
            version=commit.version,
            modified_ms=commit.modified_ms,
            info=commit.commit_info or CommitInfo(),
            protocol=next((a for a in actions if isinstance(a, Protocol)), None),
            metadata=next((a for a in actions if isinstance(a, Metadata)), None),
            app_ids=frozenset(a.app_id for a in actions if isinstance(a, SetTransaction)),
            domains=tuple(a for a in actions if isinstance(a, DomainMetadata)),
            adds=tuple(a for a in actions if isinstance(a, Add)),
            removes=tuple(a for a in actions if isinstance(a, Remove)),
        )

    @property
    def is_blind_append(self) -> bool:
        """Whether its writer says that it read nothing."""
        return self.info.is_blind_append is True

    @property
    def advances_identity_only(self) -> bool:
        """Whether its metadata changes only the high water marks of identity columns."""
        return (self.info.tags or {}).get(_IDENTITY_TAG) == "true"

    @property
    def timestamp_ms(self) -> int:
        """When it was committed."""
        in_commit = self.info.in_commit_timestamp_ms
        return self.modified_ms if in_commit is None else in_commit
