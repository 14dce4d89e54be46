"""Reading the change data feed on tables written by hand: no writer of ours takes part."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.commands.changes import ChangeSettings, MappedSchema
from puredelta.errors import DeltaError, ErrorCode
from puredelta.protocol.actions.actions import Add, AddChangeFile, CommitInfo, Metadata, Remove
from puredelta.protocol.actions.paths import encode_path
from puredelta.protocol.features.column_mapping import FIELD_ID, PHYSICAL_NAME
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    StructField,
    StructType,
)
from tests.spark.tables import TableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEED = {"delta.enableChangeDataFeed": "true"}
SETTINGS = "spark.databricks.delta.changeDataFeed."
INSERT, DELETE = "insert", "delete"


def schema(**columns: DataType) -> StructType:
    return StructType(tuple(StructField(n, t) for n, t in columns.items()))


def longs(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def create(
    root: Path,
    columns: StructType,
    *,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> TableFiles:
    return TableFiles.create(
        root,
        columns,
        partition_columns=partition_columns,
        configuration={**FEED, **(properties or {})},
    )


def stored(
    table: TableFiles, name: str, content: Mapping[str, Any], values: Mapping[str, str | None] = {}
) -> Add:
    """Write one file, without a commit."""
    path = table.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content if isinstance(content, pa.Table) else pa.table(content), path)
    return Add(
        path=encode_path(name),
        partition_values=values,
        size_bytes=path.stat().st_size,
        modified_ms=0,
        data_change=True,
    )


def removed(add: Add) -> Remove:
    return Remove(
        path=add.path,
        deleted_ms=1,
        data_change=True,
        extended_file_metadata=True,
        partition_values=add.partition_values,
        size_bytes=add.size_bytes,
        deletion_vector=add.deletion_vector,
    )


def recorded(
    table: TableFiles, name: str, content: Mapping[str, Any], values: Mapping[str, str | None] = {}
) -> AddChangeFile:
    add = stored(table, f"_change_data/{name}", content, values)
    return AddChangeFile(
        path=add.path, partition_values=add.partition_values, size_bytes=add.size_bytes
    )


def set_times(table: TableFiles, *seconds: int) -> None:
    for version, second in enumerate(seconds):
        name = table.root / "_delta_log" / f"{version:020d}.json"
        os.utime(name, (second, second))


def changes(spark: SparkSession, table: TableFiles, **bounds: Any) -> DataFrame:
    from puredelta.commands.changes import read_changes  # noqa: PLC0415 - loads pyspark
    from puredelta.log.replay.table_log import TableLog  # noqa: PLC0415

    return read_changes(spark, TableLog.open(str(table.root)), **bounds)


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    chosen = frame.selectExpr(*columns) if columns else frame.drop("_commit_timestamp")
    return sorted((tuple(row) for row in chosen.collect()), key=str)


def code(spark: SparkSession, table: TableFiles, **bounds: Any) -> ErrorCode:
    with pytest.raises(DeltaError) as raised:
        changes(spark, table, **bounds)
    return raised.value.code


@pytest.mark.smoke
def test_every_kind_of_file(spark: SparkSession, tmp_path: Path) -> None:
    """Inserted, removed, recorded and partially deleted files of a partitioned table."""
    table = create(
        tmp_path / "t b", schema(id=LONG, p=STRING, d=DATE), partition_columns=["p", "d"]
    )
    values = {"p": "a b=c %20", "d": "2020-02-29"}
    first = stored(table, "p=a b/0.parquet", {"id": longs(0, 1, 2, 3)}, values)
    second = stored(table, "1.parquet", {"id": longs(10, 11)}, {"p": None, "d": None})
    table.commit(first, second)  # version 1
    table.commit(removed(first), replace(first, deletion_vector=table.vector([1])))
    table.commit(
        replace(removed(first), deletion_vector=table.vector([1])),
        replace(first, deletion_vector=table.vector([0, 3], inline=True)),
    )
    kinds = ["update_preimage", "update_postimage", "delete"]
    in_file = {"id": longs(10, 100, 11), "_change_type": pa.array(kinds)}
    third = stored(table, "2.parquet", {"id": longs(100)}, {"p": "", "d": None})
    table.commit(  # M-123: whatever else this commit does, its change file tells it all
        recorded(table, "cdc-0.parquet", in_file, {"p": None, "d": None}), removed(second), third
    )
    table.commit(replace(removed(first), deletion_vector=table.vector([0, 3], inline=True)))

    found = changes(spark, table, starting_version=0)
    assert found.dtypes == [
        ("id", "bigint"),
        ("p", "string"),
        ("d", "date"),
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_timestamp", "timestamp"),
    ]
    assert rows(found, "_commit_version", "_change_type", "id") == [
        (1, INSERT, 0),
        (1, INSERT, 1),
        (1, INSERT, 10),
        (1, INSERT, 11),
        (1, INSERT, 2),
        (1, INSERT, 3),
        (2, DELETE, 1),
        (3, DELETE, 0),
        (3, DELETE, 3),
        (3, INSERT, 1),
        (4, DELETE, 11),
        (4, "update_postimage", 100),
        (4, "update_preimage", 10),
        (5, DELETE, 1),
        (5, DELETE, 2),
    ]
    whole = {str(row) for row in rows(found.filter("id < 10"), "p", "d")}
    assert whole == {"('a b=c %20', datetime.date(2020, 2, 29))"}
    assert {str(row) for row in rows(found.filter("id >= 10"), "p", "d")} == {"(None, None)"}

    assert rows(changes(spark, table, starting_version=2, ending_version=2)) == [
        (1, "a b=c %20", rows(found.filter("id = 1"), "d")[0][0], DELETE, 2)
    ]
    # Filters on the columns of the feed choose files.
    chosen = found.filter("_commit_version = 4 AND _change_type = 'delete'")
    assert rows(chosen, "id") == [(11,)]
    plan = chosen._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(_commit_version" in plan


def test_the_number_of_scans_does_not_grow_with_the_commits(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = create(tmp_path, schema(id=LONG))
    for n in range(12):
        table.commit(stored(table, f"{n}.parquet", {"id": longs(n)}))
    for n, add in enumerate([stored(table, f"{n}.parquet", {"id": longs(n)}) for n in range(6)]):
        if n % 2:
            table.commit(removed(add))
        else:
            table.commit(removed(add), replace(add, deletion_vector=table.vector([0])))
    found = changes(spark, table, starting_version=0)
    assert found._jdf.queryExecution().executedPlan().toString().count("FileScan") == 2
    assert found.count() == 18


def test_commit_times_do_not_depend_on_the_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, schema(id=LONG, t=TIMESTAMP), partition_columns=["t"])
    zoned = "2021-11-07T08:30:00.000000Z"
    table.commit(stored(table, "0.parquet", {"id": longs(1)}, {"t": zoned}))
    # Half past one in Los Angeles, for the first and for the second time that night.
    set_times(table, 1636273800 - 60, 1636273800)
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        found = changes(spark, table, starting_version=0)
        assert rows(found, "unix_micros(_commit_timestamp)") == [(1636273800_000_000,)]
        assert rows(found, "unix_micros(t)") == [(1636273800_000_000,)]
        # A bound without a zone is meant in the session's.
        assert rows(changes(spark, table, starting_timestamp="2021-11-07"), "id") == [(1,)]
        assert rows(changes(spark, table, starting_timestamp="2021-11-07 08:30:00Z"), "id") == [
            (1,)
        ]
        late = {"starting_timestamp": "2021-11-08"}
        assert code(spark, table, **late) is ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_table_that_was_partitioned_anew(spark: SparkSession, tmp_path: Path) -> None:
    """Each file keeps its own partition columns: in its values, or inside of the file."""
    table = create(tmp_path, schema(id=LONG, p=LONG), partition_columns=["p"])
    by_p = stored(table, "0.parquet", {"id": longs(1)}, {"p": "7"})
    # The values of the log win over a column that the file has, too.
    both = stored(table, "1.parquet", {"id": longs(2), "p": longs(-1)}, {"p": "8"})
    table.commit(by_p, both)

    def metadata(*columns: str) -> Metadata:
        return Metadata(
            id="1",
            schema_string=encode_schema(schema(id=LONG, p=LONG)),
            partition_columns=columns,
            configuration=FEED,
        )

    plain = stored(table, "2.parquet", {"id": longs(3), "p": longs(9)})
    table.commit(metadata(), removed(by_p), removed(both), plain)
    by_id = stored(table, "3.parquet", {"p": longs(10)}, {"id": "4"})
    table.commit(metadata("id"), removed(plain), by_id)
    assert rows(changes(spark, table, starting_version=0)) == [
        (1, 7, DELETE, 2),
        (1, 7, INSERT, 1),
        (2, 8, DELETE, 2),
        (2, 8, INSERT, 1),
        (3, 9, DELETE, 3),
        (3, 9, INSERT, 2),
        (4, 10, INSERT, 3),
    ]


def mapped(**columns: tuple[str, int]) -> StructType:
    return StructType(
        tuple(
            StructField(name, LONG, metadata={PHYSICAL_NAME: physical, FIELD_ID: number})
            for name, (physical, number) in columns.items()
        )
    )


def with_ids(**columns: int) -> pa.Schema:
    return pa.schema(
        [
            pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
            for name, number in columns.items()
        ]
    )


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """M-109. By id, the names in the files need not be the physical ones."""
    properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "3"}
    table = create(
        tmp_path,
        mapped(id=("c1", 1), p=("c3", 3)),
        partition_columns=["p"],
        properties=properties,
    )
    name = "c1" if mode == "name" else "other"
    file = pa.table([longs(5, 6)], schema=with_ids(**{name: 1}))
    add = stored(table, "0.parquet", file, {"c3": "7"})
    table.commit(add)
    kinds = pa.field("_change_type", pa.string())
    in_file = pa.table([longs(5), pa.array(["delete"])], schema=with_ids(**{name: 1}).append(kinds))
    table.commit(
        replace(add, deletion_vector=table.vector([0])),
        removed(add),
        recorded(table, "cdc-0.parquet", in_file, {"c3": "7"}),
    )
    table.commit(  # a column is added
        Metadata(
            id="1",
            schema_string=encode_schema(mapped(id=("c1", 1), p=("c3", 3), n=("c2", 2))),
            partition_columns=("p",),
            configuration={**FEED, **properties},
        )
    )
    early = changes(spark, table, starting_version=0, ending_version=2)
    # The schema is that of the end of the range ...
    assert (early.columns[:2], rows(early)) == (
        ["id", "p"],
        [(5, 7, DELETE, 2), (5, 7, INSERT, 1), (6, 7, INSERT, 1)],
    )
    spark.conf.set(f"{SETTINGS}defaultSchemaModeForColumnMappingTable", "latest")
    try:
        latest = changes(spark, table, starting_version=0, ending_version=2)
    finally:
        spark.conf.unset(f"{SETTINGS}defaultSchemaModeForColumnMappingTable")
    # ... unless the session wants the newest one's.
    assert latest.columns[:3] == ["id", "p", "n"]
    assert rows(latest.filter("n IS NULL"), "id") == [(5,), (5,), (6,)]


def test_the_newest_schema_serves_all_versions(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, schema(id=INTEGER))
    table.commit(stored(table, "0.parquet", {"id": pa.array([1], pa.int32())}))
    wide = encode_schema(schema(id=INTEGER, n=STRING))
    table.commit(Metadata(id="1", schema_string=wide, partition_columns=(), configuration=FEED))
    found = changes(spark, table, starting_version=0, ending_version=1)
    assert rows(found) == [(1, None, INSERT, 1)]
    other = encode_schema(schema(id=STRING))
    table.commit(Metadata(id="1", schema_string=other, partition_columns=(), configuration=FEED))
    expected = ErrorCode.CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE
    assert code(spark, table, starting_version=0) is expected
    expected = ErrorCode.CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA
    assert code(spark, table, starting_version=1, ending_version=1) is expected
    assert rows(changes(spark, table, starting_version=3)) == []
    spark.conf.set(f"{SETTINGS}unsafeBatchReadOnIncompatibleSchemaChanges.enabled", "true")
    try:
        unsafe = changes(spark, table, starting_version=0, ending_version=0)
        assert rows(unsafe) == []
    finally:
        spark.conf.unset(f"{SETTINGS}unsafeBatchReadOnIncompatibleSchemaChanges.enabled")


def test_requests_that_cannot_be_served(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, schema(id=LONG))
    assert code(spark, table) is ErrorCode.NO_START_FOR_CDC_READ
    assert code(spark, table, ending_version=0) is ErrorCode.NO_START_FOR_CDC_READ
    for which in ("starting", "ending"):
        both = {f"{which}_version": 0, f"{which}_timestamp": "2020-01-01"}
        assert code(spark, table, **both) is ErrorCode.MULTIPLE_CDC_BOUNDARY
    assert code(spark, table, starting_version="x") is ErrorCode.VERSION_INVALID
    assert code(spark, table, starting_timestamp="x") is ErrorCode.TIMESTAMP_INVALID
    assert code(spark, table, starting_version=1) is ErrorCode.CDC_START_VERSION_AFTER_LATEST
    spark.conf.set(f"{SETTINGS}timestampOutOfRange.enabled", "true")
    try:
        empty = changes(spark, table, starting_version="1")
    finally:
        spark.conf.unset(f"{SETTINGS}timestampOutOfRange.enabled")
    assert (empty.columns[0], rows(empty)) == ("id", [])
    table.commit(CommitInfo(operation="SET TBLPROPERTIES"), replace_feed("false"))
    assert code(spark, table, starting_version=0) is ErrorCode.MISSING_CHANGE_DATA
    assert code(spark, table, starting_version=1) is ErrorCode.MISSING_CHANGE_DATA
    assert rows(changes(spark, table, starting_version=0, ending_version=0)) == []
    absent = TableFiles(tmp_path / "absent")
    assert code(spark, absent, starting_version=0) is ErrorCode.PATH_DOES_NOT_EXIST


def replace_feed(value: str) -> Metadata:
    return Metadata(
        id="1",
        schema_string=encode_schema(schema(id=LONG)),
        partition_columns=(),
        configuration={"delta.enableChangeDataFeed": value},
    )


def test_a_column_with_a_name_of_the_feed(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, schema(id=LONG, _Commit_Version=LONG))
    expected = ErrorCode.TABLE_ALREADY_CONTAINS_CDC_COLUMNS
    assert code(spark, table, starting_version=0) is expected


def test_settings() -> None:
    assert ChangeSettings.parse({}) == ChangeSettings()
    settings = ChangeSettings.parse(
        {
            f"{SETTINGS}timestampOutOfRange.enabled": "TRUE",
            f"{SETTINGS}unsafeBatchReadOnIncompatibleSchemaChanges.enabled": "true",
            f"{SETTINGS}defaultSchemaModeForColumnMappingTable": "Legacy",
        }
    )
    assert settings == ChangeSettings(
        may_exceed_newest=True, checks_schema=False, mapped_schema=MappedSchema.LEGACY
    )
    with pytest.raises(DeltaError, match="'oldest'"):
        ChangeSettings.parse({f"{SETTINGS}defaultSchemaModeForColumnMappingTable": "oldest"})
