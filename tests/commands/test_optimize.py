"""OPTIMIZE and auto compaction: the same rows in other files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.optimize import OptimizeSpec, execute_optimize
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.commit.commit_request import Phase
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import decode_path
from puredelta.spark.session.data_access import packed_code
from puredelta.spark.write.bin_rewrite import spark_hash
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from puredelta.worker.data_files import rewrite_file
from tests.commands.dml.features import (
    FEED,
    MAPPED,
    TRACKING,
    VECTORS,
    changes_of,
    is_explained,
    make_table,
    rows_of,
    source,
    tracked_rows,
)
from tests.commands.dml.tables import delete, insert, merge, update

PREFIX = "spark.databricks.delta."


def stats(log: TableLog) -> list[dict[str, Any]]:
    return [json.loads(add.stats or "{}") for add in log.snapshot().files.adds()]


def parquet_files(root: Path) -> set[str]:
    return {str(path) for path in root.rglob("*.parquet") if "_delta_log" not in path.parts}


def operations(log: TableLog) -> list[str | None]:
    return [entry.commit_info.operation for entry in log.history() if entry.commit_info]


def test_compaction_keeps_rows_ids_and_order(spark: SparkSession, tmp_path: Path) -> None:
    files = [[(n, f"v{n}", "xy"[n % 2]) for n in range(at, at + 4)] for at in (8, 4, 0)]
    features = {**FEED, **VECTORS, **TRACKING, **MAPPED}
    log = make_table(spark, tmp_path, *files, properties=features, partition_by=["p"])
    table = DeltaTable.forPath(spark, str(tmp_path))
    table.delete("k = 5")
    rows, ids = rows_of(spark, log), tracked_rows(spark, log)
    before = log.snapshot()

    result = puredelta.sql(spark, f"OPTIMIZE delta.`{tmp_path}` WHERE p = 'y' AND p > ''")
    metrics = result.collect()[0]["metrics"]

    assert (metrics.numFilesAdded, metrics.numFilesRemoved, metrics.numBins) == (1, 3, 1)
    assert metrics.deletionVectorStats.numDeletionVectorRowsRemoved == 1
    after = log.snapshot()
    assert after.version == before.version + 1
    [y] = [add for add in after.files.adds() if "y" in add.partition_values.values()]
    assert y.deletion_vector is None
    assert rows_of(spark, log) == rows
    assert tracked_rows(spark, log) == ids
    assert not changes_of(spark, log, after.version)
    shown = table.toDF().where("p = 'y'").select("k").collect()
    assert [row.k for row in shown] == [9, 11, 1, 3, 7]  # in the order of the log
    info = log.history()[0].commit_info
    assert info is not None
    assert info.operation_parameters["predicate"] == "[\"p = 'y' AND p > ''\"]"
    assert (info.isolation_level, info.is_blind_append) == ("SnapshotIsolation", False)

    table.optimize().executeCompaction()
    again = table.optimize().executeCompaction().collect()[0]["metrics"]
    assert log.snapshot().version == after.version + 1  # the other partition, then nothing
    assert (again.numFilesAdded, again.totalConsideredFiles) == (0, 2)
    assert rows_of(spark, log) == rows


@pytest.mark.thorough
def test_a_partition_keeps_the_order_of_the_log(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's writer wants rows sorted by partition, and would drop the order they have."""
    files = [[(n, "v", "p")] for n in (5, 3, 8, 1, 9, 2, 7)]
    make_table(spark, tmp_path, *files, properties={}, partition_by=["p"])
    table = DeltaTable.forPath(spark, str(tmp_path))
    table.optimize().executeCompaction()
    assert [row.k for row in table.toDF().select("k").collect()] == [5, 3, 8, 1, 9, 2, 7]


@pytest.mark.thorough
def test_z_order_makes_small_boxes(spark: SparkSession, tmp_path: Path) -> None:
    """Most files cover a quarter of either column, where all of them covered both."""
    size = 64
    cells: list[tuple[int | None, str | None, str]] = [
        (x, f"{y:03d}", "p") for y in range(size) for x in range(size)
    ]
    cells.append((None, None, "p"))
    log = make_table(spark, tmp_path, cells[:2000], cells[2000:], properties={})
    rows = rows_of(spark, log)
    total = log.snapshot().files.total_size_bytes
    spark.conf.set(f"{PREFIX}optimize.maxFileSize", str(total // 16))
    try:
        DeltaTable.forPath(spark, str(tmp_path)).optimize().executeZOrderBy("k", "V")
    finally:
        spark.conf.unset(f"{PREFIX}optimize.maxFileSize")
    assert rows_of(spark, log) == rows
    found = stats(log)
    assert len(found) == 16
    assert max(s["numRecords"] for s in found) < 2 * len(cells) / 16
    for name in ("k", "v"):
        spans = [int(s["maxValues"][name]) - int(s["minValues"][name]) for s in found]
        assert sum(spans) / len(spans) < size / 2.5
    info = log.history()[0].commit_info
    assert info is not None
    assert info.operation_parameters["zOrderBy"] == '["k","V"]'


def test_appends_do_not_conflict_deletes_do(spark: SparkSession, tmp_path: Path) -> None:
    log = make_table(spark, tmp_path, *([(n, "v", "x")] for n in range(3)), properties={})
    rival = DeltaTable.forPath(spark, str(tmp_path))

    def append() -> None:
        rows = spark.createDataFrame(pa.table({"k": pa.array([9], pa.int32()), "v": ["w"]}))
        puredelta.write(rows, str(tmp_path), mode="append")

    def during(action: Callable[[], None]) -> Callable[[Phase], None]:
        return lambda phase: action() if phase is Phase.STAGED else None

    execute_optimize(spark, log, OptimizeSpec(), on_phase=during(append))
    assert operations(log)[:2] == ["OPTIMIZE", "WRITE"]
    assert sorted(row[0] for row in rows_of(spark, log)) == [0, 1, 2, 9]

    at_hand = parquet_files(tmp_path)
    with pytest.raises(DeltaError) as error:
        execute_optimize(spark, log, OptimizeSpec(), on_phase=during(lambda: rival.delete("k = 9")))
    assert error.value.code is ErrorCode.CONCURRENT_DELETE_READ
    assert operations(log)[0] == "DELETE"
    assert parquet_files(tmp_path) <= at_hand  # of the OPTIMIZE nothing is left


def test_deletes_beside_an_optimize(spark: SparkSession, tmp_path: Path) -> None:
    """The vectors of the DELETE move into the new files, whose rows are in the old order."""
    files = [[(n, "v", "xyz"[n % 3]) for n in range(at, at + 9)] for at in (18, 0, 9)]
    features = {**VECTORS, **TRACKING, **FEED}
    log = make_table(spark, tmp_path, *files, properties=features, partition_by=["p"])
    rival = DeltaTable.forPath(spark, str(tmp_path))
    rival.delete("k IN (3, 19)")
    ids = tracked_rows(spark, log)
    before = rows_of(spark, log)

    def delete(phase: Phase) -> None:
        if phase is Phase.STAGED:
            rival.delete("k IN (0, 4, 26)")

    execute_optimize(spark, log, OptimizeSpec(), on_phase=delete)
    assert operations(log)[:2] == ["OPTIMIZE", "DELETE"]
    assert len(log.snapshot().files) == 3
    left = Counter({row: n for row, n in before.items() if row[0] not in {0, 4, 26}})
    assert rows_of(spark, log) == left
    assert tracked_rows(spark, log) == {k: v for k, v in ids.items() if k not in {0, 4, 26}}
    assert not changes_of(spark, log, log.snapshot().version)


@pytest.mark.thorough
def test_a_merge_follows_an_optimize(spark: SparkSession, tmp_path: Path) -> None:
    files = [[(n, "v", "p") for n in range(at, at + 4)] for at in (8, 0, 4)]
    log = make_table(spark, tmp_path, *files, properties={**VECTORS, **TRACKING, **FEED})
    table = DeltaTable.forPath(spark, str(tmp_path))
    table.delete("k = 9")
    ids = tracked_rows(spark, log)

    def compact(phase: Phase) -> None:
        if phase is Phase.STAGED:
            table.optimize().executeCompaction()

    new = source(spark, (10, "w", "p"), (1, "w", "p"), (20, "w", "p"), (7, "", "p"))
    changed = (delete("s.v = ''"), update(v="s.v"), insert())
    merge(spark, log, new, "t.k = s.k", *changed, on_phase=compact)
    assert operations(log)[:2] == ["MERGE", "OPTIMIZE"]
    kept = {n: "w" if n in {1, 10} else "v" for n in range(12) if n not in {7, 9}}
    assert {row[0]: row[1] for row in rows_of(spark, log)} == {**kept, 20: "w"}
    assert is_explained(spark, log, log.snapshot().version)
    after = tracked_rows(spark, log)
    assert {k: after[k][0] for k in kept} == {k: ids[k][0] for k in kept}
    (big,) = (add for add in log.snapshot().files.adds() if add.deletion_vector)
    assert big.deletion_vector is not None
    assert big.deletion_vector.cardinality == 3


def test_auto_compaction_follows_writes_and_merges(spark: SparkSession, tmp_path: Path) -> None:
    wish = {"delta.autoOptimize.autoCompact": "true"}
    files = ([(n, "v", p)] for n, p in enumerate("xxy"))
    log = make_table(spark, tmp_path, *files, properties=wish, partition_by=["p"])
    new = pa.table({"k": pa.array([7], pa.int32()), "v": ["w"], "p": ["x"]})
    spark.conf.set(f"{PREFIX}autoCompact.minNumFiles", "3")
    try:
        puredelta.write(spark.createDataFrame(new), str(tmp_path), mode="append")
        assert operations(log)[:2] == ["OPTIMIZE", "WRITE"]
        info = log.history()[0].commit_info
        assert info is not None
        assert info.operation_parameters["auto"] is True
        assert info.operation_parameters["predicate"] == "[\"(`p` <=> 'x')\"]"
        assert len(log.snapshot().files) == 2

        spark.conf.set(f"{PREFIX}autoCompact.minNumFiles", "1")
        spark.conf.set(f"{PREFIX}autoCompact.maxFileSize", "no size: the compaction fails")
        DeltaTable.forPath(spark, str(tmp_path)).update("k = 7", {"v": "'z'"})
        assert operations(log)[0] == "UPDATE"
        spark.conf.unset(f"{PREFIX}autoCompact.maxFileSize")

        spark.conf.set(f"{PREFIX}autoCompact.enabled", "false")
        puredelta.write(spark.createDataFrame(new), str(tmp_path), mode="append")
        assert operations(log)[0] == "WRITE"
        spark.conf.unset(f"{PREFIX}autoCompact.enabled")

        puredelta.sql(spark, f"UPDATE delta.`{tmp_path}` SET v = 'u' WHERE p = 'x' AND v = 'w'")
        assert operations(log)[:2] == ["OPTIMIZE", "UPDATE"]
        assert len(log.snapshot().files) == 2
    finally:
        for name in ("minNumFiles", "maxFileSize", "enabled"):
            spark.conf.unset(f"{PREFIX}autoCompact.{name}")


@pytest.mark.thorough
def test_auto_compaction_works_on_so_many_partitions(spark: SparkSession, tmp_path: Path) -> None:
    wish = {"delta.autoOptimize.autoCompact": "true"}
    files = ([(n, "v", p)] for n, p in enumerate("xyyzzz"))
    log = make_table(spark, tmp_path, *files, properties=wish, partition_by=["p"])
    new = pa.table({"k": pa.array([7, 8, 9], pa.int32()), "v": ["w"] * 3, "p": ["x", "y", "z"]})
    auto = {"minNumFiles": "2", "maxNumModifiedPartitions": "2"}
    with temporary_settings(spark, {f"{PREFIX}autoCompact.{k}": v for k, v in auto.items()}):
        puredelta.write(spark.createDataFrame(new), str(tmp_path), mode="append")
    assert operations(log)[:2] == ["OPTIMIZE", "WRITE"]
    left = Counter(log.snapshot().files.partition_texts("p").to_pylist())
    assert left == {"x": 2, "y": 1, "z": 1}


def test_what_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    log = make_table(spark, tmp_path, [(1, "v", "x")], properties={}, partition_by=["p"])
    cases = {
        "k = 1": ErrorCode.NON_PARTITION_COLUMN_REFERENCE,
        "nope = 1": ErrorCode.NON_PARTITION_COLUMN_REFERENCE,
        "p = = 1": ErrorCode.FAILED_RECOGNIZE_PREDICATE,
        "": ErrorCode.FAILED_RECOGNIZE_PREDICATE,
        "p": ErrorCode.FILTER_NOT_BOOLEAN,
        "p IN (SELECT 1)": ErrorCode.UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES,
    }
    for predicate, code in cases.items():
        with pytest.raises(DeltaError) as error:
            execute_optimize(spark, log, OptimizeSpec(predicates=(predicate,)))
        assert error.value.code is code, predicate
    builder = DeltaTable.forPath(spark, str(tmp_path)).optimize()
    with pytest.raises(TypeError, match="Z-order column must be str"):
        builder.executeZOrderBy(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="partitionFilter must be str"):
        builder.where(1)  # type: ignore[arg-type]
    assert log.snapshot().version == 0


def test_hash_is_that_of_spark(spark: SparkSession) -> None:
    values = [0, 1, 7, 12345, 2**31 - 1]
    texts = ", ".join(f"hash({value})" for value in values)
    assert list(spark.sql(f"SELECT {texts}").collect()[0]) == [spark_hash(v) for v in values]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [({}, []), ({**VECTORS, **FEED}, ["p"]), ({**MAPPED, **VECTORS}, []), (TRACKING, ["p"])],
)
def test_workers_combine_files(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], partition_by: list[str]
) -> None:
    files = [[(n, f"v{n}", "xy"[n % 2]) for n in range(at, at + 6)] for at in (12, 6, 0)]
    log = make_table(spark, tmp_path, *files, properties=properties, partition_by=partition_by)
    DeltaTable.forPath(spark, str(tmp_path)).delete("k = 7")
    rows = rows_of(spark, log)
    outcome = execute_optimize(spark, log, OptimizeSpec())
    assert (outcome.num_combined, len(outcome.added)) == (len(outcome.bins), len(outcome.bins))
    assert rows_of(spark, log) == rows
    assert execute_optimize(spark, log, OptimizeSpec()).version is None
    assert log.snapshot().files
    info = next(iter(log.history())).commit_info
    assert info is not None
    assert "puredelta.rowOrder" in (info.tags or {})


@pytest.mark.thorough
def test_files_that_are_not_alike_are_combined_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    puredelta.write(spark.range(3).coalesce(1), path, properties={**MAPPED, **VECTORS})
    wider = spark.range(3, 6).selectExpr("id", "'x' s").coalesce(1)
    puredelta.write(wider, path, mode="append", options={"mergeSchema": True})
    log = TableLog.open(path)
    rows = rows_of(spark, log)
    outcome = execute_optimize(spark, log, OptimizeSpec())
    assert (outcome.num_combined, len(outcome.added)) == (0, 1)
    assert rows_of(spark, log) == rows
    puredelta.write(wider, path, mode="append")
    puredelta.sql(spark, f"ALTER TABLE delta.`{path}` DROP COLUMN s")
    outcome = execute_optimize(spark, log, OptimizeSpec())
    assert (outcome.num_combined, len(outcome.added)) == (0, 1)
    (add,) = log.snapshot().files.adds()
    assert len(pq.read_schema(tmp_path / "t" / decode_path(add.path))) == 1


@pytest.mark.thorough
def test_large_row_groups_are_copied(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file has the row groups of the old ones, but for those that lose a row."""
    monkeypatch.setattr(rewrite_file, "_LARGE_GROUP_BYTES", 1)
    packed_code.cache_clear()
    files = [[(n, f"v{n}", "x") for n in range(at, at + 6)] for at in (12, 6, 0)]
    log = make_table(spark, tmp_path, *files, properties=VECTORS)
    DeltaTable.forPath(spark, str(tmp_path)).delete("k = 7")
    rows = rows_of(spark, log)
    with temporary_settings(spark, {"spark.puredelta.workers.mergeSmallFiles": "false"}):
        outcome = execute_optimize(spark, log, OptimizeSpec())
    packed_code.cache_clear()
    assert (outcome.num_combined, outcome.copied_groups, len(outcome.added)) == (1, 2, 1)
    (add,) = log.snapshot().files.adds()
    footer = pq.read_metadata(tmp_path / decode_path(add.path))
    assert sorted(footer.row_group(n).num_rows for n in range(footer.num_row_groups)) == [5, 6, 6]
    assert rows_of(spark, log) == rows
    assert stats(log)[0]["numRecords"] == 17
