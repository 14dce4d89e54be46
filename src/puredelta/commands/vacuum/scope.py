"""Where a VACUUM looks for files: in the directory, in the log alone, or in the rows of a query."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.maintenance.garbage import Garbage, find_garbage, visible_to_vacuum
from puredelta.log.maintenance.referenced_files import referenced_files
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, AddChangeFile, Remove
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY
from puredelta.protocol.actions.paths import encode_path, path_below_root
from puredelta.store.base import Store, StoredFile

logger = logging.getLogger(__name__)

LAST_VACUUM = f"{LOG_DIRECTORY}/_last_vacuum_info"
"""delta-spark's note of the commit up to which removed files are gone."""
_LAST_VERSION = "latestCommitVersionOutsideOfRetentionWindow"
_INVENTORY = {
    "path": "string",
    "length": "bigint",
    "isDir": "boolean",
    "modificationTime": "bigint",
}
_CHECKERS_MAX = 8


class VacuumScope(Protocol):
    """Where files are looked for."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing that commits removed is passed over."""
        ...

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return what may be deleted: not needed, and older than a time."""
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    """The table's directory is listed after the snapshot was taken: what a commit since then
    wrote is younger.
    """

    is_complete: bool = True

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return files that the log does not need, orphans included, and empty directories."""
        is_wanted = visible_to_vacuum(snapshot.config.physical_partition_columns)
        return find_garbage(
            log.store.inventory("", is_wanted=is_wanted),
            referenced=referenced_files(snapshot, removed_since_ms=before_ms),
            modified_before_ms=before_ms,
        )


EVERYTHING = Everything()


@dataclass(frozen=True, slots=True)
class Removed:
    """``LITE``: nothing is listed, so files that no commit ever named stay."""

    is_complete: bool = True

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return files that commits since the last VACUUM removed.

        Raises:
            InvalidRequestError: some of these commits are gone (DELTA_CANNOT_VACUUM_LITE).
        """
        first = _last_vacuumed(log.store) + 1
        _require_commits(log, first)
        found: dict[str, StoredFile] = {}
        for commit in log.read_commits(first - 1, through=snapshot.version):
            for action in commit.actions:
                for file in _gone(action, commit.modified_ms, log.root_uri):
                    if file.modified_ms < before_ms:
                        found.setdefault(file.path, file)
        with ThreadPoolExecutor(_CHECKERS_MAX, "puredelta-vacuum") as checkers:
            is_there = dict(zip(found, checkers.map(log.store.exists, found), strict=True))
        files = tuple(file for path, file in sorted(found.items()) if is_there[path])
        garbage = Garbage(
            files=files,
            directories=(),
            num_directories_seen=len({file.directory for file in files}),
        )
        return garbage.without(referenced_files(snapshot, removed_since_ms=before_ms))


@dataclass(frozen=True, slots=True)
class Inventory:
    """``USING INVENTORY``: the rows of a query are the listing.

    Paths are relative to the table or below it; others, hidden ones and directories are passed
    over. The times of the rows are believed.
    """

    rows: DataFrame
    is_complete: bool = False

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return files of the rows that the log does not need. Runs the query, row by row.

        Raises:
            InvalidRequestError: a column is missing (DELTA_INVALID_INVENTORY_SCHEMA).
        """
        _require_inventory(self.rows)
        is_wanted = visible_to_vacuum(snapshot.config.physical_partition_columns)
        files = (
            file
            for file in _listed(self.rows, log.root_uri)
            if all(is_wanted(path) for path in _with_parents(file.path))
        )
        return find_garbage(
            files,
            referenced=referenced_files(snapshot, removed_since_ms=before_ms),
            modified_before_ms=before_ms,
        )


def remember_vacuum(log: TableLog, *, before_ms: int) -> None:
    """Note the newest commit from before a time: what it and older ones removed is gone.

    A note that cannot be written is a warning: the next LITE looks at more commits.
    """
    try:
        version = -1
        for number, file in sorted(list_log(log.store).commits.items()):
            if file.modified_ms >= before_ms:
                break
            version = number
        if version > _last_vacuumed(log.store):
            log.store.put(LAST_VACUUM, json.dumps({_LAST_VERSION: version}).encode())
    except OSError as failure:
        logger.warning("%s: %s is not up to date: %s", log.root_uri, LAST_VACUUM, failure)


def _last_vacuumed(store: Store) -> int:
    """Return the commit up to which removed files are gone, -1 if none is known."""
    if not store.exists(LAST_VACUUM):
        return -1
    try:
        known = json.loads(store.read(LAST_VACUUM))
    except ValueError:
        return -1
    version = known.get(_LAST_VERSION) if isinstance(known, Mapping) else None
    return version if isinstance(version, int) else -1


def _require_commits(log: TableLog, first: int) -> None:
    earliest = min(list_log(log.store).commits, default=first)
    if earliest > first:
        raise InvalidRequestError(
            "VACUUM LITE cannot delete all eligible files as some files are not referenced by the "
            f"Delta log: its first commit is version {earliest}, and nothing is known of what was "
            f"removed from version {first} on. Please run VACUUM FULL.",
            code=ErrorCode.CANNOT_VACUUM_LITE,
            version=earliest,
        )


def _gone(action: Action, committed_ms: int, root_uri: str) -> Iterator[StoredFile]:
    """Yield the files that nobody needs once a commit is old, with the time since then."""
    paths: list[tuple[str | None, int]] = []
    at_ms = committed_ms
    if isinstance(action, Remove):
        at_ms = action.deleted_ms or 0
        paths.append((action.path, action.size_bytes or 0))
        if action.deletion_vector is not None:
            paths.append((vector_path(action.deletion_vector), 0))
    elif isinstance(action, AddChangeFile):
        paths.append((action.path, action.size_bytes))
    for encoded, size_bytes in paths:
        path = None if encoded is None else path_below_root(root_uri, encoded)
        if path is not None:
            yield StoredFile(path=path, size_bytes=size_bytes, modified_ms=at_ms)


def _require_inventory(rows: DataFrame) -> None:
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    if any(types.get(name) != kind for name, kind in _INVENTORY.items()):
        expected = ", ".join(f"{name} {kind.upper()}" for name, kind in _INVENTORY.items())
        raise InvalidRequestError(
            "The schema for the specified INVENTORY does not contain all of the required fields. "
            f"Required fields are: {expected}. It has {rows.schema.simpleString()}.",
            code=ErrorCode.INVALID_INVENTORY_SCHEMA,
        )


def _listed(rows: DataFrame, root_uri: str) -> Iterator[StoredFile]:
    root = root_uri.rstrip("/")
    plain = root.removeprefix("file:")
    some = rows.where("NOT isDir").select("path", "length", "modificationTime")
    for path, size_bytes, modified_ms in some.toLocalIterator():
        if path is None or size_bytes is None or modified_ms is None:
            continue
        below = path.removeprefix("file://").removeprefix("file:") if plain != root else path
        if below.startswith(f"{plain}/"):
            below = below[len(plain) + 1 :]
        # Once more as the log spells paths, so that nothing leads out of the table.
        inside = path_below_root(root_uri, encode_path(below))
        if inside is not None and inside == below:
            yield StoredFile(path=inside, size_bytes=size_bytes, modified_ms=modified_ms)


def _with_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
