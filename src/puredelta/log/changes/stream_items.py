"""The files of a version, counted as the offsets of a stream count them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.changes.stream_limits import Admission
from puredelta.log.changes.stream_offset import BEFORE_FIRST, SCHEMA_BARRIER
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add, AddChangeFile, Remove

ItemAction: TypeAlias = Add | Remove | AddChangeFile


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamItem:
    """A place in a commit: before its first file, at a file of it, or where the columns change."""

    version: int
    index: int
    action: ItemAction | None = None
    is_last: bool = False
    """Whether the commit has nothing behind it."""

    @property
    def place(self) -> tuple[int, int]:
        """Version and index."""
        return self.version, self.index

    @property
    def is_barrier(self) -> bool:
        """Whether the stream has to be restarted behind this place, in other columns."""
        return self.index == SCHEMA_BARRIER

    @property
    def size_bytes(self) -> int:
        """The size of the file; 0 where the log does not say it."""
        return 0 if self.action is None else self.action.size_bytes or 0


def count_actions(version: int, actions: Sequence[ItemAction]) -> tuple[StreamItem, ...]:
    """Return the places of a commit that delivers these actions.

    >>> count_actions(3, ())
    (StreamItem(version=3, index=-100, action=None, is_last=False),)
    """
    last = len(actions) - 1
    return (
        StreamItem(version=version, index=BEFORE_FIRST),
        *(
            StreamItem(version=version, index=n, action=action, is_last=n == last)
            for n, action in enumerate(actions)
        ),
    )


def with_barrier(items: Sequence[StreamItem]) -> tuple[StreamItem, ...]:
    """Return the places of a commit that changes the columns: before its files is a barrier."""
    version = items[0].version
    return (items[0], StreamItem(version=version, index=SCHEMA_BARRIER), *items[1:])


def through_barrier(items: Sequence[StreamItem]) -> Sequence[StreamItem]:
    """Return the places up to and with the barrier, if there is one."""
    end = next((n for n, item in enumerate(items) if item.is_barrier), None)
    return items if end is None else items[: end + 1]


def admitted_one_by_one(
    items: Sequence[StreamItem], admission: Admission
) -> tuple[Sequence[StreamItem], bool]:
    """Return the items that a batch takes, and whether these are all."""
    for n, item in enumerate(items):
        taken = admission.has_room if item.action is None else admission.admits(item.size_bytes)
        if not taken:
            return items[:n], False
    return items, True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InitialFiles:
    """The files of the version that a stream begins with, by time and path."""

    snapshot: Snapshot
    files: FileTable
    sizes_bytes: Sequence[int]

    @classmethod
    def of(cls, snapshot: Snapshot) -> InitialFiles:
        """Sort the files of a version."""
        rows = snapshot.files.rows
        keys = [("modified_ms", "ascending"), ("path", "ascending")]
        order = pc.sort_indices(rows.select(["modified_ms", "path"]), sort_keys=keys)
        files = snapshot.files.take(order)
        return cls(snapshot=snapshot, files=files, sizes_bytes=files.rows["size_bytes"].to_pylist())

    def admitted(self, after: int, through: int | None, admission: Admission) -> tuple[int, bool]:
        """Return the last index that a batch takes, and whether nothing is left behind it."""
        end = len(self.sizes_bytes)
        if through is not None:
            end = min(end, through + 1)
        for n in range(max(after + 1, 0), end):
            if not admission.admits(self.sizes_bytes[n]):
                return n - 1, False
        return max(end - 1, after), end == len(self.sizes_bytes)

    def between(self, after: int, through: int | None) -> FileTable:
        """Return the files behind an index, up to and with another."""
        first = max(after + 1, 0)
        end = len(self.files) if through is None else min(through + 1, len(self.files))
        return self.files.take(pa.array(range(first, max(first, end)), pa.int64()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamBatch:
    """What comes between two offsets."""

    initial: FileTable | None
    """Files of the version that the stream begins with."""
    initial_snapshot: Snapshot | None
    commits: Sequence[tuple[Commit, Sequence[ItemAction]]]
    """Commits, and the actions of each that are delivered."""

    @classmethod
    def nothing(cls) -> StreamBatch:
        """Return a batch without rows."""
        return cls(initial=None, initial_snapshot=None, commits=())
