"""Column mapping and type widening leave tables whose files they shaped."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.alter.remove_features import holds_other_types, remove_column_mapping
from puredelta.commands.command import start_command
from puredelta.errors import ConflictError, DeltaError, ErrorCode
from puredelta.log.commit.commit_request import Phase
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.table_config import TableConfig
from puredelta.tables import DeltaTable
from tests.commands.dml.features import (
    FEED,
    TRACKING,
    VECTORS,
    changes_of,
    make_table,
    rows_of,
    tracked_rows,
)
from tests.log.tables import feature_protocol

BY_NAME = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}
BARRIER = [*["Empty Commit"] * 3, "DROP FEATURE"]


def sql(spark: SparkSession, path: Path, change: str) -> None:
    puredelta.sql(spark, f"ALTER TABLE delta.`{path}` {change}")


def operations(log: TableLog, after: int) -> list[str | None]:
    found = [e.commit_info.operation for e in reversed(log.history()) if e.commit_info]
    return found[after + 1 :]


def columns_in_files(log: TableLog, path: Path) -> set[tuple[str, ...]]:
    return {tuple(pq.read_schema(path / add.path).names) for add in log.snapshot().files.adds()}


def make(spark: SparkSession, path: Path, **properties: str) -> TableLog:
    files = [[(n, f"v{n}", "xy"[n % 2]) for n in range(at, at + 4)] for at in (0, 4)]
    return make_table(spark, path, *files, properties=properties, partition_by=["p"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", [BY_NAME, BY_ID])
def test_dropping_column_mapping_writes_files_under_their_columns_names(
    spark: SparkSession, tmp_path: Path, mode: dict[str, str]
) -> None:
    log = make(spark, tmp_path, **mode, **VECTORS, **TRACKING, **FEED)
    DeltaTable.forPath(spark, str(tmp_path)).delete("k = 2")
    sql(spark, tmp_path, "RENAME COLUMN v TO w")
    rows, ids, before = rows_of(spark, log), tracked_rows(spark, log), log.snapshot()
    sql(spark, tmp_path, "DROP FEATURE columnMapping")
    assert operations(log, before.version) == ["REMOVE COLUMN MAPPING", *BARRIER]
    snapshot = log.snapshot()
    assert not snapshot.config.supports("columnMapping")
    assert "columnMapping" not in json.dumps(
        [snapshot.metadata.schema_string, snapshot.metadata.configuration]
    )
    assert rows_of(spark, log) == rows
    assert rows_of(spark, log, before.version) == rows
    assert tracked_rows(spark, log) == ids
    assert not changes_of(spark, log, before.version + 1)
    row_columns = {name for name in columns_in_files(log, tmp_path).pop() if name[0] == "_"}
    assert columns_in_files(log, tmp_path) == {("k", "w", *sorted(row_columns, reverse=True))}
    assert {add.path.split("/")[1] for add in snapshot.files.adds()} == {"p=x", "p=y"}
    assert all(json.loads(add.stats or "")["minValues"]["k"] >= 0 for add in snapshot.files.adds())
    assert not any(add.deletion_vector for add in snapshot.files.adds())
    puredelta.write(spark.sql("SELECT 90 k, 'n' w, 'x' p"), str(tmp_path), mode="append")
    assert rows_of(spark, log)[(90, "n", "x")] == 1
    with pytest.raises(DeltaError) as error:
        sql(spark, tmp_path, "DROP FEATURE columnMapping")
    assert error.value.code is ErrorCode.FEATURE_DROP_FEATURE_NOT_PRESENT


@pytest.mark.thorough
def test_the_mode_none_takes_mapping_off_and_the_feature_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = make(spark, tmp_path, **BY_NAME)
    rows, before = rows_of(spark, log), log.latest_version()
    set_none = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none'"
    with pytest.raises(DeltaError):
        sql(spark, tmp_path, f"{set_none}, 'delta.columnMapping.bogus' = '1')")
    assert log.latest_version() == before
    sql(spark, tmp_path, f"{set_none}, 'x' = 'y')")
    assert operations(log, before) == ["REMOVE COLUMN MAPPING", "SET TBLPROPERTIES"]
    snapshot = log.snapshot()
    assert snapshot.config.supports("columnMapping")
    assert snapshot.metadata.configuration == {"delta.columnMapping.mode": "none", "x": "y"}
    assert rows_of(spark, log) == rows
    files = {add.path for add in snapshot.files.adds()}
    sql(spark, tmp_path, f"{set_none})")
    assert {add.path for add in log.snapshot().files.adds()} == files
    sql(spark, tmp_path, "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    sql(spark, tmp_path, "RENAME COLUMN v TO w")
    sql(spark, tmp_path, "UNSET TBLPROPERTIES ('delta.columnMapping.mode')")
    assert log.snapshot().metadata.configuration == {"x": "y"}
    assert rows_of(spark, log) == rows
    sql(spark, tmp_path, "DROP FEATURE columnMapping")
    assert operations(log, log.latest_version() - 5) == ["REMOVE COLUMN MAPPING", *BARRIER]


def test_names_that_need_mapping_keep_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = spark.sql("SELECT 1 `a b`, named_struct('c,d', 2, 'e', 3) s")
    puredelta.write(rows, str(path), mode="append", properties=BY_NAME)
    log = TableLog.open(str(path))
    for change in (
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
        "UNSET TBLPROPERTIES ('delta.columnMapping.mode')",
        "DROP FEATURE columnMapping",
    ):
        with pytest.raises(DeltaError, match=r"Invalid column names: a b, s\.c,d\.") as error:
            sql(spark, path, change)
        assert error.value.code is ErrorCode.INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING
    assert log.latest_version() == 0


def test_clustering_columns_get_their_own_names(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    puredelta.sql(
        spark,
        f"CREATE TABLE delta.`{path}` (k INT, s STRUCT<x: INT>) USING delta CLUSTER BY (k, s.x) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    )
    sql(spark, path, "RENAME COLUMN s TO t")
    sql(spark, path, "DROP FEATURE columnMapping")
    log = TableLog.open(str(path))
    domain = log.snapshot().domain_metadata["delta.clustering"]
    assert json.loads(domain.configuration)["clusteringColumns"] == [["k"], ["t", "x"]]
    detail = DeltaTable.forPath(spark, str(path)).detail().collect()[0]
    assert detail["clusteringColumns"] == ["k", "t.x"]


def test_a_writer_that_appends_meanwhile_wins(spark: SparkSession, tmp_path: Path) -> None:
    log = make(spark, tmp_path, **BY_NAME)
    rows = spark.sql("SELECT 90 k, 'n' v, 'x' p")
    before = log.latest_version()

    def append(phase: Phase) -> None:
        if phase is Phase.STAGED and log.latest_version() == before:
            puredelta.write(rows, str(tmp_path), mode="append")

    command = start_command(spark, log, Capability.MERGE, on_phase=append)
    with pytest.raises(ConflictError):
        remove_column_mapping(command, keeps_property=False)
    assert rows_of(spark, log)[(90, "n", "x")] == 1
    named = {add.path for add in log.snapshot().files.adds()}
    stored = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.parquet")}
    assert stored == named


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", [{}, BY_ID])
def test_dropping_type_widening_rewrites_what_has_other_types(
    spark: SparkSession, tmp_path: Path, mode: dict[str, str]
) -> None:
    path = tmp_path / "t"
    rows = "SELECT {0} k, named_struct('x', array({0})) s, 'p' p"
    widening = {"delta.enableTypeWidening": "true", **TRACKING, **VECTORS, **mode}
    puredelta.write(
        spark.sql(rows.format("smallint(1)")), str(path), mode="append", properties=widening
    )
    log = TableLog.open(str(path))
    sql(spark, path, "ALTER COLUMN k TYPE INT")
    puredelta.write(
        spark.sql("SELECT 70000 k, named_struct('x', array(smallint(1))) s, 'q' p"),
        str(path),
        mode="append",
    )
    sql(spark, path, "ALTER COLUMN s.x.element TYPE BIGINT")
    puredelta.write(
        spark.sql("SELECT 80000 k, named_struct('x', array(1L << 40)) s, 'p' p"),
        str(path),
        mode="append",
    )
    kept = list(log.snapshot().files.adds())[-1].path
    rows_before, ids, before = texts_of(spark, log), tracked_rows(spark, log), log.snapshot()
    sql(spark, path, "DROP FEATURE typeWidening")
    assert operations(log, before.version) == [
        *("UNSET TBLPROPERTIES", "REORG", "DROP FEATURE"),
        *BARRIER,
    ]
    info = log.history(limit=5)[-1].commit_info
    assert info is not None
    recorded = [c["name"] for c in json.loads(info.operation_parameters["columns"])]
    assert recorded == ["k", "s.x"]
    snapshot = log.snapshot()
    assert kept in {add.path for add in snapshot.files.adds()}
    for add in snapshot.files.adds():
        schema = pq.read_schema(path / add.path)
        assert schema.types[0] == pa.int32()
        assert schema.types[1].field(0).type.value_type == pa.int64()
    assert "typeChanges" not in snapshot.metadata.schema_string
    assert not snapshot.config.supports("typeWidening")
    assert texts_of(spark, log) == rows_before
    assert tracked_rows(spark, log) == ids


@pytest.mark.thorough
def test_vectors_leave_once_no_version_that_can_be_read_has_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = make(spark, tmp_path, **VECTORS)
    DeltaTable.forPath(spark, str(tmp_path)).delete("k = 2")
    rows, drop = rows_of(spark, log), "DROP FEATURE deletionVectors TRUNCATE HISTORY"
    with pytest.raises(DeltaError) as first:
        sql(spark, tmp_path, drop)
    assert first.value.code is ErrorCode.FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD
    assert [add.deletion_vector for add in log.snapshot().files.adds()] == [None] * 4
    with pytest.raises(DeltaError) as second:
        sql(spark, tmp_path, drop)
    assert second.value.code is ErrorCode.FEATURE_DROP_HISTORICAL_VERSIONS_EXIST
    old = time.time() - 3 * 24 * 3600
    for file in (tmp_path / "_delta_log").iterdir():
        os.utime(file, (old, old))
    sql(spark, tmp_path, drop)
    assert not log.snapshot().config.supports("deletionVectors")
    assert rows_of(spark, log) == rows
    with pytest.raises(DeltaError):
        rows_of(spark, log, 1)


def texts_of(spark: SparkSession, log: TableLog) -> list[str]:
    return sorted(map(str, puredelta.read(spark, log.root_uri).collect()))


@pytest.mark.parametrize(
    ("stored", "table", "changed", "differs"),
    [
        (pa.int16(), '"integer"', True, True),
        (pa.int32(), '"integer"', True, False),
        (pa.timestamp("ns"), '"timestamp"', False, False),
        (pa.decimal128(5, 2), '"decimal(7,2)"', True, True),
        (pa.date32(), '"timestamp_ntz"', True, True),
        (
            pa.map_(pa.int32(), pa.float32()),
            '{"type":"map","keyType":"integer","valueType":"double","valueContainsNull":true}',
            True,
            True,
        ),
        (
            pa.list_(pa.int32()),
            '{"type":"array","elementType":"integer","containsNull":true}',
            True,
            False,
        ),
    ],
)
def test_types_of_files(
    tmp_path: Path, stored: pa.DataType, table: str, changed: bool, differs: bool
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([], stored), "more": pa.array([], pa.int8())}), path)
    record = {"delta.typeChanges": [{"fromType": "short", "toType": "integer"}]} if changed else {}
    field: dict[str, Any] = {"name": "a", "nullable": True, "metadata": record}
    schema = json.dumps({"type": "struct", "fields": [{**field, "type": json.loads(table)}]})
    config = TableConfig.of(
        feature_protocol("typeWidening", readers=("typeWidening", "timestampNtz")),
        Metadata(id="x", schema_string=schema, partition_columns=(), configuration={}),
    )
    assert holds_other_types(pq.read_metadata(path), config) is differs
