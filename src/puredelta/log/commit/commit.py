"""Write one version of the log once, and distinguish a lost race from a lost answer.

A commit is the creation of one file (section "Delta Log Entries", X-01). The store promises that
at most one caller creates it. It does not promise that this caller learns of it: a store that
retries by itself may report "already exists" for its own file, and after every failure the answer
may be lost, or something was refused after the file was there. All of these are settled by reading
back whose ``txnId`` is in the file (X-10).

This module knows nothing of conflicts, and of the content of a commit only that id.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.errors import CommitUnknownError, CorruptTableError, ErrorCode
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.store.base import PutOutcome, Store, UnknownOutcomeError, put_parts_if_absent

READS_TO_SETTLE_MAX = 3
"""How often an unanswered commit is read back before its outcome counts as unknown."""


@dataclass(frozen=True, slots=True)
class Created:
    """Our commit is on disk as this version."""

    version: int


@dataclass(frozen=True, slots=True)
class LostRace:
    """Another writer owns the version; nothing of our commit is on disk."""

    version: int


CommitOutcome: TypeAlias = Created | LostRace


def create_version(
    store: Store, version: int, content: bytes, *, txn_id: str, more: Iterable[bytes] | None = None
) -> CommitOutcome:
    """Create the commit file of ``version`` unless another writer has.

    ``content`` holds a ``commitInfo`` with ``txn_id``; ``more`` follows it, part by part. An
    exception other than `CommitUnknownError` means that nothing was written: a store may lose the
    answer to a put, but a put it has reported as failed and does not show must never appear later,
    unless it said so (`UnknownOutcomeError`).

    Raises:
        CommitUnknownError: the store took the commit and cannot be read
            (DELTA_COMMIT_STATE_UNKNOWN); files the commit refers to must be left alone.
    """
    path = log_path(commit_name(version))
    try:
        if more is None:
            put = store.put_if_absent(path, content)
        else:
            put = put_parts_if_absent(store, path, itertools.chain((content,), more))
    except OSError as failure:
        return _settle(store, path, version, txn_id, failure)
    match put:
        case PutOutcome.CREATED:
            return Created(version)
        case PutOutcome.ALREADY_EXISTS:
            return _settle(store, path, version, txn_id, None)


def find_txn_id(content: bytes) -> str | None:
    """Return the ``txnId`` of a commit file, if its writer left one.

    Every line is searched for the provenance: this library and delta-spark write it first, but
    only in-commit timestamps make that a rule.
    """
    for line in content.split(b"\n"):
        if b'"commitInfo"' in line:
            try:
                action = parse_action(line)
            except CorruptTableError:
                return None
            if isinstance(action, CommitInfo):
                return action.txn_id
    return None


def _settle(
    store: Store, path: str, version: int, txn_id: str, failure: OSError | None
) -> CommitOutcome:
    problem = failure
    for _ in range(READS_TO_SETTLE_MAX):
        try:
            content = store.read(path)
        except FileNotFoundError as missing:  # noqa: PERF203 - a handful of tries
            if isinstance(failure, UnknownOutcomeError):
                continue  # what is not there now may come yet
            if failure is not None:
                raise failure from None
            problem = missing
        except OSError as unreadable:
            problem = unreadable
        else:
            ours = find_txn_id(content) == txn_id
            return Created(version) if ours else LostRace(version)
    raise CommitUnknownError(
        f"The commit of version {version} to {store.root_uri} may or may not have landed: the "
        f"store did not say, and {path} could not be read back in {READS_TO_SETTLE_MAX} tries. "
        f"Look for txnId {txn_id} in that file: if it is there the commit is done, otherwise run "
        "the operation again.",
        code=ErrorCode.COMMIT_STATE_UNKNOWN,
        version=version,
        txn_id=txn_id,
        path=path,
    ) from problem
