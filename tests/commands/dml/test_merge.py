"""MERGE end to end: rows, files, history, and nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.commands.dml.execute import run_merge
from puredelta.commands.dml.search_plan import Search
from puredelta.commands.dml.spec import MergeSpec
from puredelta.errors import (
    ConcurrentAppendException,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
)
from puredelta.log.commit.commit_request import Phase
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.session import NotApplicable
from tests.commands.dml.tables import (
    active_files,
    data_files,
    delete,
    delete_by_source,
    insert,
    lay_table,
    merge,
    table_rows,
    update,
    update_by_source,
)

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
Row = dict[str, Any]
JOBS_OF_AN_UPSERT = 3
"""Stage, look keys up, split, write."""


def row(key: int | None, v: int | None = 0, p: str | None = "a") -> Row:
    return {"id": key, "p": p, "v": v}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "my table"


@pytest.fixture
def log(root: Path) -> TableLog:
    """Four files of ten rows: ids 0..9, 10..19, 20..29, 30..39; v is the id."""
    return lay_table(
        root, SCHEMA, [[row(n, n) for n in range(k, k + 10)] for k in range(0, 40, 10)]
    )


@pytest.fixture
def source(spark: SparkSession) -> Callable[..., DataFrame]:
    def make(*rows: tuple[int | None, str | None, int | None]) -> DataFrame:
        return spark.createDataFrame(list(rows), "id long, p string, v long").coalesce(1)

    return make


@pytest.mark.smoke
def test_an_upsert_replaces_touched_files_only(
    spark: SparkSession, log: TableLog, root: Path, source: Callable[..., DataFrame]
) -> None:
    before = active_files(log)
    new = source((3, "b", 300), (12, "b", 1200), (50, "b", 5000))
    outcome = merge(spark, log, new, "t.id = s.id", update(), insert())

    changed = {3: row(3, 300, "b"), 12: row(12, 1200, "b"), 50: row(50, 5000, "b")}
    wanted = [changed.get(n, row(n, n)) for n in [*range(40), 50]]
    assert table_rows(spark, log) == sorted(wanted, key=repr)
    assert outcome.version == 1
    after = active_files(log)
    assert set(before) - set(after) == set(before[:2])
    assert len(after) == 5
    assert data_files(root) == {*before, *after}, "staging files are removed"

    (entry,) = log.history(limit=1)
    info = entry.commit_info
    assert info is not None
    assert (info.operation, info.is_blind_append, info.read_version) == ("MERGE", False, 0)
    assert json.loads(info.operation_parameters["matchedPredicates"]) == [{"actionType": "update"}]
    metrics = {k: int(v) for k, v in (info.operation_metrics or {}).items()}
    assert metrics == outcome.metrics
    expected = {
        "numSourceRows": 3,
        "numTargetRowsInserted": 1,
        "numTargetRowsUpdated": 2,
        "numTargetRowsMatchedUpdated": 2,
        "numTargetRowsDeleted": 0,
        "numTargetRowsCopied": 18,
        "numOutputRows": 21,
        "numTargetFilesAdded": 3,
        "numTargetFilesRemoved": 2,
        "numTargetBytesRemoved": sum((root / p).stat().st_size for p in before[:2]),
        "numTargetBytesAdded": sum((root / p).stat().st_size for p in set(after) - set(before)),
    }
    assert {k: metrics[k] for k in expected} == expected
    assert all(metrics[k] > 0 for k in metrics if k.endswith("TimeMs"))


def test_the_result_row(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-12."""
    spec = MergeSpec(on="t.id = s.id", clauses=(delete("s.v = 1"), update(), insert()))
    target = scan(spark, log.snapshot()).alias("t")
    new = source((1, "a", 1), (2, "a", 7), (3, "a", 7), (99, "a", 7)).alias("s")
    result = run_merge(spark, log, spec, target_rows=target, source_rows=new)
    assert result.dtypes == [
        ("num_affected_rows", "bigint"),
        ("num_updated_rows", "bigint"),
        ("num_deleted_rows", "bigint"),
        ("num_inserted_rows", "bigint"),
    ]
    assert [tuple(r) for r in result.collect()] == [(4, 2, 1, 1)]


def test_new_files_have_statistics_and_stay_in_their_directory(
    spark: SparkSession, root: Path, source: Callable[..., DataFrame]
) -> None:
    files = [[row(n, n, p) for n in range(k, k + 5)] for k, p in ((0, "a"), (10, "b"))]
    log = lay_table(root, SCHEMA, files, partition_by=["p"])
    merge(spark, log, source((2, "a", 1)), "t.id = s.id", delete())
    (new,) = [a for a in log.snapshot().files.adds() if a.path.startswith("p=a/")]
    assert new.partition_values == {"p": "a"}
    assert json.loads(new.stats or "") == {
        "numRecords": 4,
        "minValues": {"id": 0, "v": 0},
        "maxValues": {"id": 4, "v": 4},
        "nullCount": {"id": 0, "v": 0},
    }


def test_a_row_moves_to_the_partition_it_is_updated_to(
    spark: SparkSession, root: Path, source: Callable[..., DataFrame]
) -> None:
    """M-108."""
    files = [[row(n, n, p) for n in range(k, k + 3)] for k, p in ((0, "a"), (10, "b"))]
    log = lay_table(root, SCHEMA, files, partition_by=["p"])
    outcome = merge(
        spark, log, source((1, "b", 7), (11, None, 8)), "t.id = s.id", update(p="s.p"), insert()
    )
    moved = {1: row(1, 1, "b"), 11: row(11, 11, None)}
    rows = [*files[0], *files[1]]
    assert table_rows(spark, log) == sorted((moved.get(r["id"], r) for r in rows), key=repr)
    assert outcome.rows.updated == 2
    assert {a.partition_values["p"] for a in log.snapshot().files.adds()} == {"a", "b", None}


# --- matching -----------------------------------------------------------------------------


@pytest.mark.smoke
def test_several_matches_are_refused_and_named(
    spark: SparkSession, log: TableLog, root: Path, source: Callable[..., DataFrame]
) -> None:
    """M-70, M-76: ON alone decides, even if only one match satisfies a condition."""
    before = data_files(root)
    doubled = source((7, "a", 1), (7, "a", 2), (7, "b", 2), (8, "a", 1), (25, "a", 1), (25, "a", 9))
    with pytest.raises(InvalidRequestError) as refused:
        merge(spark, log, doubled, "t.id = s.id", update("s.v = 9"), insert())
    error = refused.value
    assert error.code is ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW
    assert error.message.startswith(
        "Cannot perform Merge as multiple source rows matched and attempted to modify the same "
        "target row in the Delta table in possibly conflicting ways."
    )
    assert "(id = 7) matches 3 source rows; (id = 25) matches 2 source rows" in error.message
    assert "id = 8" not in error.message
    assert data_files(root) == before
    assert log.latest_version() == 0


def test_several_matches_are_harmless_for_a_sole_delete(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-71, M-72: a row that several source rows delete is deleted once."""
    doubled = source((7, "a", 1), (7, "a", 2), (8, "a", 1), (70, "a", 1), (70, "a", 1))
    outcome = merge(spark, log, doubled, "t.id = s.id", delete(), insert())
    assert (outcome.rows.deleted, outcome.rows.inserted) == (2, 2)
    assert len(table_rows(spark, log)) == 40


@pytest.mark.thorough
def test_by_source_clauses_alone_still_refuse_several_matches(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-73."""
    doubled = source((7, "a", 1), (7, "a", 2))
    with pytest.raises(InvalidRequestError, match="multiple source rows"):
        merge(spark, log, doubled, "t.id = s.id", delete_by_source("t.id > 30"))


def test_one_source_row_changes_many_target_rows(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-74: also where the new row is made of source columns alone."""
    outcome = merge(spark, log, source((1, "x", -1)), "t.v >= 18 AND t.v < 22", update())
    assert outcome.rows.updated == 4
    assert [r for r in table_rows(spark, log) if r["v"] == -1] == [row(1, -1, "x")] * 4


@pytest.mark.thorough
def test_one_source_row_updates_one_row_and_deletes_others(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """The staged row alone still makes the one new row."""
    outcome = merge(
        spark, log, source((1, "x", -1)), "t.v >= 18 AND t.v < 22", delete("t.v <> 20"), update()
    )
    assert (outcome.rows.updated, outcome.rows.deleted) == (1, 3)
    rows = table_rows(spark, log)
    assert [r for r in rows if r["v"] == -1] == [row(1, -1, "x")]
    assert len(rows) == 37


def test_unmatched_source_rows_are_all_inserted(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-75; files are searched where the key may be, and none is touched."""
    before = active_files(log)
    twice = source((15, "n", 1), (100, "n", 1), (100, "n", 1), (None, "n", 1))
    outcome = merge(spark, log, twice, "t.id = s.id", insert())
    assert (outcome.rows.inserted, outcome.rows.copied) == (3, 0)
    assert set(before) < set(active_files(log))
    assert outcome.metrics["numTargetFilesRemoved"] == 0


def test_null_keys_match_nobody(
    spark: SparkSession, root: Path, source: Callable[..., DataFrame]
) -> None:
    """M-77, M-79."""
    log = lay_table(root, SCHEMA, [[row(None, 1), row(2, 2)]])
    outcome = merge(
        spark, log, source((None, "s", 9)), "t.id = s.id", update(), insert(),
        update_by_source(v="t.v + 100"),
    )  # fmt: skip
    assert (outcome.rows.by_source_updated, outcome.rows.inserted) == (2, 1)
    wanted = [row(None, 101), row(2, 102), row(None, 9, "s")]
    assert table_rows(spark, log) == sorted(wanted, key=repr)


def test_clauses_fire_in_order_and_a_matched_row_without_one_stays(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-02, M-78: never inserted, and no business of NOT MATCHED BY SOURCE."""
    new = source((1, "a", 1), (2, "a", 2), (3, "a", 3), (60, "a", 60), (61, "a", 61))
    outcome = merge(
        spark, log, new, "t.id = s.id",
        delete("s.v = 1"), update("s.v < 3", v="-1"), update("s.v = 1", v="-2"),
        insert("s.v = 60", id="s.id", p="'first'"), insert("s.v < 100", id="s.id", p="'second'"),
        delete_by_source("t.id = 3 OR t.id = 4"), update_by_source("t.id < 6", p="'alone'"),
    )  # fmt: skip
    got = {r["id"]: r for r in table_rows(spark, log)}
    assert 1 not in got
    assert got[2] == row(2, -1)
    assert got[3] == row(3, 3)
    assert 4 not in got
    assert got[5] == row(5, 5, "alone")
    assert got[0] == row(0, 0, "alone")
    assert (got[60], got[61]) == (row(60, None, "first"), row(61, None, "second"))
    rows = outcome.rows
    assert (rows.matched_deleted, rows.matched_updated, rows.inserted) == (1, 1, 2)
    assert (rows.by_source_deleted, rows.by_source_updated) == (1, 2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("threshold", ["10MB", "-1"])
@pytest.mark.parametrize(
    ("on", "updated"), [("s.id BETWEEN t.id - 1 AND t.id", 2), ("true", 40), ("false", 0)]
)
def test_conditions_without_an_equality(
    spark: SparkSession,
    log: TableLog,
    source: Callable[..., DataFrame],
    *,
    on: str,
    updated: int,
    threshold: str,
) -> None:
    """M-35, whatever sizes Spark believes in."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        outcome = merge(
            spark, log, source((5, "z", -5)), on, update(), delete_by_source("t.id = 39")
        )
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert outcome.rows.updated == updated
    assert outcome.rows.by_source_deleted == (0 if on == "true" else 1)
    got = table_rows(spark, log)
    assert len([r for r in got if r["v"] == -5]) == updated


# --- nothing to do ------------------------------------------------------------------------


def test_a_merge_that_changes_nothing_commits_nothing(
    spark: SparkSession, log: TableLog, root: Path, source: Callable[..., DataFrame]
) -> None:
    """M-162, W-3: matched rows no clause wants leave their files alone."""
    before = data_files(root)
    same = source(*[(n, "a", n) for n in range(40)])
    outcome = merge(spark, log, same, "t.id = s.id", update("s.v <> t.v"), insert())
    assert outcome.version is None
    assert outcome.metrics["numSourceRows"] == 40
    assert log.latest_version() == 0
    assert data_files(root) == before


def test_an_empty_source(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    empty = source((1, "a", 1)).where("id > 5")
    outcome = merge(spark, log, empty, "t.id = s.id", update(), insert())
    assert (outcome.version, outcome.rows.source) == (None, 0)
    outcome = merge(spark, log, empty, "t.id = s.id", update(), delete_by_source("t.id < 15"))
    assert outcome.plan is not None
    assert outcome.plan.search is Search.TARGET_ONLY
    assert outcome.rows.by_source_deleted == 15
    assert outcome.rows.copied == 5
    assert [r["id"] for r in table_rows(spark, log)] == list(range(15, 40))


def test_files_that_lose_every_row_are_removed_without_a_copy(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-83."""
    new = source(*[(n, "a", n) for n in range(10, 20)])
    outcome = merge(spark, log, new, "t.id = s.id", delete())
    assert outcome.metrics["numTargetFilesAdded"] == 0
    assert outcome.metrics["numTargetFilesRemoved"] == 1
    assert len(active_files(log)) == 3


@pytest.mark.smoke
def test_by_source_clauses_reach_only_files_of_their_condition(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """W-2, M-82: the reference rewrites the whole table."""
    new = source(*[(n, "a", n) for n in range(30, 38)])
    outcome = merge(
        spark, log, new, "t.id = s.id", update("s.v <> t.v"), delete_by_source("t.id >= 30")
    )
    assert outcome.rows.by_source_deleted == 2
    assert outcome.plan is not None
    assert len(outcome.plan.candidates) == 1
    assert outcome.metrics["numTargetFilesRemoved"] == 1


# --- failures -----------------------------------------------------------------------------


def test_a_rival_that_wins_between_read_and_commit(
    spark: SparkSession, log: TableLog, root: Path, source: Callable[..., DataFrame]
) -> None:
    before = data_files(root)

    def race(phase: Phase) -> None:
        if phase is Phase.STAGED:
            rival = TableLog.open(str(root))
            merge(spark, rival, source((3, "r", -3)), "t.id = s.id", update())

    with pytest.raises(DeltaError) as lost:
        merge(spark, log, source((4, "m", -4)), "t.id = s.id", update(), on_phase=race)
    assert isinstance(lost.value, ConcurrentAppendException) or "CONCURRENT" in str(lost.value)
    assert log.latest_version() == 1
    got = {r["id"]: r["v"] for r in table_rows(spark, log)}
    assert (got[3], got[4]) == (-3, 4)
    assert data_files(root) == {*before, *active_files(log)}, "the loser's files are removed"


@pytest.mark.thorough
def test_a_rival_elsewhere_does_not_matter(
    spark: SparkSession, log: TableLog, root: Path, source: Callable[..., DataFrame]
) -> None:
    """Both read and write other key ranges: the bounds of the source prove it."""

    def race(phase: Phase) -> None:
        if phase is Phase.STAGED:
            rival = TableLog.open(str(root))
            merge(spark, rival, source((33, "r", -3)), "t.id = s.id", update())

    outcome = merge(spark, log, source((4, "m", -4)), "t.id = s.id", update(), on_phase=race)
    assert outcome.version == 2
    got = {r["id"]: r["v"] for r in table_rows(spark, log)}
    assert (got[33], got[4]) == (-3, -4)


def test_two_merges_that_insert_one_key_conflict(
    spark: SparkSession, log: TableLog, root: Path, source: Callable[..., DataFrame]
) -> None:
    """Neither read a file: the predicate of the read set says what was looked for in vain."""

    def race(phase: Phase) -> None:
        if phase is Phase.STAGED:
            rival = TableLog.open(str(root))
            merge(spark, rival, source((50, "r", 1)), "t.id = s.id", update(), insert())

    with pytest.raises(ConcurrentAppendException):
        merge(spark, log, source((50, "m", 2)), "t.id = s.id", update(), insert(), on_phase=race)
    assert [r["p"] for r in table_rows(spark, log) if r["id"] == 50] == ["r"]


def test_a_failure_after_one_job_wrote_everything_leaves_nothing(
    spark: SparkSession,
    log: TableLog,
    root: Path,
    source: Callable[..., DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = data_files(root)
    written: list[int] = []

    def fail(*_: Any) -> None:
        written.append(len(data_files(root)))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "read_metadata", fail)
    with pytest.raises(OSError, match="No space left"):
        merge(spark, log, source((3, "b", 1), (77, "c", 2)), "t.id = s.id", update(), insert())
    assert written == [len(before) + 3], "a copy, new rows and the staged source"
    assert data_files(root) == before
    assert log.latest_version() == 0


@pytest.mark.parametrize("broken", ["split", "rows"])
def test_a_failure_on_the_way_leaves_nothing(
    spark: SparkSession,
    log: TableLog,
    root: Path,
    source: Callable[..., DataFrame],
    monkeypatch: pytest.MonkeyPatch,
    *,
    broken: str,
) -> None:
    before = data_files(root)
    value = "s.v"
    if broken == "split":

        def fail(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(pq, "read_metadata", fail)
    else:
        value = "raise_error('no such value')"
    with pytest.raises(Exception, match=r"No space left|no such value"):
        merge(spark, log, source((3, "b", 1)), "t.id = s.id", update(v=value), insert())
    assert data_files(root) == before
    assert log.latest_version() == 0
    assert len(table_rows(spark, log)) == 40


@pytest.mark.smoke
@pytest.mark.usefixtures("without_workers")
def test_spark_copies_where_workers_cannot(
    spark: SparkSession, root: Path, source: Callable[..., DataFrame]
) -> None:
    files = [[row(n, n, p) for n in range(k, k + 5)] for k, p in ((0, "a"), (10, "b"), (20, "b"))]
    log = lay_table(root, SCHEMA, files, partition_by=["p"])
    before = data_files(root)

    new = source((2, "a", -2), (11, "b", -11), (20, "b", -20), (77, "c", 77))
    outcome = merge(spark, log, new, "t.id = s.id", update(), insert())
    changed = {2: row(2, -2), 11: row(11, -11, "b"), 20: row(20, -20, "b")}
    rows = [changed.get(r["id"], r) for f in files for r in f]
    assert table_rows(spark, log) == sorted([*rows, row(77, 77, "c")], key=repr)
    assert (outcome.rows.copied, outcome.rows.updated, outcome.rows.inserted) == (12, 3, 1)
    assert data_files(root) == {*before, *active_files(log)}


def test_an_append_only_table_takes_inserts_and_nothing_else(
    spark: SparkSession, root: Path, source: Callable[..., DataFrame]
) -> None:
    """M-111: refused before any file is written."""
    log = lay_table(root, SCHEMA, [[row(1)]], properties={"delta.appendOnly": "true"})
    before = data_files(root)
    assert merge(spark, log, source((2, "a", 2)), "t.id = s.id", update(), insert()).version == 1
    with pytest.raises(InvalidRequestError) as refused:
        merge(spark, log, source((1, "a", 2)), "t.id = s.id", update(), insert())
    assert refused.value.code is ErrorCode.CANNOT_MODIFY_APPEND_ONLY
    assert len(data_files(root)) == len(before) + 1


# --- the source ---------------------------------------------------------------------------


def test_a_source_that_changes_its_mind_is_evaluated_once(
    spark: SparkSession, log: TableLog
) -> None:
    """M-153, M-156: keys that are random each time would match here and be inserted there."""
    moody = spark.range(200).select(
        (F.rand() * 80).cast("long").alias("id"), F.lit("a").alias("p"), F.lit(-1).alias("v")
    )
    once = moody.dropDuplicates(["id"])
    outcome = merge(spark, log, once, "t.id = s.id", update(v="s.v"), insert())
    rows = table_rows(spark, log)
    assert outcome.rows.updated + outcome.rows.inserted == outcome.rows.source
    assert len({r["id"] for r in rows}) == len(rows) == 40 + outcome.rows.inserted


def test_a_statement_of_one_application_version_is_executed_once(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    """M-92."""
    keys = {"txnAppId": "nightly", "txnVersion": "7"}
    for key, value in keys.items():
        spark.conf.set(f"spark.databricks.delta.write.{key}", value)
    try:
        first = merge(spark, log, source((99, "a", 1)), "t.id = s.id", insert())
        spec = MergeSpec(on="t.id = s.id", clauses=(insert(),))
        target = scan(spark, log.snapshot()).alias("t")
        again = run_merge(
            spark, log, spec, target_rows=target, source_rows=source((100, "a", 1)).alias("s")
        )
    finally:
        for key in keys:
            spark.conf.unset(f"spark.databricks.delta.write.{key}")
    assert first.version == 1
    assert again.collect() == []
    assert log.latest_version() == 1
    assert log.snapshot().set_transactions["nightly"].version == 7


def test_how_many_spark_jobs_an_upsert_runs(
    spark: SparkSession, log: TableLog, source: Callable[..., DataFrame]
) -> None:
    context = spark.sparkContext
    new = source((3, "b", 300), (12, "b", 1200), (50, "b", 5000))
    context.setJobGroup("upsert", "counted")
    try:
        merge(spark, log, new, "t.id = s.id", update(), insert())
    finally:
        context.setJobGroup("other", "not counted")
    jobs = context.statusTracker().getJobIdsForGroup("upsert")
    assert len(jobs) == JOBS_OF_AN_UPSERT


@pytest.mark.thorough
@pytest.mark.usefixtures("without_workers")
def test_spark_joins_where_workers_cannot_look_keys_up(
    spark: SparkSession,
    log: TableLog,
    source: Callable[..., DataFrame],
) -> None:
    refused: list[NotApplicable] = []

    def refuse(*_: Any, **__: Any) -> NotApplicable:
        refused.append(NotApplicable(reason="as asked"))
        return refused[-1]

    new = source((3, "b", 300), (None, "b", 5), (50, "b", 5000))
    outcome = merge(spark, log, new, "t.id = s.id", update(), insert(), look_up=refuse)
    assert len(refused) == 1
    assert (outcome.rows.matched_updated, outcome.rows.inserted) == (1, 2)
    with pytest.raises(InvalidRequestError, match=r"\(id = 7\) matches 2 source rows"):
        merge(
            spark,
            log,
            source((7, "b", 1), (7, "c", 2)),
            "t.id = s.id",
            update(),
            look_up=refuse,
        )
