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
from puredelta.commands.finish import finish
from puredelta.commands.settings import CommitSettings
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import CommitUnknownError, ConflictError
from puredelta.log.commit.commit_request import CommitRequest, Committed
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import SetTransaction
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.store.base import Store
from puredelta.store.registry import open_store
from tests.commands.sessions import FakeSession
from tests.faults import FailAt, Fault, Meddling, MemoryStore
from tests.log.tables import PLAIN, add, metadata

OPERATION = Operation(name="TEST")
SESSION: Any = FakeSession(
    spark__databricks__delta__commitInfo__userMetadata="why",
    spark__databricks__delta__write__txnAppId="app",
    spark__databricks__delta__write__txnVersion="7",
)


def table(store: Store | None = None) -> TableLog:
    log = TableLog(MemoryStore() if store is None else store)
    created = command_on(SESSION, log, None, Capability.APPEND)
    finish(created, CommitRequest(actions=(PLAIN, metadata()), operation=OPERATION))
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
