"""Files that VACUUM may delete: a decision over a listing and the files that the log needs.

The rules are delta-spark's. A name that begins with ``_`` or ``.`` is hidden, and what is
hidden is not touched, nor anything below it; change data, and partition directories of such a
column, are not hidden. Everything else is garbage once it is older than the retention time
and the log does not need it: orphans of failed jobs, removed files, expired change data.

The directories that a job of this library makes for itself are looked into without that rule: what
Spark has not moved out of ``_temporary`` lies there when a driver dies. So do staging
directories, which no other engine's VACUUM sees at all. And so do files that a store wrote and did
not get to give their names, deletion vectors for one.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.log_paths import CHANGE_DATA_DIRECTORY
from puredelta.protocol.actions.paths import (
    absolute_uri,
    folded_path,
    path_below_root,
    relative_path,
)
from puredelta.store.base import StoredDirectory, StoredFile, is_temporary
from puredelta.store.file_system import TRIAL_PREFIX

STAGING_PREFIX = "_puredelta_staging-"
"""Of directories of a statement's source: hidden, and recognisable when a driver died."""
_JOB_DIRECTORY = re.compile(r"(?:[A-Za-z0-9]+-)?job-\d{8}-\d{6}-[0-9a-f]{12}")


def is_job_directory(name: str) -> bool:
    """Return whether a directory of a table is one that a job's new files were written to.

    >>> is_job_directory("job-20250131-120000-0123456789ab"), is_job_directory("day=1")
    (True, False)
    """
    return _JOB_DIRECTORY.fullmatch(name) is not None


_HIDDEN = ("_", ".")
_NOT_HIDDEN = (CHANGE_DATA_DIRECTORY, "_delta_index", STAGING_PREFIX, TRIAL_PREFIX)


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
        return replace(self, files=tuple(_unneeded(self.files, paths)))

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
    """Return the test which paths of files and directories VACUUM looks at.

    ``partition_columns`` are the physical names: one may begin with ``_``.

    >>> wanted = visible_to_vacuum(["_p"])
    >>> [path for path in ("part-0.parquet", "_delta_log", "_p=1", "_q=1") if wanted(path)]
    ['part-0.parquet', '_p=1']
    """
    exempt = (*_NOT_HIDDEN, *(f"{column}=" for column in partition_columns))

    def is_wanted(path: str) -> bool:
        name = path.rpartition("/")[2]
        is_visible = not name.startswith(_HIDDEN) or name.startswith(exempt)
        return is_visible or is_temporary(name) or _is_inside_ours(path)

    return is_wanted


def find_garbage(
    inventory: Iterable[StoredFile | StoredDirectory],
    *,
    referenced: Collection[str],
    modified_before_ms: int,
) -> Garbage:
    """Pick what is older than ``modified_before_ms`` and not ``referenced``.

    A path that a file system may take for a referenced one stays, too (`folded_path`): a listing
    need not spell a directory as the log does. ``inventory`` is that of the table root, seen
    through `visible_to_vacuum`; it is read once. Files and directories that were modified later
    may belong to a writer at work.
    """
    found = _Found()
    for entry in inventory:
        is_old = entry.modified_ms < modified_before_ms
        if isinstance(entry, StoredDirectory):
            found.see_directory(entry, is_old=is_old)
        else:
            found.see_file(entry, is_garbage=is_old and entry.path not in referenced)
    return Garbage(
        files=found.garbage(referenced),
        directories=found.empty_directories(),
        num_directories_seen=found.num_directories + 1,
    )


@dataclass(slots=True)
class _Found:
    """What an inventory has shown so far; of files that stay no list is kept."""

    num_directories: int = 0
    directories: list[str] = field(default_factory=list)
    """Old ones that are empty, or ours: those may be, once their files are gone."""
    files: list[StoredFile] = field(default_factory=list)
    occupied: set[str] = field(default_factory=set)
    """This library's directories in which a file stays, and all directories above."""

    def see_directory(self, directory: StoredDirectory, *, is_old: bool) -> None:
        self.num_directories += 1
        if is_old and (directory.is_empty or _is_ours(directory.path)):
            self.directories.append(directory.path)

    def see_file(self, file: StoredFile, *, is_garbage: bool) -> None:
        if is_garbage:
            self.files.append(file)
        elif _is_ours(file.path):
            parents = file.path.split("/")[:-1]
            self.occupied.update("/".join(parents[:n]) for n in range(1, len(parents) + 1))

    def garbage(self, referenced: Collection[str]) -> tuple[StoredFile, ...]:
        """Return the files to delete; a checksum is deleted or kept together with its file."""
        old = _unneeded(self.files, referenced)
        with_checksums = {file.path for file in old}
        gone = []
        for file in old:
            summed = _file_of_checksum(file)
            if summed is None or not (summed in with_checksums or summed in referenced):
                gone.append(file)
            elif summed in referenced:
                self.see_file(file, is_garbage=False)
        return tuple(gone)

    def empty_directories(self) -> tuple[str, ...]:
        """Return the directories that go once the garbage is gone, inner before outer."""
        empty = (path for path in self.directories if path not in self.occupied)
        return tuple(sorted(empty, key=lambda path: path.count("/"), reverse=True))


def _unneeded(files: Sequence[StoredFile], paths: Collection[str]) -> list[StoredFile]:
    """Return the files that no path means, however it is spelled."""
    folded = {folded_path(path) for path in paths} if files else set()
    return [file for file in files if folded_path(file.path) not in folded]


def _is_ours(path: str) -> bool:
    """Return whether a path is, or is inside, a directory that a job of this library made."""
    top = path.partition("/")[0]
    return top.startswith(STAGING_PREFIX) or is_job_directory(top)


def _is_inside_ours(path: str) -> bool:
    return "/" in path and _is_ours(path)


def _file_of_checksum(file: StoredFile) -> str | None:
    """Return the file that Hadoop keeps a checksum of, None for what is no checksum."""
    name = file.name
    if not (name.startswith(".") and name.endswith(".crc")):
        return None
    return f"{file.directory}/{name[1:].removesuffix('.crc')}"


def referenced_files(snapshot: Snapshot, *, removed_since_ms: int) -> frozenset[str]:
    """Return the paths, relative and decoded, of data files and deletion vectors in use.

    In use are the files of this version, and those removed at ``removed_since_ms`` or later,
    because a reader of an older version may still need them. A tombstone without a time counts
    as older than any other. Files outside the table root are left out: another table may own
    them. A file that the log names by an absolute path through a link, or through another mount
    of the root, is below the root all the same.
    """
    removed = snapshot.tombstones
    recent = removed.filter(
        pc.fill_null(pc.greater_equal(removed["deleted_ms"], removed_since_ms), fill_value=False)
    )
    paths = (
        path for rows in (snapshot.files.rows, recent) for path in _paths(rows) if path is not None
    )
    root = snapshot.root_uri
    real_directory = functools.cache(_real_directory)
    below = (
        path_below_root(root, path) or _path_below_real_root(root, path, real_directory)
        for path in paths
    )
    return frozenset(path for path in below if path is not None)


def _path_below_real_root(
    root_uri: str, encoded_path: str, real_directory: Callable[[str], str | None]
) -> str | None:
    """Return the path of a local file below the table root, wherever links lead."""
    directory, _, name = absolute_uri(root_uri, encoded_path).rpartition("/")
    real_root, real = real_directory(root_uri), real_directory(directory)
    return relative_path(real_root, f"{real}/{name}") if real_root and real else None


def _real_directory(uri: str) -> str | None:
    """Return the URI of a local directory without links; ``None`` for other storage."""
    scheme, _, path = uri.partition(":")
    return f"file:{os.path.realpath(path)}" if scheme == "file" else None


def _paths(rows: pa.Table) -> Iterator[str | None]:
    """Yield the paths of files and of their deletion vectors, as the log spells them."""
    for chunk in rows["path"].chunks:
        yield from chunk.to_pylist()
    vectors = rows["deletion_vector"]
    if vectors.null_count < len(vectors):
        for row in vectors.drop_null().to_pylist():
            yield vector_path(DeletionVectorDescriptor(**row))
