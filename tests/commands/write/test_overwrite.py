"""Overwrites of a part of a table: ``replaceWhere``, dynamic partitions; writes done once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, read_changes, write
from puredelta.commands.dml.replaced_rows import partition_predicate, partitions_of
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.planned_write import WriteOutcome
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import ConflictError, ErrorCode, InvalidRequestError
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.table_log import TableLog
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from puredelta.store.registry import open_store
from tests.faults import Meddling, at_first
from tests.log.tables import config

CDF = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """id = 0..5 in one file per p = id % 3."""
    path = str(tmp_path / "t")
    rows = spark.sql("SELECT id, id % 3 AS p FROM range(0, 6, 1, 1)")
    write(rows, path, partition_by="p", properties=CDF)
    return path


def contents(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in read(spark, path).collect())


def new(spark: SparkSession, *rows: tuple[int, int]) -> Any:
    return spark.createDataFrame(list(rows), "id long, p long")


def last(path: str) -> Any:
    return TableLog.open(path).history(limit=1)[0].commit_info


def test_replace_where_of_partitions_drops_files(spark: SparkSession, path: str) -> None:
    options = {"replaceWhere": "p >= 1 AND p < 2"}
    outcome = write(new(spark, (10, 1)), path, mode="overwrite", options=options)
    assert contents(spark, path) == [(0, 0), (2, 2), (3, 0), (5, 2), (10, 1)]
    assert (outcome.num_removed_files, outcome.num_rows) == (1, 1)
    parameters = last(path).operation_parameters
    assert parameters == {"mode": "Overwrite", "partitionBy": "[]", "predicate": "p >= 1 AND p < 2"}


def test_replace_where_of_data_columns_splits_files(spark: SparkSession, path: str) -> None:
    options = {"replaceWhere": "id >= 3"}
    outcome = write(new(spark, (11, 1), (12, 0)), path, mode="overwrite", options=options)
    assert contents(spark, path) == [(0, 0), (1, 1), (2, 2), (11, 1), (12, 0)]
    assert (outcome.version, outcome.num_rows) == (1, 2)
    info = last(path)
    assert (info.operation, info.operation_metrics["numDeletedRows"]) == ("WRITE", "3")
    changes = read_changes(spark, path, starting_version=1).select("_change_type", "id").collect()
    expected = [("delete", n) for n in (3, 4, 5)] + [("insert", n) for n in (11, 12)]
    assert sorted(map(tuple, changes)) == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("where", ["p = 1", "id > 3"])
def test_rows_outside_of_the_condition_are_refused(
    spark: SparkSession, path: str, where: str
) -> None:
    rows = new(spark, (10, 1), (1, 0))
    with pytest.raises(InvalidRequestError, match="does not conform to partial") as caught:
        write(rows, path, mode="overwrite", options={"replaceWhere": where})
    assert caught.value.code is ErrorCode.REPLACE_WHERE_MISMATCH
    assert TableLog.open(path).latest_version() == 0
    spark.conf.set("spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false")
    try:
        write(rows, path, mode="overwrite", options={"replaceWhere": where})
    finally:
        spark.conf.unset("spark.databricks.delta.replaceWhere.constraintCheck.enabled")
    assert {(10, 1), (1, 0), (0, 0)} <= set(contents(spark, path))


def test_dynamic_overwrite_replaces_the_partitions_it_has_rows_for(
    spark: SparkSession, path: str
) -> None:
    rows = new(spark, (20, 0), (21, 7))
    outcome = write(rows, path, mode="overwrite", options={"partitionOverwriteMode": "dynamic"})
    assert contents(spark, path) == [(1, 1), (2, 2), (4, 1), (5, 2), (20, 0), (21, 7)]
    assert outcome.num_removed_files == 1
    assert last(path).operation_parameters["isDynamicPartitionOverwrite"] is True
    adds = list(TableLog.open(path).snapshot().files.adds())
    config = TableLog.open(path).snapshot().config
    files = TableLog.open(path).snapshot(version=0).files
    assert len(partitions_of(adds, files, config)) == 3
    assert len(partition_predicate(adds, config).parts) == 4


@pytest.mark.parametrize(
    ("data_type", "ours", "theirs", "other"),
    [
        (INTEGER, "1", "01", "2"),
        (DOUBLE, "0.0", "-0.0", "1.0"),
        (DOUBLE, "NaN", "nan", "1.0"),
        (FLOAT, "0.1", "0.10", "0.2"),
        (DecimalType(10, 2), "1.50", "1.5", "1.51"),
        (BOOLEAN, "true", "TRUE", "false"),
        (DATE, "2024-01-01", "2024-1-1", "2024-01-02"),
        (DATE, "+10000-01-01", "10000-1-1", None),
        (TIMESTAMP, "2024-01-01T00:00:00.000000Z", "2024-01-01 01:00:00", None),
        (TIMESTAMP_NTZ, "2024-01-01 00:00:00", "2024-01-01T00:00:00.000", "2024-01-02 00:00:00"),
        (STRING, None, "", "a"),
    ],
)
def test_partitions_are_compared_by_their_values(
    data_type: DataType, ours: str | None, theirs: str, other: str | None
) -> None:
    table = config(
        schema=StructType((StructField("id", LONG), StructField("p", data_type))),
        partitioned_by=("p",),
    )
    written, same, another = (
        Add(path=str(n), partition_values={"p": p}, size_bytes=1, modified_ms=0, data_change=True)
        for n, p in enumerate((ours, theirs, other))
    )
    files = FileTable.of([same, another])
    replaced = partitions_of([written], files, table, time_zone="Europe/Paris")
    assert [add.path for add in replaced.adds()] == ["1"]
    predicate = partition_predicate([written], table)
    mask = None if predicate is None else prune_files(files, table, predicate).to_pylist()
    assert mask is None or mask[0], "a rival's file of this partition is a conflict"
    assert (mask is None) == (other is None)
    if mask is not None and ours != "NaN":
        assert not mask[1], "one of another partition is none"


def test_a_rival_in_another_partition_is_no_conflict(spark: SparkSession, path: str) -> None:
    def overwrite(rival: tuple[int, int]) -> WriteOutcome:
        other = partial(write, new(spark, rival), path, mode="append")
        store = Meddling(open_store(path), before=at_first("put_if_absent", other))
        request = WriteRequest(
            mode=SaveMode.OVERWRITE, options={"partitionOverwriteMode": "dynamic"}
        )
        return write_table(new(spark, (20, 0)), TableLog(store), request)

    assert overwrite((30, 1)).version == 2
    with pytest.raises(ConflictError):
        overwrite((31, 0))


def test_options_that_exclude_each_other(spark: SparkSession, path: str) -> None:
    dynamic = {"partitionOverwriteMode": "dynamic"}
    for more, code in (
        ({"replaceWhere": "p = 1"}, ErrorCode.REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE),
        ({"overwriteSchema": True}, ErrorCode.OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE),
        ({"partitionOverwriteMode": "some"}, ErrorCode.INVALID_WRITE_OPTION),
        ({"txnAppId": "a"}, ErrorCode.INVALID_IDEMPOTENT_WRITES_OPTIONS),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            write(new(spark, (1, 1)), path, mode="overwrite", options={**dynamic, **more})
        assert caught.value.code is code


def test_a_write_of_an_application_is_done_once(spark: SparkSession, path: str) -> None:
    options = {"txnAppId": "nightly", "txnVersion": 7}
    assert write(new(spark, (9, 9)), path, mode="append", options=options).version == 1
    assert write(new(spark, (9, 9)), path, mode="append", options=options).version is None
    options["txnVersion"] = 8
    assert write(new(spark, (8, 9)), path, mode="append", options=options).version == 2
    assert len(contents(spark, path)) == 8
