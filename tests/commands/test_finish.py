"""What a commit through `finish` says in the history, and what cannot undo it."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, write
from puredelta.commands.command import Command, PostCommitHook, command_on, next_command
from puredelta.commands.file_options import CommitSettings
from puredelta.commands.finish import finish
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import CommitUnknownError, ConflictError, DeltaError, ErrorCode
from puredelta.log.commit.commit_request import CommitRequest, Committed, Environment
from puredelta.log.files.file_table import remove_file
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    DeletionVectorDescriptor,
    SetTransaction,
)
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.store.base import Store
from puredelta.store.registry import open_store
from tests.commands.sessions import FakeSession
from tests.faults import FailAt, Fault, Meddling, MemoryStore, at_first
from tests.log.tables import PLAIN, add, feature_protocol, metadata

OPERATION = Operation(name="TEST")
SESSION: Any = FakeSession(
    spark__databricks__delta__commitInfo__userMetadata="why",
    spark__databricks__delta__write__txnAppId="app",
    spark__databricks__delta__write__txnVersion="7",
)


def table(store: Store | None = None, **properties: str) -> TableLog:
    log = TableLog(MemoryStore() if store is None else store)
    created = command_on(SESSION, log, None, Capability.APPEND)
    finish(created, CommitRequest(actions=(PLAIN, metadata(**properties)), operation=OPERATION))
    return log


def started(log: TableLog, *hooks: PostCommitHook) -> Command:
    command = command_on(SESSION, log, log.snapshot(), Capability.APPEND)
    return replace(command, hooks=hooks)


def added(path: str = "a") -> CommitRequest:
    return CommitRequest(actions=(add(path),), operation=OPERATION, metrics={"numFiles": 1})


def test_settings_go_into_the_commit() -> None:
    log = table()
    info = finish(started(log), added()).info
    assert (info.user_metadata, info.operation_metrics) == ("why", {"numFiles": "1"})
    assert (info.engine_info or "").startswith("Apache-Spark/4.1.0 puredelta/")
    assert log.snapshot().set_transactions == {}
    silent = replace(started(log), settings=CommitSettings(records_metrics=False))
    info = finish(silent, added("b")).info
    assert (info.user_metadata, info.operation_metrics) == (None, None)


def test_an_application_commits_a_version_once() -> None:
    log = table()

    def idempotent() -> Command:
        settings = CommitSettings.parse_idempotent(SESSION.conf.getAll)
        return replace(started(log), settings=settings)

    assert not idempotent().already_committed()
    finish(idempotent(), added())
    assert idempotent().already_committed()
    assert not started(log).already_committed()
    assert log.snapshot().set_transactions["app"].version == 7
    following = next_command(idempotent(), Capability.APPEND)
    assert following.settings == CommitSettings(user_metadata="why")
    late = SetTransaction(app_id="app", version=8)
    assert not replace(
        idempotent(), settings=CommitSettings(set_transaction=late)
    ).already_committed()


def test_hooks_follow_in_order_and_one_that_fails_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[tuple[int, str | None]] = []

    def note(command: Command, committed: Committed) -> None:
        seen.append((committed.version, command.settings.user_metadata))

    def fail(_: Command, __: Committed) -> None:
        raise PermissionError("locked")

    def unwanted() -> None:
        raise AssertionError("the files are part of the table")

    hooks = (PostCommitHook(name="sweeping", run=fail), PostCommitHook(name="note", run=note))
    with caplog.at_level(logging.WARNING):
        committed = finish(started(table(), *hooks), added(), discard=unwanted)
    assert (committed.version, seen) == (1, [(1, "why")])
    assert (
        "Version 1 of memory:/table is committed, but the sweeping after it failed" in caplog.text
    )


def test_files_are_discarded_only_where_the_commit_does_not_stand() -> None:
    discarded: list[str] = []
    log = table()
    loser = started(log)
    finish(started(log), CommitRequest(actions=(metadata(other="1"),), operation=OPERATION))
    with pytest.raises(ConflictError):
        finish(loser, added(), discard=lambda: discarded.append("lost"))
    store = MemoryStore()
    table(store)
    silent = FailAt(store, 1, Fault.AFTER, only=frozenset({"put_if_absent"}))
    blind = Meddling(silent, before=_refuse_reads_after_put())
    with pytest.raises(CommitUnknownError):
        finish(started(TableLog(blind)), added(), discard=lambda: discarded.append("unknown"))
    assert discarded == ["lost"]


def _refuse_reads_after_put() -> Any:
    names: list[str] = []

    def refuse(name: str) -> None:
        if "put_if_absent" in names:
            raise PermissionError("no more answers")
        names.append(name)

    return refuse


def test_a_write_stands_whatever_fails_after_its_commit(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Cached frames are refreshed after the commit: a failure then must not cost its files."""
    path = str(tmp_path / "t")
    write(spark.range(3), path)
    cached = read(spark, path).cache()
    assert cached.count() == 3
    store = Meddling(open_store(path), before=_refuse_reads_after_put())
    request = WriteRequest(mode=SaveMode.APPEND)
    try:
        with caplog.at_level(logging.WARNING):
            assert write_table(spark.range(2), TableLog(store), request).version == 1
    finally:
        cached.unpersist()
    assert "refresh of cached frames after it failed: no more answers" in caplog.text
    assert read(spark, path).count() == 5


def with_files(store: MemoryStore, *actions: Action) -> CommitRequest:
    for action in actions:
        if isinstance(action, Add):
            store.put(action.path, b"rows")
    return CommitRequest(actions=actions, operation=OPERATION)


def test_new_files_are_flushed_before_a_commit_names_them() -> None:
    store = MemoryStore()
    log = TableLog(store)
    protocol = feature_protocol("changeDataFeed", readers=("deletionVectors",))
    definition = metadata(delta__enableDeletionVectors="true", delta__enableChangeDataFeed="true")
    created = command_on(SESSION, log, None, Capability.APPEND)
    finish(created, with_files(store, protocol, definition, add("old")), discard=lambda: None)
    assert store.flushed == ["old"]
    store.flushed.clear()
    vector = DeletionVectorDescriptor(
        storage_type="i", path_or_inline="0", offset=None, size_bytes=1, cardinality=1
    )
    wide = replace(
        add("old"), stats='{"numRecords":10,"tightBounds":false}', deletion_vector=vector
    )
    marked = (remove_file(add("old")), wide)
    change = AddChangeFile(path="_change_data/c", partition_values={}, size_bytes=1)
    request = with_files(store, add("new%20one"), change, *marked, add("file:/elsewhere/shared"))
    seen: list[list[str]] = []
    look = at_first("put_if_absent", lambda: seen.append([*store.flushed]))
    watching = Meddling(store, before=look)
    finish(started(TableLog(watching)), request, discard=lambda: None)
    assert seen == [["new one", "_change_data/c"]], "a file that gets a vector is old"


def test_files_that_cannot_be_flushed_are_not_committed() -> None:
    store = MemoryStore()
    log = table(store)
    failing = FailAt(store, 1, only=frozenset({"flush"}))
    discarded: list[str] = []
    with pytest.raises(DeltaError) as caught:
        finish(started(TableLog(failing)), added(), discard=lambda: discarded.append("all"))
    assert caught.value.code is ErrorCode.WRITE_FAILED
    assert (log.latest_version(), discarded) == (0, ["all"])


def test_nothing_is_flushed_that_was_there_or_that_the_session_does_not_want() -> None:
    store = MemoryStore()
    log = table(store)
    finish(started(log), added("restored"))
    unwanted = CommitSettings.parse({"spark.puredelta.flushDataFiles": "false"})
    finish(replace(started(log), settings=unwanted), added("fast"), discard=lambda: None)
    assert store.flushed == []


def test_tombstones_bear_the_time_of_their_commit() -> None:
    """Not that of the plan: a job of hours would shorten the retention by its own length."""
    store = MemoryStore()
    log = table(store)
    finish(started(log), added("a"))
    command = replace(started(log), environment=Environment(clock=lambda: 1_900_000_000_000))
    kept = remove_file(add("b"), deleted_ms=5)
    finish(command, CommitRequest(actions=(remove_file(add("a")), kept), operation=OPERATION))
    times = log.snapshot().tombstones["deleted_ms"].to_pylist()
    assert sorted(times) == [5, 1_900_000_000_000]


def test_metadata_of_another_format_that_is_older_now_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = table(delta__universalFormat__enabledFormats="hudi")
    caplog.clear()
    finish(started(log), added())
    (warning,) = caplog.messages
    assert all(text in warning for text in ("Version 1", "hudi", "an older version"))
