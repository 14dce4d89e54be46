"""Isolation levels: which added files of winning commits matter (X-28)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from puredelta.log.commit.row_ids import ROW_TRACKING_DOMAIN
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    DomainMetadata,
    Metadata,
    Remove,
)

ISOLATION_LEVEL = "delta.isolationLevel"


class IsolationLevel(Enum):
    """How far concurrent commits may differ from some serial order; values as in ``commitInfo``."""

    SERIALIZABLE = "Serializable"
    """Every added file is checked. The default, and the only level users of delta-spark can set."""
    WRITE_SERIALIZABLE = "WriteSerializable"
    """Blind appends of other writers are not checked. Tables of other products may ask for it."""
    SNAPSHOT = "SnapshotIsolation"
    """No added file is checked: for commits that change no data, such as a compaction."""


def isolation_level(actions: Iterable[Action], metadata: Metadata | None) -> IsolationLevel:
    """Choose the level for a commit of ``actions`` to a table with this metadata.

    Rows of other writers cannot affect a commit that only moves rows between files, or has no
    action at all. With any other kind of action (metadata, an application version) the level is
    that of the table, as in delta-spark.
    """
    changes_data = False
    for action in actions:
        match action:
            case Add() | Remove():
                changes_data = changes_data or action.data_change
            case AddChangeFile():
                pass
            case DomainMetadata(domain=domain) if domain == ROW_TRACKING_DOMAIN:
                pass
            case _:
                return _level_of_table(metadata)
    level = _level_of_table(metadata)
    if level is IsolationLevel.SERIALIZABLE and not changes_data:
        return IsolationLevel.SNAPSHOT
    return level


def _level_of_table(metadata: Metadata | None) -> IsolationLevel:
    wanted = metadata.configuration.get(ISOLATION_LEVEL) if metadata is not None else None
    if wanted == IsolationLevel.WRITE_SERIALIZABLE.value:
        return IsolationLevel.WRITE_SERIALIZABLE
    return IsolationLevel.SERIALIZABLE
