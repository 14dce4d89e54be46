"""The one place where a conflict becomes an exception.

Class and code are those of delta-spark. The text keeps its words and adds what a person needs
next: which version won, which version this operation had read, where and in which files the
conflict lies, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    ConflictError,
    ErrorCode,
    Message,
    MetadataChangedException,
    ProtocolChangedException,
)
from puredelta.log.commit.conflicts import Conflict, ConflictKind, WinningCommit

FILES_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class _Wording:
    """The error report for conflicts of one kind."""

    error: type[ConflictError]
    code: ErrorCode
    text: str
    """With the names that `conflict_error` fills in."""
    listed_as: str | None = None
    """The name under which the error lists what exactly changed."""


_DETECTED = "Transaction conflict detected: a concurrent {operation} "
_WORDINGS: Mapping[ConflictKind, _Wording] = {
    ConflictKind.PROTOCOL_CHANGED: _Wording(
        ProtocolChangedException,
        ErrorCode.PROTOCOL_CHANGED,
        "The protocol version of the Delta table {table} has been changed by a concurrent update: "
        "a concurrent {operation} committed version {version}, and {changed}.",
    ),
    ConflictKind.METADATA_CHANGED: _Wording(
        MetadataChangedException,
        ErrorCode.METADATA_CHANGED,
        "The metadata of the Delta table {table} has been changed by a concurrent update: "
        "a concurrent {operation} committed version {version}, and {changed}.",
    ),
    ConflictKind.DOMAIN_CHANGED: _Wording(
        ConcurrentTransactionException,
        ErrorCode.CONFLICTING_DOMAIN_METADATA,
        "A conflicting metadata domain {changed} is added to {on_table} by a concurrent "
        "{operation}, and this operation writes it, too.",
        listed_as="domains",
    ),
    ConflictKind.TRANSACTION_CHANGED: _Wording(
        ConcurrentTransactionException,
        ErrorCode.CONCURRENT_TRANSACTION,
        "The application transaction {changed} was advanced in {on_table} by a concurrent "
        "{operation} while this operation depended on it. This happens when several instances "
        "of one application (one streaming query) write at the same time.",
        listed_as="app_ids",
    ),
    ConflictKind.APPENDED: _Wording(
        ConcurrentAppendException,
        ErrorCode.CONCURRENT_APPEND,
        _DETECTED + "added data to {on_table}. The concurrent operation modified data{where} that "
        "should have been read by this operation{which}.",
    ),
    ConflictKind.DELETED_WHAT_WE_READ: _Wording(
        ConcurrentDeleteReadException,
        ErrorCode.CONCURRENT_DELETE_READ,
        _DETECTED + "deleted data from {on_table} that this transaction read. The concurrent "
        "operation deleted data{where} that was read by this operation{which}.",
    ),
    ConflictKind.DELETED_WHAT_WE_DELETE: _Wording(
        ConcurrentDeleteDeleteException,
        ErrorCode.CONCURRENT_DELETE_DELETE,
        _DETECTED + "deleted data from {on_table} that this transaction attempted to delete. The "
        "concurrent operation deleted data{where} that was read by this operation{which}.",
    ),
}


def conflict_error(
    conflicts: tuple[Conflict, ...], winner: WinningCommit, *, table: str, read_version: int
) -> ConflictError:
    """Build the exception for the conflicts of one rule with one winning commit.

    ``table`` is how messages name the table, ``read_version`` the version that the commit in
    question is based on.
    """
    first = conflicts[0]
    wording = _WORDINGS[first.kind]
    operation = winner.info.operation or "unknown operation"
    changed = tuple(conflict.detail for conflict in conflicts)
    message = wording.text.format(
        operation=operation,
        table=table,
        on_table=f"table {table} (committed at version {winner.version})",
        version=winner.version,
        changed=", ".join(changed),
        where=_where(first),
        which=_which(first),
    )
    details: dict[str, Any] = {
        "operation": operation,
        "tableName": table,
        "version": winner.version,
        "readVersion": read_version,
        "winningTxnId": winner.info.txn_id,
    }
    if first.files:
        details["files"] = first.files
    if first.partition is not None:
        details["partitionValues"] = first.partition
    if wording.listed_as is not None:
        details[wording.listed_as] = changed
    return wording.error(
        f"{message} This operation had read version {read_version}; nothing was committed. Please "
        f"run it again: it will see version {winner.version}.",
        code=wording.code,
        **details,
    )


def creation_conflict(winner: WinningCommit, *, table: str, reason: str) -> ConflictError:
    """Build the exception for a table that another writer created first (C-59)."""
    operation = winner.info.operation or "unknown operation"
    return ConcurrentWriteException(
        Message.CONCURRENT_WRITE_CREATION_CONFLICT,
        reason=reason,
        operation=operation,
        tableName=table,
        version=winner.version,
        winningTxnId=winner.info.txn_id,
    )


def retries_exceeded(
    *, table: str, attempts: int, first_version: int, last_version: int, num_actions: int
) -> ConflictError:
    """Build the exception for a commit that lost every race it ran."""
    return ConflictError(
        Message.MAX_COMMIT_RETRIES_EXCEEDED_ATTEMPTS,
        table=table,
        numAttempts=attempts,
        startVersion=first_version,
        failVersion=last_version,
        numActions=num_actions,
    )


def replaced(*, table: str, read_version: int, version: int | None) -> ConflictError:
    """Build the exception for a commit whose table is there no more (X-08a).

    ``version`` is that of the table now at its path.
    """
    if version is None:
        return MetadataChangedException(
            Message.METADATA_CHANGED_GONE, tableName=table, readVersion=read_version
        )
    return MetadataChangedException(
        Message.METADATA_CHANGED_REPLACED,
        tableName=table,
        readVersion=read_version,
        version=version,
    )


def never_listed(*, table: str, version: int) -> ConflictError:
    """Build the exception for a commit that exists and that listings of the log do not show."""
    return ConflictError(
        Message.MAX_COMMIT_RETRIES_EXCEEDED_NOT_LISTED, table=table, failVersion=version
    )


def _where(conflict: Conflict) -> str:
    return "" if conflict.partition is None else f" in the partition {conflict.partition}"


def _which(conflict: Conflict) -> str:
    if not conflict.files:
        return ""
    shown = ", ".join(conflict.files[:FILES_SHOWN_MAX])
    hidden = len(conflict.files) - FILES_SHOWN_MAX
    return f" ({shown}{f' and {hidden} more files' if hidden > 0 else ''})"
