"""delta-spark takes our commits and checkpoints for its own: X-33..X-36, M-161."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.files.clock import wall_clock
from puredelta.log.files.file_table import remove_file
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, DomainMetadata, SetTransaction
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.store.local import LocalStore
from tests.log.tables import (
    ENGINE,
    TRUNCATE,
    WRITE,
    add,
    create_table,
    feature_protocol,
    metadata,
    transact,
)

PROTOCOL = feature_protocol("domainMetadata", "inCommitTimestamp", readers=("deletionVectors",))


def data_file(root: Path, name: str, ids: range, part: int) -> Add:
    """A real Parquet file of the test schema, and the action that adds it."""
    path = root / name
    pq.write_table(
        pa.table({"id": pa.array(ids, pa.int64()), "sub": pa.array([0] * len(ids), pa.int32())}),
        path,
    )
    action = add(name, {"part": str(part)}, ids=(ids[0], ids[-1]), rows=len(ids))
    return Add(
        **{
            **{field: getattr(action, field) for field in Add.__slots__},
            "size_bytes": path.stat().st_size,
        }
    )


def build(root: Path, **properties: str) -> TableLog:
    root.mkdir()
    store = LocalStore(root)
    first = data_file(root, "a.parquet", range(10), 1)
    log = create_table(
        store,
        first,
        data_file(root, "b.parquet", range(10, 30), 2),
        protocol=PROTOCOL,
        partitioned_by=("part",),
        delta__enableInCommitTimestamps="true",
        delta__checkpointInterval="2",
        **properties,
    )
    transact(log).commit(
        [SetTransaction(app_id="app", version=7), DomainMetadata(domain="d", configuration="{}")],
        WRITE,
        metrics={"numFiles": 0},
    )
    transaction = transact(log)
    transaction.read_files(None, log.snapshot().files)
    transaction.commit(
        [remove_file(first, deleted_ms=wall_clock()), data_file(root, "c.parquet", range(5), 3)],
        TRUNCATE,
        user_metadata="note",
    )
    return log


def delta_log(spark: SparkSession, root: Path) -> Any:
    jvm: Any = spark._jvm
    logs = jvm.org.apache.spark.sql.delta.DeltaLog
    logs.clearCache()
    return logs.forTable(spark._jsparkSession, str(root))


TYPED = {"delta__checkpoint__writeStatsAsStruct": "true"}
TYPED_ONLY = {**TYPED, "delta__checkpoint__writeStatsAsJson": "false"}
STATISTICS = pytest.mark.parametrize(
    "properties", [{}, TYPED, TYPED_ONLY], ids=["JSON", "JSON and typed", "typed"]
)


@STATISTICS
@pytest.mark.parametrize("commits_kept", [True, False])
def test_the_reference_reads_state_from_our_checkpoint(
    spark: SparkSession, tmp_path: Path, commits_kept: bool, properties: dict[str, str]
) -> None:
    root = tmp_path / "table"
    log = build(root, **properties)
    if not commits_kept:
        for version in range(2):
            log.store.delete(log_path(commit_name(version)))
    snapshot = delta_log(spark, root).update(False, _none(spark), _none(spark))
    assert snapshot.version() == 2
    assert snapshot.numOfFiles() == 2
    assert snapshot.numOfRemoves() == 1
    assert snapshot.numOfSetTransactions() == 1
    assert snapshot.domainMetadata().size() == 1
    assert snapshot.logSegment().checkpointProvider().version() == 2
    hint = delta_log(spark, root).readLastCheckpointFile()
    assert hint.get().version() == 2
    rows = spark.read.format("delta").load(str(root)).selectExpr("count(*)", "sum(id)", "sum(part)")
    assert tuple(rows.first() or ()) == (25, sum(range(10, 30)) + sum(range(5)), 20 * 2 + 5 * 3)


@STATISTICS
def test_the_reference_skips_files_by_our_checkpointed_statistics(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    root = tmp_path / "table"
    log = build(root, **properties)
    for version in range(2):
        log.store.delete(log_path(commit_name(version)))
    found = spark.read.format("delta").load(str(root)).where("id >= 10 and part = 2")
    assert [Path(name).name for name in found.inputFiles()] == ["b.parquet"]


def test_the_reference_goes_on_writing_and_we_go_on_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "table"
    log = build(root)
    table = f"delta.`{root}`"
    spark.sql(f"DELETE FROM {table} WHERE id = 12")
    spark.sql(f"INSERT INTO {table} VALUES (100, 4, 0)")
    assert log.snapshot().version == 4
    transact(log).commit([data_file(root, "d.parquet", range(200, 201), 5)], WRITE)
    assert spark.sql(f"SELECT count(*) FROM {table}").first()[0] == 26  # type: ignore[index]
    timestamps = [entry.timestamp_ms for entry in log.history()]
    assert timestamps == sorted(timestamps, reverse=True)


def test_history_shows_what_we_recorded(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "table"
    build(root)
    history = {
        row["version"]: row for row in spark.sql(f"DESCRIBE HISTORY delta.`{root}`").collect()
    }
    assert [history[v]["operation"] for v in range(3)] == ["WRITE", "WRITE", "TRUNCATE"]
    assert history[1]["operationMetrics"] == {"numFiles": "0"}
    assert history[1]["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert (history[0]["readVersion"], history[2]["readVersion"]) == (None, 1)
    assert [history[v]["isBlindAppend"] for v in range(3)] == [True, True, False]
    assert history[2]["userMetadata"] == "note"
    assert {history[v]["engineInfo"] for v in range(3)} == {ENGINE}
    assert {history[v]["isolationLevel"] for v in range(3)} == {"Serializable"}


def test_provenance_has_the_keys_and_order_of_the_references_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The same append by both: the same keys in the same order, the same kinds of values."""
    root = tmp_path / "table"
    spark.range(3).write.format("delta").save(str(root))
    spark.range(3).write.format("delta").mode("append").save(str(root))
    log = TableLog(LocalStore(root))
    words = spark.conf.get("spark.databricks.delta.commitInfo.userMetadata")
    transact(log).commit([], WRITE, metrics={"numFiles": 1}, user_metadata=words)
    theirs, ours = (
        json.loads((root / log_path(commit_name(v))).read_text().splitlines()[0])["commitInfo"]
        for v in (1, 2)
    )
    assert list(ours) == list(theirs)
    assert {k: type(v) for k, v in ours.items()} == {k: type(v) for k, v in theirs.items()}
    assert ours["operationParameters"] == theirs["operationParameters"]


def test_a_conflict_with_the_reference_is_found(spark: SparkSession, tmp_path: Path) -> None:
    from puredelta.errors import ConcurrentDeleteDeleteException  # noqa: PLC0415

    root = tmp_path / "table"
    log = build(root)
    files = log.snapshot().files
    transaction = transact(log)
    spark.sql(f"DELETE FROM delta.`{root}` WHERE id = 12")
    removed = next(f for f in files.adds() if f.path == "b.parquet")
    with pytest.raises(ConcurrentDeleteDeleteException, match="a concurrent DELETE") as caught:
        transaction.commit([remove_file(removed, deleted_ms=1)], TRUNCATE)
    assert caught.value.details["partitionValues"] == "[part=2]"


def test_metadata_of_ours_is_metadata_of_theirs(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "table"
    log = build(root)
    changed = metadata(
        partitioned_by=("part",),
        delta__enableInCommitTimestamps="true",
        delta__checkpointInterval="5",
        own__key="value",
    )
    transact(log).commit([changed], WRITE)
    shown = spark.sql(f"SHOW TBLPROPERTIES delta.`{root}`").collect()
    assert {row["key"]: row["value"] for row in shown}["own.key"] == "value"


def _none(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return getattr(jvm.scala, "None$").__getattr__("MODULE$")
