"""What a command asks a transaction to commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from puredelta.protocol.actions.actions import Action, Metadata, Protocol
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
    metrics: Mapping[str, int | str] | None = None
    is_blind_append: bool | None = None
    """Found out (no file removed, nothing read) unless it is given as False."""
    user_metadata: str | None = None
    """Filled in by ``finish`` from the settings of the command."""
    tags: Mapping[str, str] | None = None
    if_created: IfCreated = IfCreated.FAIL


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
