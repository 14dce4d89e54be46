"""Validity of a set of actions, checked before anything is written.

These are the obligations of a writer that do not depend on other writers. A commit that breaks
one of them corrupts the table for every reader. Commands are expected to meet them; the checks are
the last defence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.commit.row_ids import assigns_row_ids
from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    FileActionKey,
    Metadata,
    Protocol,
    Remove,
    SetTransaction,
    Sidecar,
)
from puredelta.protocol.actions.paths import CanonicalPath
from puredelta.protocol.table.iceberg_compat import require_iceberg_files, require_iceberg_rules
from puredelta.protocol.table.table_config import TableConfig

_APPEND_ONLY = (
    "This table is configured to only allow appends. If you would like to permit updates or "
    "deletes, use 'ALTER TABLE <table_name> SET TBLPROPERTIES (delta.appendOnly=false)'."
)


def require_single_actions(actions: Iterable[Action]) -> None:
    """Refuse what a commit may hold once at most, and what it may not hold at all (X-03, X-15).

    Raises:
        InvalidRequestError: two actions set the same thing.
        ValueError: an action that a command must not commit: ``commitInfo`` is added by the
            transaction, and some actions are for checkpoints only.
    """
    domains: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for action in actions:
        match action:
            case CommitInfo() | CheckpointMetadata() | Sidecar():
                raise ValueError(f"a command cannot commit {action!r}")
            case Metadata() | Protocol():
                kinds[type(action).__name__] += 1
            case DomainMetadata():
                domains[action.domain] += 1
            case _:
                pass
    for kind, count in kinds.items():
        if count > 1:
            raise ValueError(f"cannot change the {kind.lower()} more than once in a transaction")
    if twice := [domain for domain, count in domains.items() if count > 1]:
        raise InvalidRequestError(Message.DUPLICATE_DOMAIN_METADATA, domainName=twice[0])


def distinct_transactions(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Drop repeated ``txn`` actions.

    Raises:
        ValueError: two of them give one application different versions.
    """
    versions: dict[str, int] = {}
    kept: list[Action] = []
    for action in actions:
        if isinstance(action, SetTransaction):
            known = versions.get(action.app_id)
            if known == action.version:
                continue
            if known is not None:
                raise ValueError(
                    f"two txn actions give the application {action.app_id!r} the versions {known} "
                    f"and {action.version}"
                )
            versions[action.app_id] = action.version
        kept.append(action)
    return tuple(kept)


_NAMES_OLD_FILES = frozenset({"RESTORE", "CLONE"})
"""Operations that add files of older versions or other tables, with their deletion vectors."""


def require_valid_actions(
    actions: tuple[Action, ...],
    *,
    before: TableConfig | None,
    after: TableConfig,
    operation: str | None = None,
) -> None:
    """Refuse a commit that would break the table.

    ``before`` is the configuration of the table before the commit (None for a new table),
    ``after`` the one after it. ``operation`` is the name of the operation in the history.
    """
    _require_removable(actions, before)
    _require_distinct_files(actions)
    _require_partition_values(actions, after)
    _require_domains_supported(actions, after)
    require_iceberg_rules(before, after)
    require_iceberg_files(actions, after)
    if operation not in _NAMES_OLD_FILES:
        _require_sound_vectors(actions, before, after)


def require_spoolable(partition_columns: Iterable[frozenset[str]], after: TableConfig) -> None:
    """Refuse files without an action in memory where each would have to be looked at.

    ``partition_columns`` are the columns that some of the files have partition values of.

    Raises:
        InvalidRequestError: they are not those of the table (DELTA_INVALID_PARTITIONING_SCHEMA).
        ValueError: the table numbers rows.
    """
    if assigns_row_ids(after):
        raise ValueError("rows are numbered file by file")
    expected = set(after.physical_partition_columns)
    for found in partition_columns:
        if found != expected:
            raise _wrong_partitioning(expected, found, "the files of the new table")


def require_removable(config: TableConfig) -> None:
    """Refuse a command that changes rows of an append-only table, even if no row matches (M-111).

    Raises:
        InvalidRequestError: DELTA_CANNOT_MODIFY_APPEND_ONLY.
    """
    if config.properties.append_only:
        raise InvalidRequestError(
            Message.CANNOT_MODIFY_APPEND_ONLY_OPERATION,
            append_only=_APPEND_ONLY,
            config="delta.appendOnly",
        )


def _require_removable(actions: Iterable[Action], before: TableConfig | None) -> None:
    """Refuse to remove rows of an append-only table (M-111); moving them to other files is fine."""
    if before is None or not before.properties.append_only:
        return
    removed = [a.path for a in actions if isinstance(a, Remove) and a.data_change]
    if removed:
        raise InvalidRequestError(
            Message.CANNOT_MODIFY_APPEND_ONLY_FILES,
            append_only=_APPEND_ONLY,
            count=len(removed),
            first=removed[0],
            config="delta.appendOnly",
            files=tuple(removed[:10]),
        )


def _require_distinct_files(actions: Iterable[Action]) -> None:
    """Require at most one add and one remove per path, with different deletion vectors (X-06)."""
    seen: dict[tuple[str, CanonicalPath], FileActionKey] = {}
    for action in actions:
        if not isinstance(action, Add | Remove):
            continue
        key = FileActionKey.of(action)
        kind, other = ("add", "remove") if isinstance(action, Add) else ("remove", "add")
        if (kind, key.path) in seen:
            raise _duplicate(kind, action.path, kind, action.path)
        if seen.get((other, key.path)) == key:
            raise _duplicate(kind, action.path, other, action.path)
        seen[kind, key.path] = key


def _duplicate(kind: str, path: str, other: str, other_path: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.DUPLICATE_ACTIONS_FOUND_COMMIT,
        other=other,
        actionType=kind,
        path=path,
        conflictingPath=other_path,
    )


def _require_partition_values(actions: Iterable[Action], after: TableConfig) -> None:
    """Require a value of every partition column for each added file, by physical name (X-05)."""
    expected = set(after.physical_partition_columns)
    for action in actions:
        if isinstance(action, Add | AddChangeFile) and action.partition_values.keys() != expected:
            raise _wrong_partitioning(expected, action.partition_values, action.path)


def _wrong_partitioning(
    expected: Iterable[str], found: Iterable[str], path: str
) -> InvalidRequestError:
    return InvalidRequestError(
        Message.INVALID_PARTITIONING_SCHEMA,
        neededPartitioning=sorted(expected),
        specifiedPartitioning=sorted(found),
        path=path,
    )


def _require_domains_supported(actions: Iterable[Action], after: TableConfig) -> None:
    domains = [a.domain for a in actions if isinstance(a, DomainMetadata)]
    if domains and not after.supports("domainMetadata"):
        raise InvalidRequestError(Message.DOMAIN_METADATA_NOT_SUPPORTED, domainNames=domains)


def _require_sound_vectors(
    actions: Iterable[Action], before: TableConfig | None, after: TableConfig
) -> None:
    """Require an enabled table, a row count and loose bounds for deletion vectors (M-134, X-71)."""
    carriers = [a for a in actions if isinstance(a, Add) and a.deletion_vector is not None]
    if not carriers:
        return
    known = before or after
    first = carriers[0]
    moves_rows_only = not any(carrier.data_change for carrier in carriers)
    allowed = after.properties.enable_deletion_vectors or moves_rows_only
    if not known.supports("deletionVectors") or not allowed:
        raise InvalidRequestError(Message.ADDING_DELETION_VECTORS_DISALLOWED, path=first.path)
    for carrier in carriers:
        if physical_rows(carrier) is None:
            raise InvalidRequestError(
                Message.DELETION_VECTOR_MISSING_NUM_RECORDS, path=carrier.path
            )
        if (
            carrier.data_change
            and json.loads(carrier.stats or "{}").get("tightBounds") is not False
        ):
            raise InvalidRequestError(
                Message.ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED, path=carrier.path
            )
