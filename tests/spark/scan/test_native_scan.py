"""The native relation: exactly the files asked for, whatever their paths, values and types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, UnsupportedError
from puredelta.protocol.schema.partition_values import HIVE_NULL
from puredelta.spark.scan.data_file import DataFile, ReadLayout
from puredelta.spark.scan.native_scan import native_scan
from tests.spark.files import data_file, executed_plan, write_file

FLAT = T.StructType()
ID = T.StructType([T.StructField("id", T.LongType(), False)])


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


@pytest.mark.smoke
def test_any_path_is_read_and_reported(spark: SparkSession, tmp_path: Path) -> None:
    names = ["plain", "a b", "100%25 x%", "ünï-文", "q=1,[x]{y}#z?w&v+", "colon:in:dir"]
    files = [
        write_file(tmp_path / "odd dir %20 é" / n / f"{n.replace(':', '-')}.parquet", ids(i))
        for i, n in enumerate(names)
    ]
    rows = native_scan(spark, files, ReadLayout(data_schema=ID, partition_schema=FLAT))
    found = rows.select("id", "_metadata.file_path", "_metadata.row_index").collect()
    assert {(r.id, unquote(r.file_path).replace("file:///", "file:/")) for r in found} == {
        (i, f.uri) for i, f in enumerate(files)
    }
    assert {r.row_index for r in found} == {0}


def test_column_an_old_file_lacks_is_null_even_if_declared_not_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = [
        write_file(tmp_path / "old.parquet", ids(1)),
        write_file(tmp_path / "new.parquet", {"id": pa.array([2], pa.int64()), "late": ["x"]}),
    ]
    schema = T.StructType([*ID.fields, T.StructField("late", T.StringType(), False)])
    rows = native_scan(spark, files, ReadLayout(data_schema=schema, partition_schema=FLAT))
    assert rows.schema["late"].nullable
    assert sorted(map(tuple, rows.filter("late is null or id > 0").collect())) == [
        (1, None),
        (2, "x"),
    ]
    assert rows.filter("late is null").count() == 1


@pytest.mark.parametrize("name", ["_hidden.parquet", ".hidden.parquet", "a:b.parquet"])
def test_file_spark_would_lose_is_refused(spark: SparkSession, tmp_path: Path, name: str) -> None:
    file = write_file(tmp_path / name, ids(1))
    with pytest.raises(UnsupportedError, match=name):
        native_scan(spark, [file], ReadLayout(data_schema=ID, partition_schema=FLAT))


def test_empty_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    file = DataFile(uri=f"file:{tmp_path}/x.parquet", size_bytes=0)
    with pytest.raises(CorruptTableError, match="0 bytes"):
        native_scan(spark, [file], ReadLayout(data_schema=ID, partition_schema=FLAT))


def test_name_that_looks_like_a_partition_may_begin_with_underscore(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_file(tmp_path / "_p=1.parquet", ids(1))
    assert (
        native_scan(spark, [file], ReadLayout(data_schema=ID, partition_schema=FLAT)).count() == 1
    )


PARTITION_TYPES: dict[str, T.DataType] = {
    "s": T.StringType(),
    "i": T.IntegerType(),
    "l": T.LongType(),
    "h": T.ShortType(),
    "y": T.ByteType(),
    "dec": T.DecimalType(10, 2),
    "big": T.DecimalType(38, 10),
    "f": T.FloatType(),
    "dbl": T.DoubleType(),
    "b": T.BooleanType(),
    "d": T.DateType(),
    "ts": T.TimestampType(),
    "ntz": T.TimestampNTZType(),
    "bin": T.BinaryType(),
    # PySpark 4.0.0 loses every row that holds a collated string on its way to Python.
    "col": T.StringType() if pyspark.__version__ == "4.0.0" else T.StringType("UTF8_LCASE"),
}
PARTITION_VALUES: list[dict[str, str | None]] = [
    {
        "s": "a/b=c %20 é\n",
        "i": "-7",
        "l": "9223372036854775807",
        "h": "3",
        "y": "-128",
        "dec": "1.5",
        "big": "12345678901234567890.5",
        "f": "1.5",
        "dbl": "-1.0E-10",
        "b": "true",
        "d": "2020-02-29",
        "ts": "2020-01-01 10:11:12.123456",
        "ntz": "2020-01-01 10:11:12.123456",
        "bin": "a/b c",
        "col": "A b/c",
    },
    {
        "s": HIVE_NULL,
        "i": "0",
        "l": "0",
        "h": "0",
        "y": "0",
        "dec": "0",
        "big": "0",
        "f": "NaN",
        "dbl": "Infinity",
        "b": "false",
        "d": "1582-10-15",
        "ts": "2020-01-01T10:11:12.000001Z",
        "ntz": "1900-01-01 00:00:00",
        "bin": "é",
        "col": HIVE_NULL,
    },
    dict.fromkeys(PARTITION_TYPES),
    dict.fromkeys(PARTITION_TYPES, ""),
]


@pytest.fixture
def partitioned(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """One directory, four files, a value of every type."""
    files = [
        write_file(tmp_path / "one-dir" / f"{n}.parquet", ids(n), **values)
        for n, values in enumerate(PARTITION_VALUES)
    ]
    schema = T.StructType([T.StructField(n, t) for n, t in PARTITION_TYPES.items()])
    return native_scan(spark, files, ReadLayout(data_schema=ID, partition_schema=schema))


@pytest.mark.smoke
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_partition_values_are_what_a_cast_of_the_log_text_gives_x82_x83(
    spark: SparkSession, tmp_path: Path, conf: Any, zone: str
) -> None:
    conf("spark.sql.session.timeZone", zone)
    files = [
        write_file(tmp_path / f"{n}.parquet", ids(n), **values)
        for n, values in enumerate(PARTITION_VALUES)
    ]
    schema = T.StructType([T.StructField(n, t) for n, t in PARTITION_TYPES.items()])
    rows = native_scan(spark, files, ReadLayout(data_schema=ID, partition_schema=schema))
    assert [f.dataType for f in rows.schema.fields[1:]] == list(PARTITION_TYPES.values())
    found = {r.id: r for r in rows.collect()}
    for n, values in enumerate(PARTITION_VALUES):
        (expected,) = (
            spark.range(1)
            .select(
                *[
                    F.lit(values[c] or None).cast("string").cast(t).alias(c)
                    for c, t in PARTITION_TYPES.items()
                ]
            )
            .collect()
        )
        assert str({c: found[n][c] for c in PARTITION_TYPES}) == str(expected.asDict())


@pytest.mark.smoke
def test_partition_pruning_pushdown_and_column_pruning_are_in_the_plan(
    partitioned: DataFrame,
) -> None:
    pruned = partitioned.filter("d = date'2020-02-29' and id > -1 and dec = 1.50").select("id")
    plan = executed_plan(pruned)
    assert "d#" in plan.split("PartitionFilters: [")[1].split("]")[0], plan
    assert "GreaterThan(id,-1)" in plan
    assert "ReadSchema: struct<id:bigint>" in plan
    assert [r.id for r in pruned.collect()] == [0]
    assert [r.id for r in partitioned.filter("bin = cast('é' as binary)").collect()] == [1]
    same = "A b/c" if pyspark.__version__ == "4.0.0" else "a B/C"
    assert [r.id for r in partitioned.filter(f"col = '{same}'").collect()] == [0]
    assert [r.id for r in partitioned.filter("i = 0").select("_metadata.file_path", "id").collect()]


@pytest.mark.parametrize(
    ("data_type", "text"),
    [("int", "abc"), ("decimal(5,2)", "abc"), ("decimal(3,2)", "1234567.1"), ("date", "xx")],
)
def test_partition_value_of_another_type_is_corrupt(
    spark: SparkSession, tmp_path: Path, data_type: str, text: str
) -> None:
    file = write_file(tmp_path / "x.parquet", ids(1), p=text)
    with pytest.raises(CorruptTableError, match=text):
        native_scan(
            spark,
            [file],
            ReadLayout(data_schema=ID, partition_schema=T.StructType.fromDDL(f"p {data_type}")),
        ).collect()


def test_dynamic_partition_pruning_and_row_index_under_splits(
    spark: SparkSession, tmp_path: Path, conf: Any
) -> None:
    files = [write_file(tmp_path / f"{n}.parquet", ids(*range(20_000)), p=str(n)) for n in range(4)]
    by_p = T.StructType.fromDDL("p int")
    rows = native_scan(spark, files, ReadLayout(data_schema=ID, partition_schema=by_p))
    keys = spark.createDataFrame([(3, "x")], "p int, tag string").filter("tag = 'x'")
    joined = rows.join(F.broadcast(keys), "p")
    assert "dynamicpruning" in executed_plan(joined)
    assert joined.count() == 20_000
    conf("spark.sql.files.maxPartitionBytes", "16k")
    cut = rows.filter("p = 2").select("id", "_metadata.row_index")
    assert cut.rdd.getNumPartitions() > 1
    assert cut.filter("id = row_index").count() == 20_000


def test_two_scans_are_the_same_only_with_the_same_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = [write_file(tmp_path / f"{n}.parquet", ids(n)) for n in range(4)]

    def scan(some: list[DataFile]) -> DataFrame:
        return native_scan(spark, some, ReadLayout(data_schema=ID, partition_schema=FLAT))

    assert scan(files).sameSemantics(scan(files))
    assert not scan(files).sameSemantics(scan(files[:2]))
    assert scan(files).cache().union(scan(files[:2])).count() == 6
    spark.catalog.clearCache()


@pytest.mark.smoke
def test_no_files_give_no_rows_but_the_schema_and_metadata(spark: SparkSession) -> None:
    by_p = T.StructType.fromDDL("p int")
    for partition_schema in (FLAT, by_p):
        rows = native_scan(spark, [], ReadLayout(data_schema=ID, partition_schema=partition_schema))
        assert rows.columns == ["id", *partition_schema.names]
        assert rows.select("*", "_metadata.row_index").collect() == []
        assert rows.filter("id = 1").groupBy().count().first()["count"] == 0


def test_opening_lists_nothing_and_runs_no_job(spark: SparkSession) -> None:
    """The files need not even exist."""
    files = [
        DataFile(
            uri=f"file:/nowhere/part-{n}.parquet", size_bytes=1000, partition_values={"k": str(n)}
        )
        for n in range(2000)
    ]
    spark.sparkContext.setJobGroup("open", "open")
    rows = native_scan(
        spark, files, ReadLayout(data_schema=ID, partition_schema=T.StructType.fromDDL("k int"))
    )
    assert rows.columns == ["id", "k"]
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("open")
    assert len(rows.filter("k < 5").inputFiles()) == 2000


def test_field_ids_beat_names_and_no_filter_is_pushed(spark: SparkSession, tmp_path: Path) -> None:
    """Files whose names are not the physical ones: pushed by name, a filter would lose rows."""
    schema = pa.schema(
        [
            pa.field("b", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    path = tmp_path / "swap.parquet"
    pq.write_table(pa.table({"b": [5], "a": [700]}, schema=schema), path)
    wanted = T.StructType(
        [
            T.StructField("a", T.LongType(), True, {"parquet.field.id": 1}),
            T.StructField("late", T.LongType(), True, {"parquet.field.id": 9}),
        ]
    )
    rows = native_scan(
        spark,
        [data_file(path)],
        ReadLayout(data_schema=wanted, partition_schema=FLAT, by_field_id=True),
    )
    assert [tuple(r) for r in rows.collect()] == [(5, None)]
    assert rows.filter("a = 5").count() == 1
    assert spark.conf.get("spark.sql.parquet.fieldId.read.enabled") == "false"


WIDENINGS = [
    ("byte", "short", "1Y, -128Y, null"),
    ("short", "int", "1S, -32768S, null"),
    ("int", "bigint", "1, -2147483648, null"),
    ("float", "double", "1.5F, float('nan'), null"),
    ("int", "double", "1, -2147483648, null"),
    ("date", "timestamp_ntz", "date'2020-01-02', date'1900-01-01', null"),
    ("decimal(5,2)", "decimal(12,4)", "1.25BD, -999.99BD, null"),
    ("decimal(5,2)", "decimal(25,4)", "1.25BD, -999.99BD, null"),
    ("int", "decimal(12,2)", "1, -2147483648, null"),
    ("bigint", "decimal(22,2)", "1L, -9223372036854775808L, null"),
]


@pytest.mark.thorough
def test_narrow_files_read_with_the_widened_type(spark: SparkSession, tmp_path: Path) -> None:
    """Type widening needs no schema per file: values and filters are those of a cast."""
    narrow = spark.sql("select stack(3, 0, 1, 2) as n").select(
        "n",
        *[
            F.expr(f"cast(array({values})[n] as {small})").alias(f"c{k}")
            for k, (small, _, values) in enumerate(WIDENINGS)
        ],
    )
    narrow.coalesce(1).write.parquet(str(tmp_path / "narrow"))
    (path,) = (tmp_path / "narrow").glob("*.parquet")
    wide = T.StructType.fromDDL(
        ", ".join(["n int", *(f"c{k} {large}" for k, (_, large, _) in enumerate(WIDENINGS))])
    )
    rows = native_scan(
        spark, [data_file(path)], ReadLayout(data_schema=wide, partition_schema=FLAT)
    )
    cast = (
        narrow.select(*[F.col(f.name).cast(f.dataType) for f in wide.fields]).orderBy("n").collect()
    )
    assert str(rows.orderBy("n").collect()) == str(cast)
    for k, (_, large, _) in enumerate(WIDENINGS):
        for row in cast:
            same = F.col(f"c{k}").eqNullSafe(F.lit(row[k + 1]).cast(large))
            assert [r.n for r in rows.filter(same).collect()] == [row.n], (large, row)


def test_decimal_text_keeps_the_value_whatever_its_digits(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = ["1.5", "1.50", "1.500", "-0.01", "1E2"]
    files = [write_file(tmp_path / f"{n}.parquet", ids(n), p=text) for n, text in enumerate(texts)]
    by_p = T.StructType.fromDDL("p decimal(10,2)")
    rows = native_scan(spark, files, ReadLayout(data_schema=ID, partition_schema=by_p))
    assert {r.id: r.p for r in rows.collect()} == {n: Decimal(t) for n, t in enumerate(texts)}


def test_int96_and_micros_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    when = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 2, 29)]  # noqa: DTZ001
    table = pa.table({"id": [0, 1], "at": pa.array(when, pa.timestamp("us", "UTC"))})
    paths = [tmp_path / "int96.parquet", tmp_path / "micros.parquet"]
    pq.write_table(table, paths[0], use_deprecated_int96_timestamps=True)
    pq.write_table(table, paths[1])
    schema = T.StructType.fromDDL("id long, at timestamp")
    rows = native_scan(
        spark, [data_file(p) for p in paths], ReadLayout(data_schema=schema, partition_schema=FLAT)
    )
    assert sorted(r["at"] for r in rows.collect()) == [when[0], when[0], when[1], when[1]]


def test_a_promise_of_values_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    schema = T.StructType([*ID.fields, T.StructField("late", T.StringType())])
    old = write_file(tmp_path / "old.parquet", ids(1))
    new = write_file(tmp_path / "new.parquet", {"id": pa.array([2], pa.int64()), "late": ["x"]})
    options = {
        "data_schema": schema,
        "partition_schema": FLAT,
        "required": frozenset({"id", "late"}),
    }
    rows = native_scan(spark, [new], ReadLayout(**options))
    assert [f.nullable for f in rows.schema] == [False, False]
    assert rows.filter("id IS NOT NULL AND late = 'x'").count() == 1
    with pytest.raises(Exception, match="late"):
        native_scan(spark, [old], ReadLayout(**options)).collect()
