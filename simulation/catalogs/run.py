"""One run of a seed: writers, readers and dying processes beside the catalog."""

from __future__ import annotations

import io
import itertools
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, BinaryIO

from puredelta.catalogs.failures import CatalogRequestError
from puredelta.errors import CommitUnknownError, ConflictError, CorruptTableError, ErrorCode
from puredelta.log.commit.commit_content import encode_commit
from puredelta.log.commit.commit_request import CommitRequest, Environment
from puredelta.log.commit.post_commit import write_due_checkpoint
from puredelta.log.commit.transaction import Transaction
from puredelta.log.managed.managed_store import ManagedStore
from puredelta.log.managed.ratification import publish
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, CommitInfo, Metadata, Protocol, Remove
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.store.base import FileEnd, NameRule, PutOutcome, StorageError, StoredFile
from simulation.catalogs.catalog import CatalogFault, CatalogState, WriterCatalog
from simulation.catalogs.ledger import CatalogLedger
from simulation.catalogs.mutants import CatalogMutant, mutated
from simulation.disk import Disk
from simulation.interleaving import Interleaving, Point
from simulation.plan import DrawnSchedule
from simulation.violation import Violation

WRITERS = 4
STATEMENTS = 12
_FEATURES = ("catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck")
_BEGIN_MS = 1_700_000_000_000


class ProcessKilled(BaseException):
    """The process is gone. Nothing under test may catch it."""


@dataclass(slots=True)
class CatalogRun:
    """What happened in one run."""

    seed: int
    violation: Violation | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[CatalogFault] = field(default_factory=Counter)
    num_versions: int = 0
    num_copies: int = 0
    num_steps: int = 0
    num_limits: int = 0
    num_restores: int = 0


def run_seed(seed: int, *, mutant: CatalogMutant | None = None) -> CatalogRun:
    """Run a seed. The answer depends on nothing else."""
    logging.getLogger("puredelta").setLevel(logging.CRITICAL)
    with mutated(mutant):
        return _World(seed).run()


class _Files:
    """The storage of one process, over the disk of all."""

    root_uri = "sim:/table"

    def __init__(self, world: _World, writer: int) -> None:
        self._world, self._writer = world, writer

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        self._world.pause(self._writer, f"read {path}")
        return self._world.disk.read(path)

    def read_ahead(self, files: Sequence[StoredFile]) -> _Files:
        """Return this storage: nothing is far away."""
        del files
        return self

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the files of a directory."""
        self._world.pause(self._writer, f"list {directory}")
        yield from list(self._world.disk.list_from(directory, start))

    def open(self, path: str) -> BinaryIO:
        """Open a checkpoint."""
        return io.BytesIO(self.read(path))

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes."""
        content = self.read(path)
        return FileEnd(content[max(0, len(content) - num_bytes) :], len(content))

    def exists(self, path: str) -> bool:
        """Return whether a file is there."""
        self._world.pause(self._writer, f"exists {path}")
        return self._world.disk.exists(path)

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Create a file, or fail before or after that."""
        self._world.pause(self._writer, f"put {path}")
        fault = self._world.random.random()
        if fault < self._world.put_rate:
            raise StorageError("nothing happened")
        created = self._world.disk.create(path, content)
        if created:
            self._world.ledger.put(path, content)
        if fault < 2 * self._world.put_rate:
            raise StorageError("happened, the answer was lost")
        return PutOutcome.CREATED if created else PutOutcome.ALREADY_EXISTS

    def put(self, path: str, content: bytes) -> None:
        """Create or replace the hint."""
        self._world.pause(self._writer, f"put {path}")
        self._world.disk.write(path, content)

    def name_rule(self) -> NameRule:
        """Return that names count as they are spelled."""
        return NameRule.EXACT

    def at(self, uri: str) -> _Files:
        """Return this storage."""
        del uri
        return self


class _World:
    """All that the processes share."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed * 7 + 1)
        self.disk = Disk(clock=self.now_ms)
        self.ledger = CatalogLedger(self.disk)
        storm = self.random.choice((0.0, 0.05, 0.15, 0.3, 0.6))
        self.put_rate = storm / 6
        self.kill_rate = self.random.choice((0.0, 0.002, 0.01))
        self.restores = self.random.random() < 0.25
        self.state = CatalogState(self.random, storm, self.ledger)
        self.result = CatalogRun(seed)
        self._interleaving = Interleaving(DrawnSchedule(seed, 1))
        self._time_ms = _BEGIN_MS
        self.committing: set[int] = set()
        """Writers in the middle of a commit."""
        self._pauses = itertools.count()
        self._names = itertools.count()

    def now_ms(self) -> int:
        """Return the time; it passes from pause to pause."""
        return self._time_ms

    def pause(self, writer: int, _: str) -> None:
        """Let others run; the process may die here."""
        self._time_ms += 3
        self._interleaving.pause(Point(writer, 0, next(self._pauses)))
        if self.random.random() < self.kill_rate:
            raise ProcessKilled

    def run(self) -> CatalogRun:
        """Run all processes to their ends."""
        self._create()
        result = self.result
        try:
            self._interleaving.run([partial(self._live, writer) for writer in range(WRITERS)])
            self.ledger.require_all_there()
        except Violation as found:
            result.violation = found
        result.faults = self.state.faults
        result.num_versions, result.num_copies = self.ledger.num_versions, self.ledger.num_copies
        result.num_steps = self._interleaving.step
        result.num_limits = self.state.num_refused_by_limit
        return result

    def _create(self) -> None:
        configuration = {
            "delta.enableInCommitTimestamps": "true",
            "delta.checkpointPolicy": "v2",
            "delta.checkpointInterval": str(self.random.choice((3, 5, 10))),
            "io.unitycatalog.tableId": "table-1",
        }
        schema = (
            '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
        )
        metadata = Metadata(
            id="m", schema_string=schema, partition_columns=(), configuration=configuration
        )
        features = frozenset(_FEATURES)
        protocol = Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=features,
            writer_features=features | {"inCommitTimestamp", "appendOnly", "invariants"},
        )
        info = CommitInfo(
            timestamp_ms=_BEGIN_MS, in_commit_timestamp_ms=_BEGIN_MS, txn_id="creation"
        )
        content = encode_commit((info, metadata, protocol))
        self.disk.create(log_path(commit_name(0)), content)
        self.ledger.created(content)

    def _live(self, writer: int) -> None:
        process = _Process(self, writer)
        for _ in range(STATEMENTS):
            self._restore_once()
            try:
                outcome = process.statement()
            except ProcessKilled:
                outcome = "killed"
                self.committing.discard(writer)
                process = _Process(self, writer)
            self.result.outcomes[outcome] += 1

    def _restore_once(self) -> None:
        """Restore the catalog in some seeds, while it serves nobody: no request is on its way."""
        is_quiet = not self.committing and not self.state.delayed
        if self.restores and is_quiet and self.state.latest > 4 and not self.state.was_restored:
            self.state.restore()
            self.ledger.restored()
            self.result.num_restores += 1

    def next_name(self) -> str:
        """Return the name of a data file."""
        return f"part-{next(self._names)}.parquet"


class _Process:
    """One process of a writer, until it is killed."""

    def __init__(self, world: _World, writer: int) -> None:
        self._world, self._writer = world, writer
        self._seen: dict[str, int] = {}
        self._catalog = WriterCatalog(world.state, partial(world.pause, writer))
        self._log: TableLog | None = None
        self._ids = iter(lambda: str(uuid.UUID(int=world.random.getrandbits(128))), None)

    def statement(self) -> str:
        """Run one statement and return how it ended."""
        random = self._world.random
        try:
            log = self._opened(fresh=random.random() < 0.2)
            snapshot = self._read(log)
        except (CatalogRequestError, CorruptTableError, OSError) as failure:
            return self._not_read(failure)
        kind = random.random()
        if kind < 0.1:
            return "read"
        if kind < 0.25:
            return self._publish(log)
        if kind < 0.6 or not len(snapshot.files):
            return self._commit(log, snapshot, [_added(self._world.next_name())])
        if kind < 0.75:
            note = str(random.randrange(100))
            configuration = {**snapshot.metadata.configuration, "note": note}
            changed = replace(snapshot.metadata, configuration=configuration)
            return self._commit(log, snapshot, [changed])
        paths = sorted(snapshot.files.rows["path"].to_pylist())
        removed = Remove(path=random.choice(paths), deleted_ms=1, data_change=True)
        return self._commit(log, snapshot, [removed, _added(self._world.next_name())])

    def _publish(self, log: TableLog) -> str:
        """Publish what others have left, as every client may."""
        store = log.managed
        assert store is not None  # noqa: S101 - `_opened` has made it
        try:
            publish(store, store.refresh())
        except (CatalogRequestError, CorruptTableError, OSError):
            return "not published"
        return "published"

    def _sleep(self, seconds: float) -> None:
        """Let others run for a while."""
        for _ in range(min(int(seconds * 300), 40)):
            self._world.pause(self._writer, "sleep")

    def _opened(self, *, fresh: bool) -> TableLog:
        if self._log is None or fresh:
            table = self._catalog.load(self._world.state.loaded().name)
            files: Any = _Files(self._world, self._writer)
            store = ManagedStore(files, self._catalog, table, sleep=self._sleep, seen=self._seen)
            self._log = TableLog(store)
        return self._log

    def _read(self, log: TableLog) -> Any:
        at_least, seen = self._world.ledger.newest, self._seen.get("table-1", 0)
        snapshot = log.snapshot()
        if self._world.state.faults[CatalogFault.OLD_ANSWER]:
            at_least = seen  # an answer that others would know to be old
        if not self._world.state.was_restored:
            files = frozenset(snapshot.files.rows["path"].to_pylist())
            self._world.ledger.seen(snapshot.version, files, at_least=at_least)
        return snapshot

    def _not_read(self, failure: Exception) -> str:
        self._log = None
        if isinstance(failure, CorruptTableError) and failure.code is not (
            ErrorCode.CATALOG_IS_BEHIND
        ):
            raise Violation("readers see what was committed", repr(failure)) from failure
        if isinstance(failure, FileNotFoundError):
            raise Violation("readers see what was committed", repr(failure)) from failure
        return "not read"

    def _commit(self, log: TableLog, snapshot: Any, actions: list[Action]) -> str:
        txn_id = next(self._ids)
        self._world.ledger.started.add(txn_id)
        first = iter((txn_id,))
        environment = Environment(
            clock=self._world.now_ms,
            new_id=lambda: next(first, None) or next(self._ids),
            sleep=self._sleep,
        )
        transaction = Transaction(
            log,
            snapshot,
            engine_info="simulation",
            capability=Capability.MERGE,
            environment=environment,
        )
        if any(isinstance(action, Remove) for action in actions):
            transaction.read_files(None, snapshot.files)
        request = CommitRequest(actions=actions, operation=Operation(name="WRITE", parameters={}))
        return self._outcome(
            txn_id, lambda: transaction.commit(request), partial(self._finish, log, environment)
        )

    def _finish(self, log: TableLog, environment: Environment, committed: Any) -> None:
        write_due_checkpoint(log, committed, environment=environment)

    def _outcome(
        self, txn_id: str, commit: Callable[[], Any], finish: Callable[[Any], None]
    ) -> str:
        ledger = self._world.ledger
        self._world.committing.add(self._writer)
        try:
            committed = commit()
        except CommitUnknownError:
            return "unknown"
        except ConflictError:
            ledger.told_failure(txn_id)
            return "conflict"
        except (CatalogRequestError, CorruptTableError, OSError) as failure:
            ledger.told_failure(txn_id)
            is_damage = isinstance(failure, CorruptTableError | FileNotFoundError)
            if is_damage and getattr(failure, "code", None) is not ErrorCode.CATALOG_IS_BEHIND:
                raise Violation("readers see what was committed", repr(failure)) from failure
            return "failed"
        finally:
            self._world.committing.discard(self._writer)
        ledger.told(txn_id, committed.version)
        finish(committed)
        return "committed"


def _added(path: str) -> Add:
    return Add(
        path=path,
        partition_values={},
        size_bytes=1,
        modified_ms=1,
        data_change=True,
        stats='{"numRecords":1}',
    )
