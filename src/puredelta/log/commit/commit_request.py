"""What a command asks a transaction to commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from puredelta.protocol.actions.actions import Action
from puredelta.protocol.actions.operations import Operation


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
