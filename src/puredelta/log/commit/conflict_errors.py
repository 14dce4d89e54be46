"""The one place where a conflict becomes an exception.

Class and code are the reference's; the text keeps its words and adds what a person needs
next: which version won, over which one we worked, where, which files, and what to do.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_never

from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    ConflictError,
    ErrorCode,
    MetadataChangedException,
    ProtocolChangedException,
)
from puredelta.log.commit.conflicts import Conflict, ConflictKind
from puredelta.log.commit.winning_commit import WinningCommit

FILES_SHOWN_MAX = 3


def conflict_error(
    conflicts: tuple[Conflict, ...], winner: WinningCommit, *, table: str, read_version: int
) -> ConflictError:
    """Build the exception for the conflicts of one rule with one winning commit.

    ``table`` is how messages name the table, ``read_version`` the one our work is based on.
    """
    first = conflicts[0]
    operation = winner.info.operation or "unknown operation"
    won = f"a concurrent {operation}"
    on_table = f"table {table} (committed at version {winner.version})"
    retry = (
        f"This operation had read version {read_version}; nothing was committed. Please run it "
        f"again: it will see version {winner.version}."
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
    where = _where(first)
    which = _which(first)
    match first.kind:
        case ConflictKind.PROTOCOL_CHANGED:
            return ProtocolChangedException(
                f"The protocol version of the Delta table {table} has been changed by a concurrent "
                f"update: {won} committed version {winner.version}, and {first.detail}. {retry}",
                code=ErrorCode.PROTOCOL_CHANGED,
                **details,
            )
        case ConflictKind.METADATA_CHANGED:
            return MetadataChangedException(
                f"The metadata of the Delta table {table} has been changed by a concurrent update: "
                f"{won} committed version {winner.version}, and {first.detail}. {retry}",
                code=ErrorCode.METADATA_CHANGED,
                **details,
            )
        case ConflictKind.DOMAIN_CHANGED:
            domains = tuple(conflict.detail for conflict in conflicts)
            return ConcurrentTransactionException(
                f"A conflicting metadata domain {', '.join(domains)} is added to {on_table} by "
                f"{won}, and this operation writes it, too. {retry}",
                code=ErrorCode.CONFLICTING_DOMAIN_METADATA,
                domains=domains,
                **details,
            )
        case ConflictKind.TRANSACTION_CHANGED:
            app_ids = tuple(conflict.detail for conflict in conflicts)
            return ConcurrentTransactionException(
                f"The application transaction {', '.join(app_ids)} was advanced in {on_table} by "
                f"{won} while this operation depended on it. This happens when several instances "
                f"of one application (one streaming query) write at the same time. {retry}",
                code=ErrorCode.CONCURRENT_TRANSACTION,
                app_ids=app_ids,
                **details,
            )
        case ConflictKind.APPENDED:
            return ConcurrentAppendException(
                f"Transaction conflict detected: {won} added data to {on_table}. The concurrent "
                f"operation modified data{where} that should have been read by this operation"
                f"{which}. {retry}",
                code=ErrorCode.CONCURRENT_APPEND,
                **details,
            )
        case ConflictKind.DELETED_WHAT_WE_READ:
            return ConcurrentDeleteReadException(
                f"Transaction conflict detected: {won} deleted data from {on_table} that this "
                f"transaction read. The concurrent operation deleted data{where} that was read by "
                f"this operation{which}. {retry}",
                code=ErrorCode.CONCURRENT_DELETE_READ,
                **details,
            )
        case ConflictKind.DELETED_WHAT_WE_DELETE:
            return ConcurrentDeleteDeleteException(
                f"Transaction conflict detected: {won} deleted data from {on_table} that this "
                f"transaction attempted to delete. The concurrent operation deleted data{where} "
                f"that was read by this operation{which}. {retry}",
                code=ErrorCode.CONCURRENT_DELETE_DELETE,
                **details,
            )
        case _:
            assert_never(first.kind)


def creation_conflict(winner: WinningCommit, *, table: str, reason: str) -> ConflictError:
    """Build the exception for a table that a rival created first (C-59)."""
    operation = winner.info.operation or "unknown operation"
    return ConcurrentWriteException(
        f"A concurrent {operation} created the table {table} (version {winner.version}) since this "
        f"operation found no table there, and {reason}. Nothing was committed. Look at the table "
        "that is there now and run the operation again if it still applies.",
        code=ErrorCode.CONCURRENT_WRITE,
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
        f"This commit to {table} has failed as it has been tried {attempts} times but did not "
        "succeed: other writers committed each version first. Commit started at version: "
        f"{first_version}. Commit failed at version: {last_version}. Number of actions attempted "
        f"to commit: {num_actions}. Please run the operation again when fewer writers are active.",
        code=ErrorCode.MAX_COMMIT_RETRIES_EXCEEDED,
        numAttempts=attempts,
        startVersion=first_version,
        failVersion=last_version,
        numActions=num_actions,
    )


def _where(conflict: Conflict) -> str:
    return "" if conflict.partition is None else f" in the partition {conflict.partition}"


def _which(conflict: Conflict) -> str:
    if not conflict.files:
        return ""
    shown = ", ".join(conflict.files[:FILES_SHOWN_MAX])
    hidden = len(conflict.files) - FILES_SHOWN_MAX
    return f" ({shown}{f' and {hidden} more files' if hidden > 0 else ''})"
