"""REORG ... APPLY (PURGE), and DROP FEATURE of deletion vectors, which purges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable
from tests.commands.dml.features import (
    FEED,
    MAPPED,
    TRACKING,
    VECTORS,
    changes_of,
    make_table,
    rows_of,
    tracked_rows,
)


def reorg(spark: SparkSession, path: Path, where: str = "") -> Any:
    text = f"REORG TABLE delta.`{path}` {where} APPLY (PURGE)"
    return puredelta.sql(spark, text).collect()[0]["metrics"]


def num_vectors(log: TableLog) -> int:
    return sum(add.deletion_vector is not None for add in log.snapshot().files.adds())


def make(spark: SparkSession, path: Path, **features: str) -> TableLog:
    files = [[(n, f"v{n}", "xy"[n % 2]) for n in range(at, at + 10)] for at in (0, 10, 20)]
    log = make_table(spark, path, *files, properties=features, partition_by=["p"])
    DeltaTable.forPath(spark, str(path)).delete("k IN (2, 3, 12)")
    return log


def test_only_files_with_deleted_rows_are_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    log = make(spark, tmp_path, **VECTORS, **TRACKING, **FEED)
    rows, ids = rows_of(spark, log), tracked_rows(spark, log)
    before = log.snapshot()
    first = reorg(spark, tmp_path, "WHERE p = 'y'")
    assert (first.numFilesAdded, first.numFilesRemoved) == (1, 1)
    assert num_vectors(log) == 2
    second = reorg(spark, tmp_path)
    assert (second.numFilesAdded, second.numFilesRemoved) == (1, 2)
    assert second.deletionVectorStats.numDeletionVectorRowsRemoved == 2
    assert num_vectors(log) == 0
    assert reorg(spark, tmp_path).numFilesRemoved == 0
    assert rows_of(spark, log) == rows
    assert tracked_rows(spark, log) == ids
    assert log.snapshot().version == before.version + 2
    assert not changes_of(spark, log, before.version + 1)
    info = log.history()[0].commit_info
    assert info is not None
    assert info.operation == "REORG"
    assert info.operation_parameters == {"predicate": "[]", "applyPurge": True}


@pytest.mark.thorough
def test_dropped_columns_leave_the_files(spark: SparkSession, tmp_path: Path) -> None:
    log = make(spark, tmp_path, **VECTORS, **MAPPED)
    reorg(spark, tmp_path)
    puredelta.sql(spark, f"ALTER TABLE delta.`{tmp_path}` DROP COLUMN v")
    puredelta.write(spark.sql("SELECT 90 k, 'x' p"), str(tmp_path), mode="append")
    rows = rows_of(spark, log)
    found = reorg(spark, tmp_path)
    assert (found.numFilesRemoved, found.totalConsideredFiles) == (5, 6)
    assert rows_of(spark, log) == rows
    for add in log.snapshot().files.adds():
        assert len(pq.read_schema(tmp_path / add.path).names) == 1
    assert reorg(spark, tmp_path).numFilesRemoved == 0


def test_what_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    make(spark, tmp_path)
    with pytest.raises(DeltaError) as error:
        reorg(spark, tmp_path, "WHERE k = 1")
    assert error.value.code is ErrorCode.NON_PARTITION_COLUMN_REFERENCE
    for tail in ("", "APPLY", "APPLY (UPGRADE UNIFORM)", "APPLY ()"):
        with pytest.raises(ParseException):
            puredelta.sql(spark, f"REORG TABLE delta.`{tmp_path}` {tail}")


@pytest.mark.thorough
def test_dropping_deletion_vectors_purges_them(spark: SparkSession, tmp_path: Path) -> None:
    log = make(spark, tmp_path, **VECTORS)
    rows = rows_of(spark, log)
    DeltaTable.forPath(spark, str(tmp_path)).dropFeatureSupport("deletionVectors")
    assert rows_of(spark, log) == rows
    assert num_vectors(log) == 0
    assert not log.snapshot().config.supports("deletionVectors")
    operations = [entry.commit_info.operation for entry in log.history() if entry.commit_info]
    assert operations[:7] == [
        "DROP FEATURE",
        *["Empty Commit"] * 3,
        "Deletion Vector Tombstones",
        "REORG",
        "UNSET TBLPROPERTIES",
    ]
