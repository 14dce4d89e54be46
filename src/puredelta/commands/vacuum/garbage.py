"""What a VACUUM may delete: a decision over a listing, which deletes nothing itself.

The rules are delta-spark's. A name that begins with ``_`` or ``.`` is hidden, and what is
hidden is not touched, nor anything below it; change data, and partition directories of such a
column, are not hidden. Everything else is garbage once it is older than the retention time
and the log does not need it: orphans of failed jobs, removed files, expired change data.

Staging directories of this library are garbage, too, although they are hidden: a statement whose
driver died has left them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from puredelta.protocol.actions.log_paths import CHANGE_DATA_DIRECTORY
from puredelta.spark.source.staging import STAGING_PREFIX
from puredelta.store.base import StoredDirectory, StoredFile

_HIDDEN = ("_", ".")
_NOT_HIDDEN = (CHANGE_DATA_DIRECTORY, "_delta_index", STAGING_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """What is to be deleted."""

    files: tuple[StoredFile, ...]
    directories: tuple[str, ...]
    """Empty ones, inner before outer."""
    num_directories_seen: int
    """All that were looked into, the table root among them."""

    def without(self, paths: Collection[str]) -> Garbage:
        """Leave out files that are needed after all."""
        return replace(self, files=tuple(file for file in self.files if file.path not in paths))

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Files, then directories."""
        return (*(file.path for file in self.files), *self.directories)

    @property
    def num_paths(self) -> int:
        """Files and directories."""
        return len(self.files) + len(self.directories)


def visible_to_vacuum(partition_columns: Collection[str]) -> Callable[[str], bool]:
    """Return the test which names of files and directories VACUUM looks at.

    ``partition_columns`` are the physical names: one may begin with ``_``.

    >>> wanted = visible_to_vacuum(["_p"])
    >>> [name for name in ("part-0.parquet", "_delta_log", "_p=1", "_q=1") if wanted(name)]
    ['part-0.parquet', '_p=1']
    """
    exempt = (*_NOT_HIDDEN, *(f"{column}=" for column in partition_columns))

    def is_wanted(name: str) -> bool:
        return not name.startswith(_HIDDEN) or name.startswith(exempt)

    return is_wanted


def find_garbage(
    inventory: Iterable[StoredFile | StoredDirectory],
    *,
    referenced: Collection[str],
    modified_before_ms: int,
) -> Garbage:
    """Pick what is older than ``modified_before_ms`` and not ``referenced``.

    ``inventory`` is that of the table root, seen through `visible_to_vacuum`; it is read
    once. Files and directories that were modified later may belong to a writer at work.
    """
    found = _Found()
    files = tuple(
        file
        for file in found.watch(inventory)
        if file.modified_ms < modified_before_ms and file.path not in referenced
    )
    empty = [
        directory.path
        for directory in found.empty_directories
        if directory.modified_ms < modified_before_ms
    ]
    return Garbage(
        files=files,
        directories=tuple(sorted(empty, key=lambda path: path.count("/"), reverse=True)),
        num_directories_seen=found.num_directories + 1,
    )


@dataclass(slots=True)
class _Found:
    """Counts directories while the files go by, so that neither list is kept."""

    num_directories: int = 0
    empty_directories: list[StoredDirectory] = field(default_factory=list)

    def watch(self, inventory: Iterable[StoredFile | StoredDirectory]) -> Iterator[StoredFile]:
        for entry in inventory:
            if isinstance(entry, StoredFile):
                yield entry
                continue
            self.num_directories += 1
            if entry.is_empty:
                self.empty_directories.append(entry)
