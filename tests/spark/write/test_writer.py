"""Data files of a table: layout, physical names, partition values, statistics."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.actions.paths import decode_path
from puredelta.protocol.features.column_mapping import assign_columns
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.traversal import all_fields
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import from_spark, struct_as_nullable
from puredelta.spark.write.writer import JobOptions, write_rows
from puredelta.spark.write.written_files import discard
from puredelta.store.local import LocalStore


def config(rows, *, partitions=(), mapping="none", features=(), **configuration) -> TableConfig:
    schema = from_spark(struct_as_nullable(rows.schema))
    if mapping != "none":
        schema, _ = assign_columns(schema, max_column_id=0)
        configuration["delta.columnMapping.mode"] = mapping
        features = (*features, "columnMapping")
    listed = frozenset(features) | {"timestampNtz"}
    return TableConfig.of(
        Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=listed,
            writer_features=listed,
        ),
        Metadata(
            id="t",
            schema_string=encode_schema(schema),
            partition_columns=tuple(partitions),
            configuration=configuration,
        ),
    )


def written(rows, root, **options):
    table = config(rows, **options)
    return write_rows(rows, store=LocalStore(root), config=table), table


def footer(root, add) -> pq.ParquetFile:
    return pq.ParquetFile(Path(root) / decode_path(add.path))


def stats(add) -> dict:
    return json.loads(add.stats, parse_float=Decimal)


def test_files_lie_in_a_visible_directory_of_their_job(spark, tmp_path):
    result, _ = written(spark.range(0, 10, 1, 2), tmp_path)
    (directory,) = result.directories
    assert re.fullmatch(r"job-\d{8}-\d{6}-[0-9a-f]{12}", directory)
    assert (result.num_rows, len(result.adds)) == (10, 2)
    assert result.size_bytes == sum(
        (tmp_path / decode_path(a.path)).stat().st_size for a in result.adds
    )
    assert all(a.data_change and a.modified_ms > 0 for a in result.adds)
    discard(result, LocalStore(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_x85_mapped_tables_have_a_random_prefix(spark, tmp_path):
    result, _ = written(spark.range(2), tmp_path, mapping="name")
    (directory,) = result.directories
    assert re.match(r"[0-9A-Za-z]{2}-job-", directory)


PARTITIONS = """
    select * from values
    (1, cast(1.5 as decimal(5,2)), date'0001-01-01', timestamp'2020-01-01 10:11:12.123456',
     timestamp_ntz'2020-01-01 10:11:12.5', 1.5D, float(0.1), true, X'6131c3a9', '', 1Y,
     'a/b=c%d e:é#?', 1e10D, -9L),
    (2, cast(0 as decimal(5,2)), date'2020-02-29', timestamp'1500-01-01 00:00:00',
     timestamp_ntz'2020-01-01 00:00:00', double('NaN'), float('-Infinity'), false, X'00', ' ', -1Y,
     '__HIVE_DEFAULT_PARTITION__', -0.0D, 9L),
    (3, null, null, null, null, null, null, null, null, null, null, null, null, null)
    as t(i, dec, d, ts, ntz, dbl, fl, b, bin, e, by, s, bd, l)
"""


@pytest.mark.parametrize("time_zone", ["UTC", "America/New_York"])
def test_x83_partition_values_of_every_type(spark, tmp_path, time_zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", time_zone)
    try:
        rows = spark.sql(PARTITIONS)
        result, _ = written(rows, tmp_path, partitions=rows.columns[1:])
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    by_id = {stats(add)["minValues"]["i"]: add for add in result.adds}
    first, old = ("2020-01-01T15:11:12.123456Z", "1500-01-01T04:56:02.000000Z")
    if time_zone == "UTC":
        first, old = ("2020-01-01T10:11:12.123456Z", "1500-01-01T00:00:00.000000Z")
    assert by_id[1].partition_values == {
        "dec": "1.50",
        "d": "0001-01-01",
        "ts": first,
        "ntz": "2020-01-01 10:11:12.5",
        "dbl": "1.5",
        "fl": "0.1",
        "b": "true",
        "bin": "a1é",
        "e": None,
        "by": "1",
        "s": "a/b=c%d e:é#?",
        "bd": "1.0E10",
        "l": "-9",
    }
    assert by_id[2].partition_values == {
        "dec": "0.00",
        "d": "2020-02-29",
        "ts": old,
        "ntz": "2020-01-01 00:00:00",
        "dbl": "NaN",
        "fl": "-Infinity",
        "b": "false",
        "bin": "\0",
        "e": " ",
        "by": "-1",
        "s": "__HIVE_DEFAULT_PARTITION__",
        "bd": "0.0",
        "l": "9",
    }
    assert set(by_id[3].partition_values.values()) == {None}
    for add in result.adds:
        assert footer(tmp_path, add).schema_arrow.names == ["i"], "M-144: left out of the file"
        assert set(stats(add)["nullCount"]) == {"i"}
    assert "/dec=1.50/d=0001-01-01/" in by_id[1].path


def test_bytes_that_are_no_text_cannot_partition(spark, tmp_path):
    rows = spark.sql("select 1 i, X'ff' b")
    with pytest.raises(InvalidRequestError) as caught:
        written(rows, tmp_path, partitions=["b"])
    assert caught.value.code is ErrorCode.INVALID_PARTITION_COLUMN_TYPE
    assert list(tmp_path.iterdir()) == []


NESTED = """
    select 1L id, 'one' `c d`, named_struct('xx', 1, 'y', named_struct('z.z', 'q')) n,
           array(named_struct('q', 7)) arr, map('k', named_struct('v', 1.5D)) m, 'part' p
    union all select 2L, null, null, array(), map(), null
"""


@pytest.mark.smoke
@pytest.mark.parametrize("mapping", ["name", "id"])
def test_m109_physical_names_and_field_ids(spark, tmp_path, mapping):
    # The first column carries the check of a constraint, and still all ids of its fields.
    rows = spark.sql(NESTED).select("n", "id", "`c d`", "arr", "m", "p").coalesce(1)
    checked = {"delta.constraints.positive": "id > 0"}
    result, table = written(rows, tmp_path, partitions=["p"], mapping=mapping, **checked)
    by_part = {a.partition_values[table.physical_name("p")]: a for a in result.adds}
    assert set(by_part) == {"part", None}
    arrow = footer(tmp_path, by_part["part"]).schema_arrow
    ids = {}

    def walk(field):
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        if number is not None:
            ids[field.name] = int(number)
        for i in range(field.type.num_fields):
            walk(field.type.field(i))

    for field in arrow:
        walk(field)
    mapped = {
        f.metadata["delta.columnMapping.physicalName"]: f.metadata["delta.columnMapping.id"]
        for f in all_fields(table.schema)
        if f.name != "p"
    }
    assert ids == mapped
    found = stats(by_part["part"])
    path = table.physical_path(("n", "y", "z.z"))
    assert found["minValues"][path[0]][path[1]][path[2]] == "q"
    assert found["nullCount"][table.physical_name("arr")] == 0
    assert stats(by_part[None])["nullCount"][table.physical_name("c d")] == 1


ALL_TYPES = """
    select * from values
    (1, 'a', 1.25BD, date'2020-01-02', timestamp'2020-01-01 10:11:12.123456',
     timestamp_ntz'2020-01-01 10:11:12.123456', 1.5D, float(0.1), true, X'00ff', array(1),
     map('a', 1), 1Y, 2S,
     9007199254740993L, double('NaN'), double('Infinity'), -0.0D, array(1, null)),
    (2, null, 12345678901234567890.5BD, date'0001-01-01', timestamp'1500-01-01 00:00:00',
     timestamp_ntz'9999-12-31 23:59:59.999999', -2.5D, float(3.4e38), null, null, array(), map(),
     null, null, null, 1.0D, double('-Infinity'), 0.0D, array(2))
    as t(i, s, dec, d, ts, ntz, dbl, fl, b, bin, arr, m, by, sh, l, nan, inf, z, ne)
"""


@pytest.mark.smoke
def test_x60_statistics_of_every_type(spark, tmp_path):
    rows = spark.sql(ALL_TYPES).selectExpr(
        "*",
        "named_struct('x', if(i = 1, 5, null), 'y', if(i = 1, named_struct('z', 'q'), null)) n",
        "repeat('é', 40) s40",
        "repeat('x', 5000) s5000",
        "cast(null as int) nothing",
    )
    result, _ = written(rows.coalesce(1), tmp_path)
    (add,) = result.adds
    found = stats(add)
    assert found["numRecords"] == 2
    assert "tightBounds" not in found
    low, high, nulls = found["minValues"], found["maxValues"], found["nullCount"]
    assert low == {
        "i": 1,
        "s": "a",
        "dec": Decimal("1.25"),
        "d": "0001-01-01",
        "ts": "1500-01-01T00:00:00.000Z",
        "ntz": "2020-01-01T10:11:12.123",
        "dbl": Decimal("-2.5"),
        "fl": Decimal("0.10000000149011612"),
        "by": 1,
        "sh": 2,
        "l": 9007199254740993,
        "z": Decimal("-0.0"),
        "n": {"x": 5, "y": {"z": "q"}},
        "s40": "é" * 32,
        "s5000": "x" * 32,
    }
    assert str(low["z"]) == "-0.0"
    assert high == {
        "i": 2,
        "s": "a",
        "dec": Decimal("12345678901234567890.50"),
        "d": "2020-01-02",
        "ts": "2020-01-01T10:11:12.124Z",
        "dbl": Decimal("1.5"),
        "fl": Decimal("3.3999999521443642e+38"),
        "by": 1,
        "sh": 2,
        "l": 9007199254740993,
        "z": Decimal("0.0"),
        "n": {"x": 5, "y": {"z": "q"}},
        "s40": "é" * 32 + "\U0010ffff",
        "s5000": "x" * 32 + "\x7f",
    }
    known = dict.fromkeys(("i", "dec", "d", "ts", "ntz", "dbl", "fl", "nan", "inf", "z"), 0)
    once = dict.fromkeys(("s", "b", "bin", "by", "sh", "l"), 1)
    text = {"s40": 0, "s5000": 0}
    nested = {"n": {"x": 1, "y": {"z": 1}}}
    assert nulls == {**known, **once, **text, **nested, "nothing": 2}


def test_x60_tight_bounds_where_deletion_vectors_are_supported(spark, tmp_path):
    result, _ = written(spark.range(1), tmp_path, features=["deletionVectors"])
    assert stats(result.adds[0])["tightBounds"] is True


def test_m83_files_without_rows_are_dropped(spark, tmp_path):
    rows = spark.range(0, 10, 1, 1).filter("id > 100")
    result, _ = written(rows, tmp_path)
    assert (result.adds, result.num_rows) == ((), 0)
    assert list(tmp_path.iterdir()) == []


def test_m113_a_file_has_no_void_column(spark, tmp_path):
    result, _ = written(spark.sql("select 1 i, null v"), tmp_path)
    (add,) = result.adds
    assert footer(tmp_path, add).schema_arrow.names == ["i"]
    assert stats(add)["nullCount"]["i"] == 0


def test_a_table_of_void_columns_has_no_files(spark, tmp_path):  # M-113
    with pytest.raises(InvalidRequestError, match="void: v") as caught:
        written(spark.sql("select null v"), tmp_path)
    assert caught.value.code is ErrorCode.TABLE_ALL_VOID_COLUMNS
    with pytest.raises(InvalidRequestError, match="void: v") as caught:
        written(spark.sql("select null v, 'a' p"), tmp_path, partitions=["p"])
    assert caught.value.code is ErrorCode.NON_PARTITION_COLUMN_ABSENT


def test_m113_structs_are_stored_without_their_void_fields(spark, tmp_path):
    rows = spark.sql(
        "select named_struct('v', null, 'x', 1, 'in', named_struct('y.z', 2, 'void.', null)) s"
    )
    result, _ = written(rows.union(spark.sql("select null")), tmp_path)
    shapes = {str(footer(tmp_path, add).schema_arrow.field("s").type) for add in result.adds}
    assert shapes == {"struct<x: int32, in: struct<y.z: int32>>"}
    found = spark.read.parquet(*(str(tmp_path / add.path) for add in result.adds)).collect()
    assert {row.s and (row.s.x, row.s["in"][0]) for row in found} == {None, (1, 2)}


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("array(null)", ErrorCode.COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE),
        ("map('a', named_struct('v', null))", ErrorCode.COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE),
        ("named_struct('v', null)", ErrorCode.STRUCT_ALL_VOID_FIELDS),
    ],
)
def test_m113_what_cannot_be_stored_of_void_is_refused(spark, tmp_path, column, code):
    with pytest.raises(InvalidRequestError) as caught:
        written(spark.sql(f"select 1 i, {column} c"), tmp_path)
    assert caught.value.code is code


def test_rebalance_brings_partitions_together(spark, tmp_path):  # M-140
    rows = spark.range(0, 800, 1, 4).selectExpr("id", "cast(id % 2 as string) `p.q`")
    plain, _ = written(rows, tmp_path / "plain", partitions=["p.q"])
    table = config(rows, partitions=["p.q"])
    fewer = write_rows(
        rows, store=LocalStore(tmp_path / "few"), config=table, options=JobOptions(rebalance=True)
    )
    assert len(plain.adds) == 8
    assert len(fewer.adds) == 2
    assert plain.num_rows == fewer.num_rows == 800


def test_constraints_may_be_left_to_the_rows_history(spark, tmp_path):
    rows = spark.range(3)
    table = config(rows, **{"delta.constraints.big": "id > 100"})
    with pytest.raises(InvalidRequestError):
        write_rows(rows, store=LocalStore(tmp_path), config=table)
    copied = write_rows(
        rows,
        store=LocalStore(tmp_path),
        config=table,
        options=JobOptions(enforce_constraints=False),
    )
    assert copied.num_rows == 3


def test_the_codec_is_the_tables(spark, tmp_path):
    result, _ = written(spark.range(9), tmp_path, **{"delta.parquet.compression.codec": "ZSTD"})
    column = footer(tmp_path, result.adds[0]).metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"
