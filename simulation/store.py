"""The store of one process: the disk, with a pause before each call and what goes wrong."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, TypeVar

from puredelta.store.base import (
    FileEnd,
    NameRule,
    PutOutcome,
    StorageError,
    Store,
    StoredDirectory,
    StoredFile,
)
from simulation.faults import Call, FaultKind
from simulation.process import Process

T = TypeVar("T")

_HIDDEN_FOR_MS = 300
"""How long an old listing does not show what others have written."""


class SimulatedStore:
    """A `puredelta.store.base.Store` on the shared disk, with the promises of the local one.

    A file is created in two steps, as there: its name appears, then its directory is flushed.
    ``flushes`` False leaves the second out.
    """

    root_uri = "memory:/bank"

    def __init__(self, process: Process, *, flushes: bool = True) -> None:
        self._process = process
        self._disk, self._ledger = process.machine.disk, process.machine.ledger
        self._flushes = flushes
        self._own: set[str] = set()
        self.has_old_listing = False
        """Whether a listing was old since this was last set to False."""

    # --- reading ----------------------------------------------------------------------------

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the files of one directory in name order."""
        fault = self._process.call(Call.LIST, directory)
        if fault is FaultKind.FAILED:
            raise StorageError(fault.value)
        files = list(self._disk.list_from(directory, start))
        if fault is FaultKind.OLD_LISTING:
            self.has_old_listing = True
            horizon = self._process.machine.now_ms() - _HIDDEN_FOR_MS
            files = [f for f in files if f.modified_ms < horizon or f.path in self._own]
        return iter(files)

    def walk(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below a directory."""
        prefix = f"{directory}/" if directory else ""
        files = self._reading(Call.LIST, directory, lambda: list(self._disk.walk()))
        return (file for file in files if file.path.startswith(prefix))

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        """Yield the files whose names, and those of their directories, are wanted."""
        prefix = f"{directory}/" if directory else ""
        for file in self.walk(directory):
            if all(map(is_wanted, file.path.removeprefix(prefix).split("/"))):
                yield file

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        return self._reading(Call.READ, path, lambda: self._disk.read(path))

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:  # noqa: ARG002 - no threads here
        """Return this store: the seed decides what is read when."""
        return self

    def open(self, path: str) -> BinaryIO:
        """Open for reading."""
        return io.BytesIO(self.read(path))

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes."""
        content = self.read(path)
        return FileEnd(content[max(0, len(content) - num_bytes) :], len(content))

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""
        return self._reading(Call.READ, path, lambda: self._disk.exists(path))

    # --- writing ----------------------------------------------------------------------------

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Create the file unless it exists; pause again before its directory is flushed."""

        def create() -> PutOutcome:
            if not self._disk.create(path, content):
                return PutOutcome.ALREADY_EXISTS
            self._own.add(path)
            self._ledger.created(path, content)
            self._flush(path)
            return PutOutcome.CREATED

        return self._writing(Call.CREATE, path, create)

    def put(self, path: str, content: bytes) -> None:
        """Create or replace the file."""

        def replace() -> None:
            self._disk.write(path, content)
            self._flush(path)

        self._writing(Call.REPLACE, path, replace)

    def move(self, path: str, new_path: str) -> None:
        """Give a file another name."""
        content = self._disk.read(path)
        self.put(new_path, content)
        self.delete(path)

    def delete(self, path: str) -> None:
        """Remove the file; one that is already gone is no error."""

        def delete() -> None:
            self._ledger.deleting(path)
            self._disk.delete(path)

        self._writing(Call.DELETE, path, delete)

    def delete_tree(self, directory: str) -> None:
        """Remove a directory and all that is in it."""
        for file in list(self.walk(directory)):
            self.delete(file.path)

    def delete_directory(self, directory: str) -> bool:  # noqa: ARG002 - keys have none
        """Remove nothing: this disk has no directories of its own."""
        return False

    def at(self, uri: str) -> Store:
        """Return this store: the log names no file outside of the table."""
        if uri != self.root_uri:
            raise StorageError(f"{uri} is not on this disk")
        return self

    def name_rule(self) -> NameRule:
        """Return that names count as they are spelled."""
        return NameRule.EXACT

    def flush(self, paths: Sequence[str]) -> None:
        """Make data files survive a power cut."""
        for path in paths:
            self._flush(path)

    def write_data(self, path: str, content: bytes) -> None:
        """Write a data file, as a Spark job does: it flushes nothing."""
        fault = self._process.call(Call.WRITE_DATA, path)
        if fault is FaultKind.FAILED:
            raise StorageError(fault.value)
        if fault is FaultKind.SHORT_WRITE:
            self._disk.write(path, content[: len(content) // 2])
            raise StorageError(fault.value)
        self._disk.write(path, content)

    # --- what goes wrong --------------------------------------------------------------------

    def _reading(self, call: Call, path: str, operation: Callable[[], T]) -> T:
        fault = self._process.call(call, path)
        if fault is FaultKind.FAILED:
            raise StorageError(fault.value)
        return operation()

    def _writing(self, call: Call, path: str, operation: Callable[[], T]) -> T:
        fault = self._process.call(call, path)
        match fault:
            case None:
                return operation()
            case FaultKind.FAILED | FaultKind.OUTAGE:
                raise StorageError(fault.value)
            case FaultKind.REFUSED:
                raise PermissionError(fault.value)
            case FaultKind.REPEATED:
                operation()
                return operation()
            case FaultKind.REFUSED_AFTER:
                operation()
                raise PermissionError(fault.value)
            case _:
                operation()
                raise StorageError(fault.value)

    def _flush(self, path: str) -> None:
        self._process.reach(f"flush {path}")
        if self._flushes:
            self._disk.flush(path)
