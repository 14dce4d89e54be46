"""Statements that run again after a conflict, as ``spark.puredelta.retries`` says (X-29b)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.dml import retry
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.spec import DeleteSpec, StatementSpec, UpdateSpec
from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    InvalidRequestError,
    MetadataChangedException,
)
from puredelta.log.commit.commit_request import Phase
from puredelta.log.commit.transaction import Transaction
from puredelta.log.replay.table_log import TableLog
from tests.commands.dml.tables import (
    active_files,
    assigned,
    data_files,
    execute_spec,
    insert,
    lay_file,
    lay_table,
    merge,
    table_rows,
    update,
)

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
APP = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"
RETRIES = "spark.puredelta.retries"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "t"


@pytest.fixture
def log(root: Path) -> TableLog:
    files = [[{"id": n, "v": 0} for n in range(5)], [{"id": n, "v": 0} for n in range(5, 10)]]
    return lay_table(root, SCHEMA, files)


def commit(root: Path, *actions: object) -> None:
    version = TableLog.open(str(root)).snapshot().version + 1
    lines = [{"commitInfo": {"timestamp": 1, "operation": "RIVAL"}}, *actions]
    file = root / f"_delta_log/{version:020d}.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def added(root: Path, *rows: tuple[int, int]) -> dict[str, Any]:
    """Lay a file of rows and return its action."""
    table = pa.Table.from_pylist([{"id": i, "v": v} for i, v in rows], SCHEMA)
    number = 100 + len(list(root.glob("*.parquet")))
    plain: dict[str, Any] = {"partition_by": (), "names": {}, "with_stats": True, "field_ids": {}}
    return {"add": lay_file(root, table, number=number, **plain)}


def append(root: Path, row: tuple[int, int] = (3, 7)) -> None:
    commit(root, added(root, row))


def removed(root: Path) -> dict[str, Any]:
    """Return the action that removes the file of the rows 0 to 4."""
    adds = TableLog.open(str(root)).snapshot().files.adds()
    path = next(add.path for add in adds if '"minValues": {"id": 0' in (add.stats or ""))
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}


def drop(root: Path) -> None:
    """Delete the rows 0 to 4."""
    commit(root, removed(root))


def rewrite(root: Path) -> None:
    """Set v to 7 in the rows 0 to 4."""
    commit(root, removed(root), added(root, *((n, 7) for n in range(5))))


def racing(rival: Callable[[], None], times: int = 1) -> Callable[[Phase], None]:
    """Let the rival commit when the statement is about to, that often."""
    left = [rival] * times

    def on_phase(phase: Phase) -> None:
        if phase is Phase.STAGED and left:
            left.pop()()

    return on_phase


def allow(retries: int) -> Callable[[ExecutionSettings], ExecutionSettings]:
    return lambda settings: replace(settings, retries=retries)


def values(spark: SparkSession, log: TableLog) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in table_rows(spark, log))


def others(*changed: tuple[int, int], without: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    ids = {i for i, _ in changed} | {*without}
    return sorted([*((n, 0) for n in range(10) if n not in ids), *changed])


def upsert(spark: SparkSession, log: TableLog, **options: Any) -> Any:
    source = spark.createDataFrame([(3, 1), (11, 1)], "id long, v long")
    return merge(spark, log, source, "t.id = s.id", update(), insert(), **options)


def require_nothing_left(log: TableLog, root: Path, before: set[str]) -> None:
    """Every file is one of the table, of its past, or of the other writers."""
    left = data_files(root) - before - {*active_files(log)}
    assert {name for name in left if not name.startswith("part-")} == set()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rival", [append, rewrite])
def test_x_29b_a_merge_runs_again_on_what_the_other_writer_made(
    spark: SparkSession, log: TableLog, root: Path, rival: Callable[[Path], None]
) -> None:
    before, seen = data_files(root), list[str]()
    outcome = upsert(
        spark,
        log,
        on_phase=racing(lambda: rival(root), times=2),
        change=allow(2),
        observe=lambda name, _: seen.append(name),
    )
    if rival is append:
        assert values(spark, log) == others((3, 1), (3, 1), (3, 1), (11, 1))
    else:
        changed = [(n, 7) for n in (0, 1, 2, 4)]
        assert values(spark, log) == others(*changed, (3, 1), (11, 1))
    assert (seen.count("3 source"), seen.count("4 prune"), seen.count("10 actions")) == (1, 3, 3)
    assert outcome.version == 3
    require_nothing_left(log, root, before)
    info = log.history(limit=1)[0].commit_info
    assert info is not None
    assert info.operation_metrics is not None
    assert info.read_version == 2
    assert info.operation_metrics["numTargetRowsInserted"] == "1"
    assert info.operation_metrics["numSourceRows"] == "2"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (UpdateSpec(assignments=assigned({"v": "v + 1"}), condition="id = 3"), [(3, 1), (3, 8)]),
        (DeleteSpec(condition="id = 3"), []),
    ],
)
def test_x_29b_update_and_delete_run_again(
    spark: SparkSession,
    log: TableLog,
    root: Path,
    spec: StatementSpec,
    expected: list[tuple[int, int]],
) -> None:
    before = data_files(root)
    race = racing(lambda: append(root))
    execute_spec(spark, log, spec, on_phase=race, change=allow(1))
    assert values(spark, log) == others(*expected, without=(3,))
    require_nothing_left(log, root, before)


def test_x_29b_when_all_runs_are_used_up_the_last_conflict_is_raised(
    spark: SparkSession, log: TableLog, root: Path
) -> None:
    before, seen = data_files(root), list[str]()
    rivals = iter([append, append, drop])
    with pytest.raises(ConcurrentDeleteReadException) as caught:
        upsert(
            spark,
            log,
            on_phase=racing(lambda: next(rivals)(root), times=3),
            change=allow(2),
            observe=lambda name, _: seen.append(name),
        )
    assert caught.value.details["version"] == 3
    assert seen.count("10 actions") == 3
    assert log.snapshot().version == 3
    require_nothing_left(log, root, before)


def test_x_29b_by_default_nothing_runs_again(
    spark: SparkSession, log: TableLog, root: Path
) -> None:
    with pytest.raises(ConcurrentAppendException):
        upsert(spark, log, on_phase=racing(lambda: append(root)))
    assert log.snapshot().version == 1


@pytest.mark.thorough
def test_x_29b_another_definition_of_the_table_ends_the_statement(
    spark: SparkSession, log: TableLog, root: Path
) -> None:
    lines = (root / f"_delta_log/{0:020d}.json").read_text().splitlines()
    metadata = next(line for line in map(json.loads, lines) if "metaData" in line)
    metadata["metaData"]["configuration"] = {"delta.appendOnly": "false"}
    with pytest.raises(MetadataChangedException):
        upsert(spark, log, on_phase=racing(lambda: commit(root, metadata)), change=allow(5))

    def both() -> None:
        append(root)
        commit(root, metadata)

    metadata["metaData"]["configuration"] = {"delta.checkpointInterval": "20"}
    with pytest.raises(ConcurrentAppendException):
        upsert(spark, log, on_phase=racing(both), change=allow(5))
    assert log.snapshot().version == 3


def test_x_29b_an_application_that_was_faster_has_done_it(
    spark: SparkSession, log: TableLog, root: Path
) -> None:
    def same_application() -> None:
        append(root)
        commit(root, {"txn": {"appId": "app", "version": 1}})

    spark.conf.set(APP, "app")
    spark.conf.set(VERSION, "1")
    try:
        outcome = upsert(spark, log, on_phase=racing(same_application), change=allow(5))
    finally:
        spark.conf.unset(APP)
        spark.conf.unset(VERSION)
    assert (outcome.was_executed, log.snapshot().version) == (False, 2)


@pytest.fixture
def race_of_commits(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    def prepare(rival: Callable[[], None]) -> None:
        pending, done = [rival], Transaction.commit

        def raced(self: Transaction, request: Any) -> Any:
            if pending:
                pending.pop()()
            return done(self, request)

        monkeypatch.setattr(Transaction, "commit", raced)

    return prepare


@pytest.fixture
def two_retries(spark: SparkSession) -> Any:
    spark.conf.set(RETRIES, "2")
    yield
    spark.conf.unset(RETRIES)


@pytest.mark.usefixtures("two_retries")
def test_x_29b_rows_of_a_condition_are_replaced_again(
    spark: SparkSession,
    log: TableLog,
    root: Path,
    race_of_commits: Callable[[Callable[[], None]], None],
) -> None:
    race_of_commits(lambda: append(root, (4, 7)))
    rows = spark.createDataFrame([(2, 2)], "id long, v long")
    puredelta.write(rows, str(root), mode="overwrite", options={"replaceWhere": "id < 5"})
    assert values(spark, log) == [(2, 2), *((n, 0) for n in range(5, 10))]


@pytest.mark.usefixtures("two_retries")
def test_x_29b_a_statement_that_reads_its_own_table_runs_once(
    spark: SparkSession,
    log: TableLog,
    root: Path,
    race_of_commits: Callable[[Callable[[], None]], None],
) -> None:
    race_of_commits(lambda: append(root))
    table = puredelta.DeltaTable.forPath(spark, str(root))
    source = puredelta.read(spark, root).selectExpr("id", "v + 1 AS v")
    with pytest.raises(ConcurrentAppendException):
        table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()
    assert log.snapshot().version == 1


def test_x_29b_pauses_grow_up_to_a_limit() -> None:
    pauses = [retry._pause_s(attempt) for attempt in range(40)]
    assert 0.05 <= pauses[0] <= 0.1
    assert all(2.5 <= pause <= 5 for pause in pauses[10:])
    assert len(set(pauses)) == len(pauses)


@pytest.mark.parametrize("value", ["-1", "often", "1.5", "1001", ""])
def test_x_29b_a_number_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"spark\.puredelta\.retries is"):
        ExecutionSettings.parse({RETRIES: value})
    assert ExecutionSettings.parse({RETRIES: " 3 "}).retries == 3
