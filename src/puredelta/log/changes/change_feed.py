"""The files and rows that a range of commits inserted, updated or deleted.

The changes of a commit are in its change files, if it has any (M-123). Otherwise they follow from
the files that it added and removed (section "Change Data Files", reader requirements). Nothing
here reads a data file; deletion vectors are read only if a commit changed that of a file.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from puredelta.errors import CorruptTableError, Message
from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.commit_files import Commit
from puredelta.protocol.actions.actions import (
    Add,
    AddChangeFile,
    DeletionVectorDescriptor,
    FileActionKey,
    Remove,
)
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.paths import canonical_path
from puredelta.protocol.schema.timestamps import encode_utc
from puredelta.protocol.table.change_data import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ChangeType,
    changed_no_rows,
)
from puredelta.store.base import Store
from puredelta.store.registry import open_store

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file whose rows one commit changed: those that its deletion vector does not delete."""

    file: Add
    change: ChangeType | None
    """The kind of change of all rows; None for a change file, which has a column for it."""
    version: int
    timestamp_ms: int
    """When the version was committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChange:
    """A file that stayed in the table and got another deletion vector."""

    file: Add
    """The file without a deletion vector."""
    before: DeletionVectorDescriptor | None
    after: DeletionVectorDescriptor | None
    version: int
    timestamp_ms: int

    def rows(self, change: ChangeType) -> ChangedFile:
        """Return the file for some of its rows, which the commit deleted or restored."""
        return _changed(self.file, change, self.version, self.timestamp_ms)


@dataclass(slots=True)
class ChangeFiles:
    """The files of a range of commits, by the way to read their rows."""

    recorded: list[ChangedFile] = field(default_factory=list)
    """Change files."""
    whole: list[ChangedFile] = field(default_factory=list)
    """Added and removed files: all rows that their deletion vector does not delete."""
    vector_changes: list[VectorChange] = field(default_factory=list)
    """Files of which some rows were deleted or restored."""

    @property
    def are_none(self) -> bool:
        """Whether there is no file at all."""
        return not (self.recorded or self.whole or self.vector_changes)

    def extend(self, more: ChangeFiles) -> None:
        """Add the files of further commits."""
        self.recorded += more.recorded
        self.whole += more.whole
        self.vector_changes += more.vector_changes


def find_change_files(commits: Iterable[Commit], timestamps_ms: Mapping[int, int]) -> ChangeFiles:
    """Sort the file actions of ``commits``; ``timestamps_ms`` has the time of every version."""
    found = ChangeFiles()
    for commit in commits:
        _sort_commit(commit, timestamps_ms[commit.version], found)
    return found


def _sort_commit(commit: Commit, timestamp_ms: int, found: ChangeFiles) -> None:
    recorded = [a for a in commit.actions if isinstance(a, AddChangeFile)]
    if recorded:
        found.recorded += [
            _changed(_as_add(a), None, commit.version, timestamp_ms) for a in recorded
        ]
    elif not changed_no_rows(commit.commit_info):
        _sort_data_files(commit, timestamp_ms, found)


def _sort_data_files(commit: Commit, timestamp_ms: int, found: ChangeFiles) -> None:
    version = commit.version
    changing = [a for a in commit.actions if isinstance(a, Add | Remove) and a.data_change]
    removed = {canonical_path(a.path): a for a in changing if isinstance(a, Remove)}
    for add in (a for a in changing if isinstance(a, Add)):
        remove = removed.pop(canonical_path(add.path), None)
        if remove is None:
            found.whole.append(_changed(add, ChangeType.INSERT, version, timestamp_ms))
        elif FileActionKey.of(remove) != FileActionKey.of(add):
            found.vector_changes.append(
                VectorChange(
                    file=replace(add, deletion_vector=None),
                    before=remove.deletion_vector,
                    after=add.deletion_vector,
                    version=version,
                    timestamp_ms=timestamp_ms,
                )
            )
    for remove in removed.values():
        file = _as_data_file(remove, version)
        found.whole.append(_changed(file, ChangeType.DELETE, version, timestamp_ms))


def _changed(file: Add, change: ChangeType | None, version: int, timestamp_ms: int) -> ChangedFile:
    return ChangedFile(file=file, change=change, version=version, timestamp_ms=timestamp_ms)


def _as_add(recorded: AddChangeFile) -> Add:
    return Add(
        path=recorded.path,
        partition_values=recorded.partition_values,
        size_bytes=recorded.size_bytes,
        modified_ms=0,
        data_change=False,
    )


def _as_data_file(remove: Remove, version: int) -> Add:
    if remove.partition_values is None or remove.size_bytes is None:
        raise CorruptTableError(
            Message.REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA, file=remove.path, version=version
        )
    return Add(
        path=remove.path,
        partition_values=remove.partition_values,
        size_bytes=remove.size_bytes,
        modified_ms=0,
        data_change=True,
        deletion_vector=remove.deletion_vector,
        base_row_id=remove.base_row_id,
        default_row_commit_version=remove.default_row_commit_version,
    )


def with_change_values(changed: ChangedFile) -> Add:
    """Return the file with the columns of the feed as further partition values."""
    committed = _EPOCH + dt.timedelta(milliseconds=changed.timestamp_ms)
    return replace(
        changed.file,
        partition_values={
            **changed.file.partition_values,
            CHANGE_TYPE: None if changed.change is None else changed.change.value,
            COMMIT_VERSION: str(changed.version),
            # With a zone, so that the session's zone does not matter.
            COMMIT_TIMESTAMP: encode_utc(committed),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangedRows:
    """Some rows of a file that one commit changed."""

    file: ChangedFile
    rows: RowIndexes
    """Physical row positions, sorted; there is at least one."""


def read_vector_changes(
    changes: Sequence[VectorChange], root_uri: str, *, open_at: Callable[[str], Store] = open_store
) -> list[ChangedRows]:
    """Compare two deletion vectors: newly deleted rows are deletes, restored ones inserts."""
    table = FileTable.of(
        replace(change.file, deletion_vector=vector)
        for change in changes
        for vector in (change.before, change.after)
    )
    positions = read_positions(table, root_uri, open_at=open_at)
    return [
        ChangedRows(file=change.rows(kind), rows=rows)
        for index, change in enumerate(changes)
        for kind, rows in _compare(positions.get(2 * index), positions.get(2 * index + 1))
        if len(rows)
    ]


def _compare(
    before: RowIndexes | None, after: RowIndexes | None
) -> tuple[tuple[ChangeType, RowIndexes], ...]:
    was = _NO_ROWS if before is None else before
    now = _NO_ROWS if after is None else after
    return (
        (ChangeType.DELETE, np.setdiff1d(now, was, assume_unique=True)),
        (ChangeType.INSERT, np.setdiff1d(was, now, assume_unique=True)),
    )


_NO_ROWS: RowIndexes = np.empty(0, np.uint64)
