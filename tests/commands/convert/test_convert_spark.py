"""Directories that Spark wrote, and questions only Spark can answer."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from puredelta.api import read, sql
from puredelta.api import write as append_rows
from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.commands.read_table import read_stream
from puredelta.errors import DeltaError, InvalidRequestError, UnsupportedError
from tests.commands.convert.directories import adds, first_commit, schema, write
from tests.commands.convert.spark_directories import ALL_TYPES, rows_of, settings


def require_same_rows(spark: SparkSession, root: Path) -> None:
    """Read the table, and the directory with Spark."""
    given = spark.read.option("mergeSchema", "true").parquet(str(root))
    assert rows_of(read(spark, root), given.columns) == rows_of(given, given.columns)


@pytest.mark.smoke
def test_every_type(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    frame = spark.sql(ALL_TYPES)
    with settings(spark, spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS"):
        frame.coalesce(1).write.parquet(str(root))
    assert convert_to_delta(spark, f"parquet.`{root}`").num_files == 1
    text = first_commit(root)["metaData"][0]["schemaString"]
    assert json.loads(text) == json.loads(spark.read.parquet(str(root)).schema.json())
    require_same_rows(spark, root)
    (add,) = adds(root).values()
    low = add["stats"]["minValues"]
    assert low["n"] == {"x": 5, "y": {"z": "q"}}
    assert low["d"] == "2020-01-02"
    assert low["ts"].startswith("2020-01-01T10:11:12.123")
    assert low["ntz"].startswith("2020-01-01T10:11:12.123")
    assert Decimal(str(low["dec"])) == Decimal("1.25")
    assert low["dbl"] == 1.5, "parquet-mr is trusted with floats (C-51b)"
    assert not {"b", "bin", "arr", "m"} & set(low)


def test_int96_and_legacy_lists(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark writes by default, and what it wrote long ago."""
    root = tmp_path / "t"
    with settings(
        spark,
        spark__sql__parquet__outputTimestampType="INT96",
        spark__sql__parquet__writeLegacyFormat="true",
    ):
        spark.sql(ALL_TYPES).write.parquet(str(root))
    convert_to_delta(spark, f"parquet.`{root}`")
    require_same_rows(spark, root)
    for add in adds(root).values():
        assert "ts" not in add["stats"].get("minValues", {})


def test_c_46_special_characters_in_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t [1] %20"
    values = ["a b", "%!@#$^&*-?.+<_>|/", "é ü", "x=y", "10:00", "", None, "#", "[", "日本", "'\""]
    frame = spark.createDataFrame(list(enumerate(values)), "id int, `p.q` string")
    frame.write.partitionBy("p.q").parquet(str(root))
    convert_to_delta(spark, f"parquet.`{root}`", "`p.q` string")
    expected = [value or None for value in values]
    assert [row[0] for row in read(spark, root).orderBy("id").select("`p.q`").collect()] == expected


def test_partition_types(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    frame = spark.sql(
        """select id, cast(id as int) i, date'2024-01-30' + cast(id as int) d, id > 1 b,
        timestamp'2024-01-01 10:00:00.5' t, cast(id as decimal(5, 2)) x, id / 4 f
        from range(4)"""
    )
    frame.write.partitionBy("i", "d", "b", "t", "x", "f").parquet(str(root))
    convert_to_delta(
        spark,
        f"parquet.`{root}`",
        "i int, d date, b boolean, t timestamp, x decimal(5, 2), f double",
    )
    assert rows_of(read(spark, root), frame.columns) == rows_of(frame, frame.columns)


def test_odd_spellings_of_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    for value in ("yes", "0", "true"):
        write(tmp_path, f"b={value}/d=2024-1-{value.count('e') + 1}/f", {"id": [value]})
    convert_to_delta(spark, f"parquet.`{tmp_path}`", "b boolean, d date")
    found = {path: add["partitionValues"] for path, add in adds(tmp_path).items()}
    assert found == {
        "b=yes/d=2024-1-2/f": {"b": "true", "d": "2024-01-02"},
        "b=0/d=2024-1-1/f": {"b": "false", "d": "2024-01-01"},
        "b=true/d=2024-1-2/f": {"b": "true", "d": "2024-01-02"},
    }
    table = read(spark, tmp_path).where("b and d = date'2024-01-02'")
    assert sorted(row["id"] for row in table.collect()) == ["true", "yes"]


def test_c_44_cast_failures(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "k=x1/f", {"id": [1]})
    for data_type, name in (("int", "IntegerType"), ("decimal(3,1)", "DecimalType(3,1)")):
        with pytest.raises(InvalidRequestError) as refused:
            convert_to_delta(spark, f"parquet.`{tmp_path}`", f"k {data_type}")
        assert f"Failed to cast partition value `x1` to {name}" in refused.value.message
    key = "spark.databricks.delta.convert.partitionValues.ignoreCastFailure"
    with settings(spark, **{key.replace(".", "__"): "true"}):
        convert_to_delta(spark, f"parquet.`{tmp_path}`", "k int")
    assert read(spark, tmp_path).where("k is null").count() == 1


@pytest.mark.parametrize(
    ("table", "names"), [({"a b": [1], "c": [1]}, "a b"), ({"s": [{"x;y": 1}]}, "x;y")]
)
def test_c_36_names_a_table_cannot_have(
    spark: SparkSession, tmp_path: Path, table: dict[str, list[object]], names: str
) -> None:
    write(tmp_path, "f", table)
    with pytest.raises(InvalidRequestError) as refused:
        convert_to_delta(spark, f"parquet.`{tmp_path}`")
    assert refused.value.getErrorClass() == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    assert names in refused.value.message
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize(
    ("column", "way"),
    [
        (pa.array([1], pa.timestamp("ns")), "coerce_timestamps='us'"),
        (pa.array([1], pa.time64("us")), "text"),
        (pa.array([1.0]).cast(pa.float16()), "as a 32-bit float"),
        (pa.array([Decimal("1.50")], pa.decimal256(50, 2)), "38 digits"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_types_a_table_cannot_have(
    spark: SparkSession, tmp_path: Path, column: pa.Array, way: str
) -> None:
    write(tmp_path, "odd", {"t": column})
    with pytest.raises((UnsupportedError, InvalidRequestError)) as refused:
        convert_to_delta(spark, f"parquet.`{tmp_path}`")
    text = str(refused.value)
    assert f"file:{tmp_path}/odd" in text
    assert way in text
    assert [text.count(part) for part in (refused.value.getCondition(), "SQLSTATE")] == [1, 1]
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("StructType(List(StructField(a,ShortType,true)))", "short"), ("garbage", "integer")],
)
def test_schemas_of_very_old_sparks(
    spark: SparkSession, tmp_path: Path, stated: str, expected: str
) -> None:
    table = pa.table({"a": pa.array([1], pa.int32())})
    key = "org.apache.spark.sql.parquet.row.metadata"
    write(tmp_path, "f", table.replace_schema_metadata({key: stated}))
    convert_to_delta(spark, f"parquet.`{tmp_path}`")
    assert schema(tmp_path) == {"a": expected}


def test_unsigned_integers_and_binary_as_string(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path,
        "f",
        {
            "u8": pa.array([255], pa.uint8()),
            "u16": pa.array([65535], pa.uint16()),
            "u32": pa.array([4294967295], pa.uint32()),
            "u64": pa.array([18446744073709551615], pa.uint64()),
            "bin": pa.array([b"text"]),
        },
    )
    with settings(spark, spark__sql__parquet__binaryAsString="true"):
        convert_to_delta(spark, f"parquet.`{tmp_path}`")
        given = spark.read.parquet(str(tmp_path)).collect()[0].asDict()
    assert schema(tmp_path) == {
        "u8": "short",
        "u16": "integer",
        "u32": "long",
        "u64": "decimal(20,0)",
        "bin": "string",
    }
    stats = adds(tmp_path)["f"]["stats"]
    for bounds in (stats["minValues"], stats["maxValues"]):
        for name, bound in bounds.items():
            assert str(bound) == str(given[name])


def test_the_partition_schema_is_ddl(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "k=1/f", {"id": [1]})
    with pytest.raises(ParseException):
        convert_to_delta(spark, f"parquet.`{tmp_path}`", "k int,,")
    with pytest.raises(InvalidRequestError, match="no list of partition columns"):
        convert_to_delta(spark, f"parquet.`{tmp_path}`", "int")
    convert_to_delta(spark, f"parquet.`{tmp_path}`", "k INT COMMENT 'key'")
    text = first_commit(tmp_path)["metaData"][0]["schemaString"]
    assert json.loads(text)["fields"][1]["metadata"] == {"comment": "key"}


def test_no_job_runs_for_a_plain_directory(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    spark.sql(ALL_TYPES).write.parquet(str(root))
    write(tmp_path, "pyarrow/f", {"id": [1]})
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("convert", "convert")
    try:
        convert_to_delta(spark, f"parquet.`{root}`")
        convert_to_delta(spark, f"parquet.`{tmp_path / 'pyarrow'}`")
        assert list(tracker.getJobIdsForGroup("convert")) == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_refusals_are_delta_errors(spark: SparkSession) -> None:
    with pytest.raises(DeltaError, match="DELTA_PATH_DOES_NOT_EXIST"):
        convert_to_delta(spark, "parquet.`/no/such/directory`")


def test_c_37_partition_columns_of_limited_length(spark: SparkSession, tmp_path: Path) -> None:
    """CHAR and VARCHAR in PARTITIONED BY are kept, and hold for what is written later."""
    root = tmp_path / "t"
    spark.sql("SELECT 1 AS id, 'ab' AS kind, 'x' AS code").write.partitionBy(
        "kind", "code"
    ).parquet(str(root))
    convert_to_delta(spark, f"parquet.`{root}`", "kind VARCHAR(2), code CHAR(3)")
    fields = json.loads(first_commit(root)["metaData"][0]["schemaString"])["fields"]
    limits = {f["name"]: f["metadata"].get("__CHAR_VARCHAR_TYPE_STRING") for f in fields}
    assert limits == {"id": None, "kind": "varchar(2)", "code": "char(3)"}
    assert read(spark, root).first() == (1, "ab", "x  ")
    with pytest.raises(DeltaError) as refused:
        append_rows(
            spark.sql("SELECT 2 AS id, 'abc' AS kind, 'y' AS code"), str(root), mode="append"
        )
    assert refused.value.getErrorClass() == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert read(spark, root).count() == 1


def test_c_62_a_converted_table_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """Its partitions are listed, its version 0 is read, and a stream reads it."""
    root = tmp_path / "t"
    frame = spark.range(4).selectExpr("id", "id % 2 AS p")
    frame.write.partitionBy("p").parquet(str(root))
    convert_to_delta(spark, f"parquet.`{root}`", "p BIGINT")
    partitions = sql(spark, f"SHOW PARTITIONS delta.`{root}`").collect()
    assert sorted(row.p for row in partitions) == [0, 1]
    append_rows(frame.where("id < 1"), str(root), mode="append")
    old = sql(spark, f"SELECT count(*) FROM delta.`{root}` VERSION AS OF 0").first()
    assert old == (4,)
    stream = read_stream(spark, str(root), {}).writeStream.format("memory").queryName("c_62")
    stream.trigger(availableNow=True).start().awaitTermination()
    assert spark.table("c_62").count() == 5
    spark.catalog.dropTempView("c_62")
