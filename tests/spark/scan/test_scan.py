"""Scans of table versions: the right rows under the table's schema, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from puredelta.spark.scan.scan import scan, scan_parquet
from puredelta.spark.session.names import FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.types import to_spark
from tests.spark.files import executed_plan, write_file
from tests.spark.tables import TableFiles


def schema(**columns: DataType) -> StructType:
    return StructType(tuple(StructField(n, t) for n, t in columns.items()))


def longs(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def tuples(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()))


@pytest.fixture
def mixed(tmp_path: Path) -> TableFiles:
    """Three files, two with a deletion vector, partitioned; the column order is the table's."""
    table = TableFiles.create(
        tmp_path / "t", schema(p=STRING, id=LONG, v=LONG), partition_columns=["p"]
    )
    ids = {"id": longs(0, 1, 2, 3), "v": longs(0, 10, 20, 30)}
    table.write("p=a/0.parquet", ids, values={"p": "a"}, deleted=[0, 3])
    table.write("p=a/1.parquet", ids, values={"p": "a"})
    table.write("p=b/2.parquet", ids, values={"p": "b"}, deleted=[1], inline=True)
    return table


@pytest.mark.smoke
def test_deleted_rows_are_left_out_m138(spark: SparkSession, mixed: TableFiles) -> None:
    rows = scan(spark, mixed.snapshot())
    assert rows.columns == ["p", "id", "v"]
    assert tuples(rows.select("p", "id")) == sorted(
        [("a", 1), ("a", 2)] + [("a", n) for n in range(4)] + [("b", 0), ("b", 2), ("b", 3)]
    )
    assert tuples(rows.filter("p = 'b' and v < 25").select("id")) == [(0,), (2,)]
    plan = executed_plan(rows.filter("p = 'b' and v < 25").select("id"))
    assert "LessThan(v,25)" in plan
    assert "p#" in plan.split("PartitionFilters: [")[1].split("]")[0]


@pytest.mark.smoke
def test_metadata_stays_reachable(spark: SparkSession, mixed: TableFiles) -> None:
    rows = scan(spark, mixed.snapshot()).select("id", "_metadata.row_index", "_metadata.file_path")
    assert all(r.id == r.row_index for r in rows.collect())
    assert len({r.file_path for r in rows.collect()}) == 3


def test_files_without_a_vector_make_a_pure_scan(spark: SparkSession, mixed: TableFiles) -> None:
    snapshot = mixed.snapshot()
    rows = scan(spark, snapshot, snapshot.files.take([1]))
    assert tuples(rows.select("id")) == [(0,), (1,), (2,), (3,)]
    assert not re.search("Join|getbit", executed_plan(rows))
    assert "getbit" in executed_plan(scan(spark, snapshot))


@pytest.mark.smoke
def test_positions_index_into_the_given_files(spark: SparkSession, mixed: TableFiles) -> None:
    snapshot = mixed.snapshot()
    rows = scan(spark, snapshot, snapshot.files.take([2, 1]), columns=["v"], with_position=True)
    assert rows.columns == ["v", FILE_ORDINAL, ROW_INDEX]
    assert [f.dataType.simpleString() for f in rows.schema.fields[1:]] == ["int", "bigint"]
    assert tuples(rows.select(FILE_ORDINAL, ROW_INDEX, "v")) == [
        (0, 0, 0),
        (0, 2, 20),
        (0, 3, 30),
        *((1, n, n * 10) for n in range(4)),
    ]


def test_only_the_columns_asked_for_are_read(spark: SparkSession, mixed: TableFiles) -> None:
    snapshot = mixed.snapshot()
    wanted = scan(spark, snapshot, columns=["v"], with_position=True)
    read = executed_plan(wanted).split("ReadSchema: struct<")[1].split(">")[0]
    assert read.split(",")[0] == "v:bigint"
    assert "id:" not in read
    none = scan(spark, snapshot, columns=[], with_position=True)
    assert none.columns == [FILE_ORDINAL, ROW_INDEX]
    assert none.count() == 9
    assert scan(spark, snapshot, columns=["p"]).distinct().count() == 2


def test_no_files(spark: SparkSession, mixed: TableFiles) -> None:
    snapshot = mixed.snapshot()
    nothing = snapshot.files.take([])
    assert scan(spark, snapshot, nothing).collect() == []
    assert scan(spark, snapshot, nothing).columns == ["p", "id", "v"]
    with_position = scan(spark, snapshot, nothing, columns=["id"], with_position=True)
    assert with_position.columns == ["id", FILE_ORDINAL, ROW_INDEX]
    assert with_position.collect() == []


def test_unknown_column(spark: SparkSession, mixed: TableFiles) -> None:
    with pytest.raises(InvalidRequestError, match="no column 'nope'"):
        scan(spark, mixed.snapshot(), columns=["nope"])


def test_table_without_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = TableFiles.create(tmp_path / "t", schema())
    with pytest.raises(InvalidRequestError, match="does not have any columns") as raised:
        scan(spark, table.snapshot())
    assert raised.value.code is ErrorCode.READ_TABLE_WITHOUT_COLUMNS


def test_column_with_a_reserved_name(spark: SparkSession, tmp_path: Path) -> None:
    table = TableFiles.create(tmp_path / "t", schema(__PureDelta_file=LONG))
    with pytest.raises(InvalidRequestError, match="__PureDelta_file"):
        scan(spark, table.snapshot())


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "other cardinality"])
def test_damaged_vector_is_refused_m138(spark: SparkSession, tmp_path: Path, damage: str) -> None:
    table = TableFiles.create(tmp_path / "t", schema(id=LONG))
    table.write("x.parquet", {"id": longs(*range(100))}, deleted=[5, 50])
    (path,) = table.root.glob("deletion_vector_*")
    content = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "cut":
            path.write_bytes(content[:-6])
        case "flipped":
            path.write_bytes(content[:-6] + bytes([content[-6] ^ 1]) + content[-5:])
        case _:
            log = table.root / "_delta_log" / "00000000000000000001.json"
            log.write_text(log.read_text().replace('"cardinality":2', '"cardinality":3'))
    with pytest.raises(CorruptTableError):
        scan(spark, table.snapshot())


@pytest.mark.thorough
def test_vectors_of_big_files_reach_every_bucket(spark: SparkSession, tmp_path: Path) -> None:
    table = TableFiles.create(tmp_path / "t", schema(id=LONG))
    count = 70_000
    deleted = [n for n in range(count) if n % 3 == 0 or 20_000 <= n < 30_000]
    table.write("x.parquet", {"id": longs(*range(count))}, deleted=deleted)
    rows = scan(spark, table.snapshot())
    assert {r.id for r in rows.collect()} == set(range(count)) - set(deleted)


def test_log_values_win_over_partition_columns_in_files_m144(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = TableFiles.create(tmp_path / "t", schema(id=LONG, p=LONG), partition_columns=["p"])
    table.write("p=9/x.parquet", {"id": longs(1), "p": longs(7)}, values={"p": "8"})
    assert tuples(scan(spark, table.snapshot())) == [(1, 8)]


@pytest.mark.smoke
def test_void_column_is_null(spark: SparkSession, tmp_path: Path) -> None:
    table = TableFiles.create(tmp_path / "t", schema(v=VOID, id=LONG))
    table.write("x.parquet", {"id": longs(1)})
    rows = scan(spark, table.snapshot())
    assert rows.dtypes == [("v", "void"), ("id", "bigint")]
    assert tuples(rows) == [(None, 1)]


def test_utc_partition_values_do_not_depend_on_the_session_zone(
    spark: SparkSession, tmp_path: Path, conf: Any
) -> None:
    table = TableFiles.create(
        tmp_path / "t", schema(id=LONG, at=TIMESTAMP), partition_columns=["at"]
    )
    table.write("x.parquet", {"id": longs(1)}, values={"at": "2020-01-01T05:00:00.000000Z"})
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        conf("spark.sql.session.timeZone", zone)
        rows = scan(spark, table.snapshot()).selectExpr("unix_micros(at)")
        assert tuples(rows) == [(1577854800000000,)]


def test_comments_stay_and_table_machinery_goes(spark: SparkSession, tmp_path: Path) -> None:
    metadata = {"comment": "the key", "delta.identity.start": 1, "CURRENT_DEFAULT": "1"}
    table = TableFiles.create(
        tmp_path / "t", StructType((StructField("id", LONG, metadata=metadata),))
    )
    assert scan(spark, table.snapshot()).schema["id"].metadata == {"comment": "the key"}


def test_lost_file_fails_a_scan_with_positions_whatever_the_session_says(
    spark: SparkSession, mixed: TableFiles, conf: Any
) -> None:
    (mixed.root / "p=a" / "1.parquet").unlink()
    conf("spark.sql.files.ignoreMissingFiles", "true")
    assert scan(spark, mixed.snapshot()).count() == 5
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
        scan(spark, mixed.snapshot(), with_position=True).collect()


def test_any_parquet_files_with_positions(spark: SparkSession, tmp_path: Path) -> None:
    files = [write_file(tmp_path / f"{n}.parquet", {"id": longs(n, n + 10)}) for n in range(2)]
    wanted = to_spark(schema(id=LONG, late=STRING))
    rows = scan_parquet(spark, files, schema=wanted, with_position=True)
    assert tuples(rows) == [
        (0, None, 0, 0),
        (1, None, 1, 0),
        (10, None, 0, 1),
        (11, None, 1, 1),
    ]
    assert tuples(scan_parquet(spark, files, schema=wanted)) == [(n, None) for n in (0, 1, 10, 11)]


# --- column mapping -------------------------------------------------------------------------


def mapped(name: str, number: int, data_type: DataType, physical: str | None = None) -> StructField:
    return StructField(
        name,
        data_type,
        metadata={
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical or f"col-{number}",
        },
    )


NESTED = StructType(
    (
        mapped("id", 1, LONG),
        mapped("c d", 2, STRING),
        mapped("n", 3, StructType((mapped("x", 4, INTEGER), mapped("y", 5, STRING)))),
        mapped("arr", 6, ArrayType(StructType((mapped("q", 7, INTEGER),)))),
        mapped("m", 8, MapType(STRING, StructType((mapped("v", 9, LONG),)))),
        mapped("p", 10, INTEGER),
    )
)


def mapped_file(ids: dict[str, int]) -> pa.Table:
    """One row with everything set and one with NULLs, under physical names and with ids."""

    def named(name: str, data_type: pa.DataType) -> pa.Field:
        return pa.field(name, data_type, metadata={"PARQUET:field_id": str(ids[name])})

    schema = pa.schema(
        [
            named("col-1", pa.int64()),
            named("col-2", pa.string()),
            named("col-3", pa.struct([named("col-4", pa.int32()), named("col-5", pa.string())])),
            named("col-6", pa.list_(pa.struct([named("col-7", pa.int32())]))),
            named("col-8", pa.map_(pa.string(), pa.struct([named("col-9", pa.int64())]))),
        ]
    )
    rows = [
        {
            "col-1": 1,
            "col-2": "one",
            "col-3": {"col-4": 4, "col-5": "five"},
            "col-6": [{"col-7": 7}, None],
            "col-8": [("k", {"col-9": 9})],
        },
        {"col-1": 2, "col-2": None, "col-3": None, "col-6": [], "col-8": None},
    ]
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.mark.smoke
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_come_out_under_logical_names_at_every_depth_m109(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    table = TableFiles.create(
        tmp_path / "t",
        NESTED,
        partition_columns=["p"],
        configuration={"delta.columnMapping.mode": mode},
    )
    content = mapped_file({f"col-{n}": n for n in range(1, 11)})
    table.write("a/x.parquet", content, values={"col-10": "7"}, deleted=[])
    rows = scan(spark, table.snapshot())
    assert rows.schema.simpleString() == (
        "struct<id:bigint,c d:string,n:struct<x:int,y:string>,arr:array<struct<q:int>>,"
        "m:map<string,struct<v:bigint>>,p:int>"
    )
    first, second = (r.asDict(recursive=True) for r in rows.orderBy("id").collect())
    assert first == {
        "id": 1,
        "c d": "one",
        "n": {"x": 4, "y": "five"},
        "arr": [{"q": 7}, None],
        "m": {"k": {"v": 9}},
        "p": 7,
    }
    assert second == {"id": 2, "c d": None, "n": None, "arr": [], "m": None, "p": 7}
    assert rows.filter("id = 2 and p = 7").count() == 1
    if mode == "name":
        assert "EqualTo(col-1,2)" in executed_plan(rows.filter("id = 2")).replace("`", "")


@pytest.mark.smoke
def test_ids_find_columns_whose_names_are_foreign(spark: SparkSession, tmp_path: Path) -> None:
    """As in a table that was converted from Iceberg; a filter by name would lose the row."""
    table = TableFiles.create(
        tmp_path / "t",
        StructType((mapped("a", 1, LONG, "a"), mapped("late", 9, LONG, "late"))),
        configuration={"delta.columnMapping.mode": "id"},
    )
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": number})
        for name, number in (("b", "1"), ("a", "2"))
    ]
    table.write("x.parquet", pa.table({"b": longs(5), "a": longs(700)}, schema=pa.schema(fields)))
    rows = scan(spark, table.snapshot())
    assert tuples(rows) == [(5, None)]
    assert tuples(rows.filter("a = 5")) == [(5, None)]


def test_file_with_a_wider_type_than_the_table_fails(spark: SparkSession, tmp_path: Path) -> None:
    """Only widening is safe; the other way values would be cut."""
    table = TableFiles.create(tmp_path / "t", schema(id=INTEGER))
    table.write("x.parquet", {"id": longs(2**40)})
    with pytest.raises(Exception, match=r"CONVERT|convert|PARQUET"):
        scan(spark, table.snapshot()).collect()


def test_hidden_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = TableFiles.create(tmp_path / "t", schema(id=LONG))
    table.write("_x.parquet", {"id": longs(1)})
    with pytest.raises(UnsupportedError, match=r"_x\.parquet"):
        scan(spark, table.snapshot())


def test_absolute_and_encoded_paths_x80(spark: SparkSession, tmp_path: Path) -> None:
    table = TableFiles.create(tmp_path / "t b", schema(id=LONG))
    table.write("dir %20 é/x#?.parquet", {"id": longs(1)})
    outside = tmp_path / "out side.parquet"
    pq.write_table(pa.table({"id": longs(2)}), outside)
    add = table.adds[0]
    uri = "file://" + str(outside).replace(" ", "%20")
    absolute = type(add)(
        path=uri,
        partition_values={},
        size_bytes=outside.stat().st_size,
        modified_ms=0,
        data_change=True,
    )
    table.commit(absolute)
    assert tuples(scan(spark, table.snapshot())) == [(1,), (2,)]
