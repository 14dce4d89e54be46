"""What a command asks a transaction to commit, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.actions import Action, CommitInfo, Metadata, Protocol
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.table.table_config import TableConfig


class IfCreated(Enum):
    """What a commit that creates a table does when another writer has created it meanwhile."""

    FAIL = "fail"
    APPEND = "append"
    """Add the rows to the other writer's table, if its definition is the very same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """The actions of one version, and what the history says of them."""

    actions: Sequence[Action]
    operation: Operation
    metrics: Mapping[str, int | str] | None = field(default_factory=dict)
    """None leaves them out of the history."""
    always_records_metrics: bool = False
    """Also where the session wants no metrics: RESTORE, CLONE and CONVERT, as in delta-spark."""
    is_blind_append: bool | None = None
    """Found out (no file removed, nothing read) unless it is given as False."""
    user_metadata: str | None = None
    """Filled in by ``finish``, from what the session or the options of a write say."""
    tags: Mapping[str, str] | None = None
    if_created: IfCreated = IfCreated.FAIL
    new_files: SpooledFiles | None = None
    """Files beside those of the actions, of a table that this commit creates and that numbers no
    rows: so many that there is no object for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The commit is part of the table."""

    version: int
    actions: tuple[Action, ...]
    """As written, provenance first."""
    config: TableConfig
    """The table as this commit leaves it."""
    new_files: SpooledFiles | None = None
    """Files beside those of the actions."""

    @property
    def info(self) -> CommitInfo:
        """Its provenance."""
        info = self.actions[0]
        assert isinstance(info, CommitInfo)  # noqa: S101 - `build_actions` puts it first
        return info

    @property
    def timestamp_ms(self) -> int:
        """Its in-commit timestamp, else the time its writer put into ``commitInfo``."""
        in_commit = self.info.in_commit_timestamp_ms
        return (self.info.timestamp_ms or 0) if in_commit is None else in_commit


def changed_definition(
    before: TableConfig | None, after: TableConfig
) -> tuple[Metadata | Protocol, ...]:
    """Return the metadata and protocol that a table gets, where they are not as before."""
    metadata = before is None or before.metadata != after.metadata
    protocol = before is None or before.protocol != after.protocol
    return (
        *((after.metadata,) if metadata else ()),
        *((after.protocol,) if protocol else ()),
    )
