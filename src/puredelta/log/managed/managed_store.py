"""The storage of a catalog-managed table: the catalog is asked, then the log is listed.

The order matters. A commit that the catalog no longer names is published, so a later listing shows
it; a listing before the question could miss it. The answer decides what there is: files of later
versions are not part of the table, and a version that the catalog names is read from its staged
file, also when a published copy exists. A version that it no longer names is its published copy.

A version that the catalog has named once is that file for ever. A catalog that takes this back, or
goes back to an older version, has lost commits: nothing is read or written then. The same holds if
a version is published with another content than the one that was read from its staged file.
"""

from __future__ import annotations

import copy
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from puredelta.catalogs.catalog import (
    Catalog,
    LoadedTable,
    RatifiedCommit,
    StagedTable,
    TableIdentifier,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.log_paths import (
    LOG_DIRECTORY,
    CommitFile,
    commit_name,
    log_path,
    parse_log_name,
)
from puredelta.store.base import (
    FileEnd,
    NameRule,
    PutOutcome,
    Store,
    StoredDirectory,
    StoredFile,
    put_parts_if_absent,
)

_ASKED_AGAIN_S = (0.05, 0.25, 1.0)
"""Waits for a catalog that answers from a copy of its database, and that copy is behind."""

ANSWER_S = 1.0
"""For so long an answer serves the steps of the call that it was asked for."""

_newest_seen: dict[str, int] = {}
"""The newest version of each table that this process has seen, by the table's id."""
_seen_lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewManagedTable:
    """A table that a catalog has given a place, and does not know yet."""

    name: TableIdentifier
    staged: StagedTable


def is_newest_seen(table: LoadedTable, seen: Mapping[str, int] = _newest_seen) -> bool:
    """Return whether this process has seen no newer version of a table."""
    latest = -1 if table.latest_version is None else table.latest_version
    return latest >= seen.get(table.table_id, -1)


class ManagedStore:
    """The `puredelta.store.base.Store` of one catalog-managed table.

    Commits go through `puredelta.log.managed.ratification`; a commit file is never put here.
    """

    def __init__(
        self,
        files: Store,
        catalog: Catalog,
        table: LoadedTable | NewManagedTable,
        *,
        sleep: Callable[[float], None] = time.sleep,
        seen: dict[str, int] | None = None,
    ) -> None:
        """``files`` is the storage itself, with the keys of the catalog.

        The log of a new table is empty until `accept` has its table. ``seen`` are the newest
        versions that the process has seen, by the ids of tables.
        """
        self._seen = _newest_seen if seen is None else seen
        self.files, self.catalog, self._sleep = files, catalog, sleep
        self._lock = threading.Lock()
        self._ratified: dict[int, RatifiedCommit] = {}
        self._read_staged: dict[int, bytes] = {}
        """Hashes of contents that were read before their versions were seen as plain files."""
        self._published = -1
        self._new_until: float | None = None
        self._table: LoadedTable | None = None
        self.new = table if isinstance(table, NewManagedTable) else None
        """The table to be created, or that was created through this store."""
        if isinstance(table, LoadedTable):
            self.accept(table, floor=-1)

    @property
    def table(self) -> LoadedTable:
        """The newest answer of the catalog."""
        if self._table is None:
            raise ValueError("the catalog does not know the table yet")
        return self._table

    @property
    def is_named(self) -> bool:
        """Whether the catalog has said that there is the table."""
        return self._table is not None

    def list_once_with_answer(self) -> None:
        """Let the next listing do without a question: the table has just been asked for."""
        self._new_until = time.monotonic() + ANSWER_S

    def list_named(self, version: int) -> None:
        """Let the next listing do without a question, if the last answer has this version.

        What a catalog has named once stays, and what it no longer names is published: that answer
        and a later listing have every version up to the newest one of the answer.
        """
        latest = None if self._table is None else self._table.latest_version
        if latest is not None and version <= latest:
            self.list_once_with_answer()

    def _asked(self) -> LoadedTable:
        """Return the answer that a listing needs."""
        until, self._new_until = self._new_until, None
        is_new = until is not None and time.monotonic() <= until
        return self.table if is_new and is_newest_seen(self.table, self._seen) else self.refresh()

    @property
    def published(self) -> int:
        """The newest version that is known to be a plain file of the log, with all before it."""
        return self._published

    def mark_published(self, version: int) -> None:
        """Remember that every version up to this one is a plain file."""
        with self._lock:
            self._published = max(self._published, version)

    def note_content(self, version: int, content: bytes) -> None:
        """Remember what a version is that may not be published yet."""
        with self._lock:
            self._read_staged[version] = hashlib.sha256(content).digest()

    def note_plain(self, version: int) -> None:
        """Remember that the plain file of a version has the content of its staged file."""
        with self._lock:
            self._read_staged.pop(version, None)

    def require_same(self, version: int) -> None:
        """Compare plain files up to a version with what was read of their staged files.

        One request for each version that was read before this store saw its plain file.

        Raises:
            CorruptTableError: the catalog has lost a version, and another one is published in its
                place (DELTA_CATALOG_IS_BEHIND).
        """
        with self._lock:
            read = sorted((v, known) for v, known in self._read_staged.items() if v <= version)
        for number, known in read:
            try:
                content = self.files.read(log_path(commit_name(number)))
            except FileNotFoundError:
                if number <= self._published:  # the log was cleaned up
                    self.note_plain(number)
                continue
            if hashlib.sha256(content).digest() != known:
                raise behind(
                    self.table, f"version {number} was read, and another commit is published as it"
                )
            self.note_plain(number)

    def refresh(self) -> LoadedTable:
        """Ask the catalog for the table as it is now.

        Raises:
            CatalogRequestError: it does not answer, or the name has another table by now.
            CorruptTableError: it has lost commits (DELTA_CATALOG_IS_BEHIND).
        """
        floor = self._seen.get(self.table.table_id, -1)
        table = self.catalog.load(self.table.name)
        for wait_s in _ASKED_AGAIN_S:
            if (table.latest_version or 0) >= floor:
                break
            self._sleep(wait_s)
            table = self.catalog.load(self.table.name)
        self.accept(table, floor=floor)
        return table

    def accept(self, table: LoadedTable, *, floor: int) -> None:
        """Take an answer over; it must continue what was seen, at least up to version ``floor``."""
        known, latest = self._table, table.latest_version
        if known is not None and (table.table_id, table.location) != (
            known.table_id,
            known.location,
        ):
            raise CatalogRequestError(
                f"{table.name} is another table than the one that was opened: it was dropped and "
                "created again, or moved. Nothing was changed. Open the table again.",
                refusal=Refusal.CHANGED,
                table=str(table.name),
            )
        if latest is None or not table.is_catalog_managed:
            raise CatalogRequestError(
                f"The catalog no longer manages the commits of {table.name}. Open the table again.",
                refusal=Refusal.CHANGED,
                table=str(table.name),
            )
        if latest < floor:
            raise behind(table, f"its newest version is {latest}, and version {floor} was there")
        with self._lock:
            for commit in table.commits:
                before = self._ratified.setdefault(commit.version, commit)
                if before.file_name != commit.file_name:
                    raise behind(
                        table,
                        f"version {commit.version} was {before.file_name}, and is now "
                        f"{commit.file_name}",
                    )
            oldest = table.commits[0].version if table.commits else latest + 1
            self._published = max(self._published, oldest - 1)
            self._table = table
        with _seen_lock:
            self._seen[table.table_id] = max(self._seen.get(table.table_id, -1), latest)

    @property
    def root_uri(self) -> str:
        """The location of the table."""
        return self.files.root_uri

    def at(self, uri: str) -> Store:
        """Open another directory with the settings and keys of this table."""
        return self.files.at(uri)

    def name_rule(self) -> NameRule:
        """Return how names are compared; published commits need an atomic put."""
        return self.files.name_rule()

    def flush(self, paths: Sequence[str]) -> None:
        """Make data files survive a power cut."""
        self.files.flush(paths)

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield files in name order; in the log, those of the versions that the catalog names."""
        if directory.strip("/") != LOG_DIRECTORY or self._table is None:
            yield from self.files.list_from(directory, start)
            return
        table = self._asked()
        self.require_same(self._published)
        latest = table.latest_version or 0
        found = {file.name: file for file in self.files.list_from(directory, start)}
        with self._lock:
            ratified = [c for v, c in self._ratified.items() if v <= latest]
        for commit in ratified:
            name = commit_name(commit.version)
            if name >= start and not (name in found and commit.version <= self._published):
                found[name] = StoredFile(
                    path=log_path(name),
                    size_bytes=commit.size_bytes,
                    modified_ms=commit.modified_ms,
                )
        for _, file in sorted(found.items()):
            kind = parse_log_name(file.name)
            if kind is None or kind.version <= latest:
                yield file

    def walk(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below a directory, as the storage has it."""
        return self.files.walk(directory)

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        """Yield the files and directories below a directory, as the storage has them."""
        return self.files.inventory(directory, is_wanted=is_wanted)

    def read(self, path: str) -> bytes:
        """Return the whole content; the catalog names the staged file of a new commit."""
        commit = self._named(path)
        if commit is None:
            return self.files.read(path)
        if commit.version <= self._published:
            try:
                return self.files.read(path)
            except FileNotFoundError:  # reported before its copy
                return self.read_staged(commit)
        try:
            content = self.read_staged(commit)
        except FileNotFoundError:  # removed after it was published
            return self.files.read(path)
        self.note_content(commit.version, content)
        return content

    def read_staged(self, commit: RatifiedCommit) -> bytes:
        """Return the content of a staged file, which has the size that was ratified.

        Raises:
            CorruptTableError: it has another size. One that is cut after a line would be a
                commit of fewer actions.
        """
        content = self.files.read(commit.path)
        if len(content) != commit.size_bytes:
            raise CorruptTableError(
                Message.LOG_CORRUPTED_STAGED_SIZE,
                path=f"{self.root_uri}/{commit.path}",
                size=len(content),
                ratified=commit.size_bytes,
            )
        return content

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:
        """Return this store, with files on their way that will be read soon."""
        named = [(file, self._named(file.path)) for file in files]
        wanted = [
            file
            if commit is None or commit.version <= self._published
            else replace(file, path=commit.path)
            for file, commit in named
        ]
        other = copy.copy(self)  # shares the versions that are known
        other.files = self.files.read_ahead(wanted)
        return other

    def _named(self, path: str) -> RatifiedCommit | None:
        """Return the commit of a path that the catalog has named since the table was opened."""
        directory, _, name = path.rpartition("/")
        kind = parse_log_name(name) if directory == LOG_DIRECTORY else None
        return self._ratified.get(kind.version) if isinstance(kind, CommitFile) else None

    def open(self, path: str) -> BinaryIO:
        """Open for reading, seekable."""
        return self.files.open(path)

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes of a file."""
        return self.files.read_end(path, num_bytes)

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Create a file that is no commit."""
        _require_no_commit(path)
        return self.files.put_if_absent(path, content)

    def put_parts_if_absent(self, path: str, parts: Iterable[bytes]) -> PutOutcome:
        """Create a file that is no commit, from its parts."""
        _require_no_commit(path)
        return put_parts_if_absent(self.files, path, parts)

    def put(self, path: str, content: bytes) -> None:
        """Create or replace a file that is no commit."""
        _require_no_commit(path)
        self.files.put(path, content)

    def move(self, path: str, new_path: str) -> None:
        """Rename a file."""
        _require_no_commit(new_path)
        self.files.move(path, new_path)

    def delete(self, path: str) -> None:
        """Remove a file that is no commit, published or staged."""
        _require_no_commit(path)
        self.files.delete(path)

    def delete_tree(self, directory: str) -> None:
        """Remove a directory and everything in it, but never the log."""
        _require_no_commit(f"{directory}/")
        self.files.delete_tree(directory)

    def delete_directory(self, directory: str) -> bool:
        """Remove a directory if it is empty."""
        return self.files.delete_directory(directory)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists in the storage."""
        return self.files.exists(path)


def _require_no_commit(path: str) -> None:
    directory, _, name = path.strip("/").rpartition("/")
    is_log = path.strip("/") == LOG_DIRECTORY or directory == f"{LOG_DIRECTORY}/_staged_commits"
    is_commit = directory == LOG_DIRECTORY and isinstance(parse_log_name(name), CommitFile)
    if is_log or is_commit:
        raise ValueError(f"{path} of a catalog-managed table is written by its ratification alone")


def behind(table: LoadedTable, problem: str) -> CorruptTableError:
    """Return the error for a catalog that has lost commits."""
    return CorruptTableError(
        Message.CATALOG_IS_BEHIND, problem=problem, table=str(table.name), path=table.location
    )
