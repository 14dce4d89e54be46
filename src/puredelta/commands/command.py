"""One call of a command, with everything it works with.

A command reads its session, its settings and the newest version of its table when it starts.
It passes the resulting `Command` on, and passes it to `finish` with the actions to commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.catalogs.catalog import name_of_address
from puredelta.commands.dependent_rules import require_harmless
from puredelta.commands.file_options import CommitSettings, require_no_arbiter
from puredelta.errors import ConcurrentWriteException, DeltaError, InvalidRequestError, Message
from puredelta.log.commit.commit_request import (
    DEFAULT_ENVIRONMENT,
    Committed,
    Environment,
    Phase,
    ignore_phase,
)
from puredelta.log.commit.transaction import Transaction
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import Predicate
from puredelta.spark.scan.own_reads import Stale, bind_rows
from puredelta.spark.session.catalogs import find_loaded
from puredelta.spark.session.delta_conf import REFUSED_BY_WRITES
from puredelta.spark.session.read_settings import require_every_row
from puredelta.spark.session.session import SessionInfo
from puredelta.version import __version__

_WRITES_ROWS = {Capability.APPEND, Capability.OVERWRITE, Capability.MERGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class PostCommitHook:
    """Work after a commit, which cannot undo the commit."""

    name: str
    """Its name in the warning about its failure."""
    run: Callable[[Command, Committed], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One call of a command on one version of a table, unchanged while it runs.

    The one exception is the record of the transaction's reads, which grows until the commit.
    """

    spark: SparkSession
    session: SessionInfo
    settings: CommitSettings
    log: TableLog
    existing: Snapshot | None
    """The version that the command reads; None where there is no table yet."""
    transaction: Transaction
    hooks: tuple[PostCommitHook, ...] = ()
    """Run in this order after the commit."""
    environment: Environment = DEFAULT_ENVIRONMENT
    started: float = field(default_factory=time.monotonic)
    """The `time.monotonic` at which the call began."""

    @property
    def snapshot(self) -> Snapshot:
        """The version that the command reads, of a table that is there."""
        if self.existing is None:
            raise ValueError(f"there is no table at {self.log.root_uri} yet")
        return self.existing

    def bind(self, rows: DataFrame, *, only_subqueries: bool = False) -> DataFrame:
        """Return rows as the version that the command reads gives them.

        ``only_subqueries`` is for rows that the command itself makes of this version, where
        expressions of the user read tables.

        Reads of the command's own table become part of the transaction's reads: only rows that
        read nothing of it can be a blind append. Runs no job.

        Raises:
            InvalidRequestError: the rows need a column that this version does not have
                (DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS).
            ConflictError: they are of an older version and cannot be brought to this one
                (DELTA_CONCURRENT_WRITE).
        """
        if self.existing is None:
            return rows
        bound = bind_rows(
            rows,
            self.existing,
            is_table=self._is_table,
            time_zone=self.session.time_zone,
            only_subqueries=only_subqueries,
        )
        if isinstance(bound, Stale):
            raise _stale(bound, self.existing)
        for predicate in bound.reads:
            self.transaction.read_files(predicate, _candidates(self.existing, predicate))
        return bound.rows

    def _is_table(self, location: str) -> bool:
        """Return whether rows read this table, under whatever name."""
        if self.log.is_at(location):
            return True
        name = name_of_address(location)
        other = None if name is None else find_loaded(self.spark, name)
        return other is not None and self.log.is_at(other.location)

    def on(self, snapshot: Snapshot) -> Command:
        """Return the same call on another version, with an empty record of reads."""
        return replace(self, existing=snapshot, transaction=self.transaction.on(snapshot))

    def clock(self) -> int:
        """Return the time now, in milliseconds since 1970."""
        return self.environment.clock()

    def elapsed_ms(self) -> int:
        """Return the milliseconds since the call began."""
        return int((time.monotonic() - self.started) * 1000)

    def already_committed(self) -> bool:
        """Return whether the table already has this application's version, and record the read."""
        wanted = self.settings.set_transaction
        if wanted is None:
            return False
        last = self.transaction.read_app_id(wanted.app_id)
        return last is not None and last >= wanted.version


def _stale(why: Stale, snapshot: Snapshot) -> DeltaError:
    again = f"Make the DataFrame again, from version {snapshot.version} of {snapshot.root_uri}."
    match why:
        case Stale.COLUMNS:
            return InvalidRequestError(
                Message.SCHEMA_CHANGE_SINCE_ANALYSIS,
                again=again,
                path=snapshot.root_uri,
                version=snapshot.version,
            )
        case Stale.UNREACHABLE:
            return ConcurrentWriteException(
                Message.CONCURRENT_WRITE_OWN_READS,
                again=again,
                path=snapshot.root_uri,
                version=snapshot.version,
            )
        case _:
            assert_never(why)


def _candidates(snapshot: Snapshot, predicate: Predicate | None) -> FileTable:
    """Return the files that can hold rows for which a condition is true."""
    files = snapshot.files
    if predicate is None:
        return files
    return files.select(prune_files(files, snapshot.config, predicate))


def start_command(
    spark: SparkSession,
    log: TableLog,
    capability: Capability,
    *,
    on_phase: Callable[[Phase], None] = ignore_phase,
    clock: Clock = wall_clock,
) -> Command:
    """Start a call on the newest version of a table. Runs no Spark job.

    The settings are those without an application id, and no hook follows the commit; a command
    replaces them with `dataclasses.replace`.
    ``capability`` is the kind of access that the command needs.
    """
    started = time.monotonic()
    session = SessionInfo.of(spark)
    environment = Environment(clock=clock, on_phase=on_phase)
    command = command_on(
        spark, log, log.snapshot(), capability, session=session, environment=environment
    )
    return replace(command, started=started)


def command_on(
    spark: SparkSession,
    log: TableLog,
    existing: Snapshot | None,
    capability: Capability,
    *,
    session: SessionInfo | None = None,
    environment: Environment = DEFAULT_ENVIRONMENT,
) -> Command:
    """Start a call on a version that was read before, or on None where there is no table yet."""
    session = SessionInfo.of(spark) if session is None else session
    REFUSED_BY_WRITES.require_defaults(session.settings)
    require_every_row(session.settings)
    require_no_arbiter(log.root_uri, session.settings)
    log.allow_writes()
    if existing is not None and capability in _WRITES_ROWS:
        require_harmless(existing.config, session.settings)
    return Command(
        spark=spark,
        session=session,
        settings=CommitSettings.parse(session.settings),
        log=log,
        existing=existing,
        transaction=Transaction(
            log,
            existing,
            engine_info=engine_info(session.spark_version),
            capability=capability,
            environment=environment,
        ),
        environment=environment,
    )


def next_command(command: Command, capability: Capability) -> Command:
    """Start another commit of the same call, on the newest version.

    The session is not read again. Hooks and the application id belong to the first commit;
    phases of the second are not reported.
    """
    following = command_on(
        command.spark,
        command.log,
        command.log.snapshot(),
        capability,
        session=command.session,
        environment=replace(command.environment, on_phase=ignore_phase),
    )
    return replace(following, settings=replace(command.settings, set_transaction=None))


def engine_info(spark_version: str) -> str:
    """Return the history's name of the writer.

    >>> engine_info("4.1.0")  # doctest: +ELLIPSIS
    'Apache-Spark/4.1.0 puredelta/...'
    """
    return f"Apache-Spark/{spark_version} puredelta/{__version__}"
