"""A writer at work: what a driver does between a statement and its commit, without Spark.

Snapshots, transactions, deletion vectors, the corridor to the commit and everything below are
the library's. Rows alone are the simulation's: what a Spark job would do to data files, a few
lines do here.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from puredelta.commands.command import Command
from puredelta.commands.file_options import CommitSettings
from puredelta.commands.finish import discarded_on_failure
from puredelta.errors import CommitUnknownError, TableNotFoundError
from puredelta.log.commit.commit_request import CommitRequest, Committed, Environment
from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.log.commit.transaction import Transaction
from puredelta.log.files.deletion_vectors import DeletionVectorUpdate, write_vectors
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, SetTransaction
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import Predicate
from puredelta.spark.session.session import SessionInfo, StoreAssignment
from puredelta.store.base import Store
from simulation.bank import Row, TableTraits, decode_rows, encode_rows, hidden_positions
from simulation.ledger import Effect
from simulation.mutants import Safety
from simulation.process import Process
from simulation.store import SimulatedStore
from simulation.violation import Violation


class _EmptyCache:
    """The way to Spark's cache of frames, which holds none."""

    def sharedState(self) -> _EmptyCache:  # noqa: N802 - Spark's name
        return self

    def cacheManager(self) -> _EmptyCache:  # noqa: N802 - Spark's name
        return self

    def isEmpty(self) -> bool:  # noqa: N802 - Spark's name
        return True


class _NoSpark:
    """A session that runs nothing."""

    _jsparkSession = _EmptyCache()  # noqa: N815 - PySpark's name


_NO_SPARK: Any = _NoSpark()
_SESSION = SessionInfo(
    spark_version="4.1.0",
    is_connect=False,
    time_zone="UTC",
    case_sensitive=False,
    ansi=True,
    store_assignment=StoreAssignment.ANSI,
)
_ENGINE = "Apache-Spark/4.1.0 puredelta/simulation"


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row and where it is in its file."""

    position: int
    row: Row


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file and its rows."""

    file: Add
    rows: tuple[PlacedRow, ...]

    def holds(self, entries: Container[str]) -> bool:
        """Tell whether it has one of these rows."""
        return any(placed.row.entry in entries for placed in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """What a statement has read: candidates of the log, and what was in them."""

    candidates: FileTable
    files: tuple[ReadFile, ...]

    @property
    def rows(self) -> dict[str, Row]:
        """All rows, by entry."""
        return {placed.row.entry: placed.row for file in self.files for placed in file.rows}


@dataclass(slots=True)
class Written:
    """Files that a statement has written, and what commits them."""

    actions: list[Action] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


class Client:
    """One process of a writer, with the log it keeps from statement to statement."""

    def __init__(
        self, process: Process, traits: TableTraits, safety: Safety, *, skew_ms: int
    ) -> None:
        self.process, self.traits = process, traits
        self.ledger = process.machine.ledger
        self._safety = safety
        self._skew_ms = skew_ms
        self._disk_store = SimulatedStore(process, flushes=safety.flushes)
        self.store: Store = safety.store(self._disk_store)
        self.log: TableLog = safety.log(self.store)
        self.random = Random(0)
        self._txn_id = ""

    def begin(self, statement: int, seed: int) -> None:
        """Start a statement, whose chances are those of the seed alone."""
        self.process.begin(statement)
        self.random = Random(seed)

    def clock(self) -> int:
        """Return the time as this machine's clock shows it."""
        return self.process.machine.now_ms() + self._skew_ms

    def new_id(self) -> str:
        """Return the next UUID of the statement."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    # --- reading ----------------------------------------------------------------------------

    def forget(self) -> None:
        """Read the log from the start next time, as a new process would."""
        self.log = self._safety.log(self.store)

    def snapshot(self) -> Snapshot:
        """Read the newest version."""
        self._disk_store.has_old_listing = False
        at_least = self.ledger.newest
        try:
            snapshot = self.log.snapshot()
        except TableNotFoundError as error:
            if at_least < 0 or self._disk_store.has_old_listing:
                raise
            raise Violation("readers see the newest version", repr(error)) from error
        if self._disk_store.has_old_listing:
            at_least = 0
        self.ledger.require_version(snapshot, at_least=at_least)
        return snapshot

    def existing(self) -> Snapshot | None:
        """Read the newest version if there is a table."""
        return self.snapshot() if self.log.exists() else None

    def version(self, number: int) -> Snapshot:
        """Read an old version."""
        snapshot = self.log.snapshot(version=number)
        self.ledger.require_version(snapshot, at_least=number)
        return snapshot

    def read_accounts(self, snapshot: Snapshot, *accounts: int) -> ReadRows:
        """Read the files that may hold a row of these accounts, by what the log says of them."""
        files = list(snapshot.files.adds())
        places = [n for n, file in enumerate(files) if self.traits.may_hold(file, accounts)]
        return ReadRows(
            candidates=snapshot.files.take(places),
            files=tuple(ReadFile(files[n], tuple(self.rows(files[n]))) for n in places),
        )

    def rows(self, file: Add) -> list[PlacedRow]:
        """Read the rows of a file that no deletion vector hides."""
        rows = decode_rows(self.store.read(file.path))
        hidden = self._hidden(file)
        return [PlacedRow(n, row) for n, row in enumerate(rows) if n not in hidden]

    def _hidden(self, file: Add) -> frozenset[int]:
        vector = file.deletion_vector
        if vector is None:
            return frozenset()
        content = self.store.read(str(vector_path(vector)))
        return hidden_positions(content, vector)

    # --- writing ----------------------------------------------------------------------------

    def start(
        self,
        existing: Snapshot | None,
        effect: Effect,
        *,
        capability: Capability = Capability.MERGE,
        batch: SetTransaction | None = None,
    ) -> Command:
        """Start a call on a version; ``effect`` is what it does when it runs alone."""
        self._txn_id = self.new_id()
        self.ledger.begin(self._txn_id, effect)
        first = iter((self._txn_id,))  # a transaction asks for its own id before any other
        environment = Environment(
            clock=self.clock,
            new_id=lambda: next(first, None) or self.new_id(),
            on_phase=lambda phase: self.process.reach(phase.name),
        )
        return Command(
            spark=_NO_SPARK,
            session=_SESSION,
            settings=CommitSettings(set_transaction=batch),
            log=self.log,
            existing=existing,
            transaction=Transaction(
                self.log,
                existing,
                engine_info=_ENGINE,
                capability=capability,
                environment=environment,
            ),
            environment=environment,
        )

    def declare(
        self,
        command: Command,
        predicate: Predicate | None,
        files: FileTable,
        *,
        judges_rows_alone: bool = False,
    ) -> None:
        """Say what a statement has read."""
        if self._safety.declares_reads:
            command.transaction.read_files(predicate, files, judges_rows_alone=judges_rows_alone)

    def add_rows(self, written: Written, rows: Iterable[Row], *, data_change: bool = True) -> None:
        """Write rows to new files."""
        for group in self.traits.grouped(rows):
            path = f"part-{self.new_id()}.parquet"
            content = encode_rows(group)
            written.paths.append(path)
            self._disk_store.write_data(path, content)
            add = self.traits.describe(path, group, size_bytes=len(content), now_ms=self.clock())
            written.actions.append(replace(add, data_change=data_change))

    def compacted(self, files: Iterable[Add]) -> list[Row]:
        """Read the rows of files in the order in which a compaction writes them."""
        rows = [placed.row for file in files for placed in self.rows(file)]
        return rows if self._safety.keeps_order else rows[::-1]

    def remove(self, written: Written, files: Iterable[Add], *, data_change: bool = True) -> None:
        """Take files out of the table."""
        now_ms = self.clock()
        written.actions += [
            remove_file(file, deleted_ms=now_ms, data_change=data_change) for file in files
        ]

    def change(
        self,
        written: Written,
        command: Command,
        file: Add,
        change: Callable[[Row], Row | None],
        *,
        by_vector: bool,
    ) -> None:
        """Change rows of a file, by a deletion vector if wanted and the table may have them."""
        if by_vector and command.snapshot.config.properties.enable_deletion_vectors:
            self._hide(written, command, file, change)
        else:
            self.rewrite(written, file, change)

    def rewrite(self, written: Written, file: Add, change: Callable[[Row], Row | None]) -> None:
        """Put a changed copy in a file's place; None for a row leaves it out."""
        changed = (change(placed.row) for placed in self.rows(file))
        self.add_rows(written, [row for row in changed if row is not None])
        self.remove(written, [file])

    def _hide(
        self, written: Written, command: Command, file: Add, change: Callable[[Row], Row | None]
    ) -> None:
        """Hide the rows of a file that change, and write those anew that do not go."""
        hidden = set(self._hidden(file))
        moved: list[Row] = []
        for placed in self.rows(file):
            row = change(placed.row)
            if row != placed.row:
                hidden.add(placed.position)
                moved += [] if row is None else [row]
        vectors = write_vectors(
            [DeletionVectorUpdate(file=file, rows=np.array(sorted(hidden), np.uint64))],
            store=self.store,
            config=command.snapshot.config,
            new_id=self.new_id,
        )
        written.paths += vectors.paths
        self.add_rows(written, moved)
        written.actions += vectors.adds
        self.remove(written, [file])

    def commit(
        self,
        command: Command,
        written: Written,
        request: CommitRequest,
        *,
        checkpoint: CheckpointWish = CheckpointWish.AT_INTERVAL,
    ) -> Committed:
        """Commit, and tell the ledger what the answer was."""
        try:
            committed = self._safety.finish(
                command,
                replace(request, actions=(*request.actions, *written.actions)),
                discard=lambda: self.discard(written),
                checkpoint=checkpoint,
            )
        except CommitUnknownError:
            raise
        except Exception as error:
            self.ledger.denied(self._txn_id, error)
            raise
        self.ledger.acknowledged(self._txn_id, committed.version)
        return committed

    def writing(self, written: Written) -> AbstractContextManager[None]:
        """Remove the files again if the statement fails before it comes to its commit."""
        return discarded_on_failure(lambda: self.discard(written))

    def discard(self, written: Written) -> None:
        """Remove files that will not be committed, as far as storage lets us."""
        for path in written.paths:
            with contextlib.suppress(OSError):
                self.store.delete(path)
