"""Iceberg tables become Delta tables over the same files, with the same rows."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.commands.convert.iceberg_tables import (
    delete_rows,
    identifier,
    new_catalog,
    root_of,
    rows_as_text,
)

from pyiceberg.catalog.sql import SqlCatalog  # isort: skip
from pyiceberg.schema import Schema  # isort: skip
from pyiceberg.table import Table  # isort: skip
from pyiceberg.table.sorting import SortField, SortOrder  # isort: skip
from pyiceberg.transforms import (  # isort: skip
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
)
from pyiceberg import types as I  # isort: skip

from puredelta.api import read, sql
from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.tables import DeltaTable
from tests.commands.convert.directories import adds, first_commit

UTC = dt.timezone.utc
IDS = pa.schema([("id", pa.int64()), ("s", pa.string())])


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": list(numbers), "s": [f"s{n}" for n in numbers]}, IDS)


def every_type(catalog: SqlCatalog) -> Table:
    kinds: list[I.IcebergType] = [
        I.LongType(), I.BooleanType(), I.IntegerType(), I.FloatType(), I.DoubleType(), I.DateType(),
        I.TimestampType(), I.TimestamptzType(), I.StringType(), I.BinaryType(), I.FixedType(3),
        I.DecimalType(9, 2), I.DecimalType(18, 4), I.DecimalType(38, 10),
    ]  # fmt: skip
    schema = Schema(
        *(I.NestedField(n, f"c{n}", kind, required=False) for n, kind in enumerate(kinds, 1))
    )
    table = catalog.create_table("db.every_type", schema)
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    some = [1, True, -(2**31), 1.5, -0.0, dt.date(1582, 10, 15), moment,
            moment.replace(tzinfo=UTC), "é" * 40, b"\x00\xff", b"abc", Decimal("-1234567.89"),
            Decimal("99999999999999.9999"), Decimal("-0.0000000001")]  # fmt: skip
    odd = [2, False, 0, math.nan, math.inf, dt.date(9999, 12, 31), dt.datetime(2100, 1, 1),  # noqa: DTZ001
           dt.datetime(2100, 1, 1, tzinfo=UTC), "", b"", b"xyz", Decimal(0), Decimal(0),
           Decimal(0)]  # fmt: skip
    arrow = table.schema().as_arrow()
    for rows in ([some], [odd, [3] + [None] * 13]):
        table.append(pa.table([list(c) for c in zip(*rows, strict=True)], schema=arrow))
    return table


def evolved_names(catalog: SqlCatalog) -> Table:
    """Renamed, dropped and added under the same name, two names exchanged, moved."""
    schema = pa.schema(
        [("id", pa.int64()), ("a", pa.string()), ("b", pa.string()), ("x", pa.int32())]
    )
    table = catalog.create_table("db.evolved_names", schema)
    table.append(
        pa.table({"id": [1, 2], "a": ["a1", "a2"], "b": ["b1", None], "x": [1, 2]}, schema)
    )
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.rename_column("a", "c")
        change.delete_column("x")
    with table.update_schema() as change:
        change.add_column("x", I.StringType())
        change.rename_column("b", "a")
    with table.update_schema() as change:
        change.move_first("a")
    table.append(
        pa.table({"a": ["a3"], "id": [3], "c": ["c3"], "x": ["new"]}, table.schema().as_arrow())
    )
    return table


def wider_types(catalog: SqlCatalog) -> Table:
    schema = Schema(
        I.NestedField(1, "id", I.IntegerType(), required=True),
        I.NestedField(2, "f", I.FloatType()),
        I.NestedField(3, "d", I.DecimalType(5, 2)),
        I.NestedField(4, "s", I.StructType(I.NestedField(5, "i", I.IntegerType()))),
        I.NestedField(6, "l", I.ListType(7, I.IntegerType(), element_required=False)),
    )
    table = catalog.create_table("db.wider_types", schema)
    table.append(
        pa.table(
            {"id": [1], "f": [1.25], "d": [Decimal("1.23")], "s": [{"i": 7}], "l": [[1, None]]},
            table.schema().as_arrow(),
        )
    )
    with table.update_schema() as change:
        change.update_column("id", I.LongType())
        change.update_column("f", I.DoubleType())
        change.update_column("d", I.DecimalType(20, 2))
        change.update_column(("s", "i"), I.LongType())
        change.update_column(("l", "element"), I.LongType())
    table.append(
        pa.table(
            {
                "id": [2**40],
                "f": [1e300],
                "d": [Decimal("123456789012345.67")],
                "s": [{"i": 2**50}],
                "l": [[2**33]],
            },
            table.schema().as_arrow(),
        )
    )
    return table


def partitioned(catalog: SqlCatalog) -> Table:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            ("d", pa.date32()),
            ("t", pa.timestamp("us", "UTC")),
        ]
    )
    table = catalog.create_table("db.partitioned", schema)
    with table.update_spec() as spec:
        for name in ("p", "d", "t"):
            spec.add_field(name, IdentityTransform(), name)
    moment = dt.datetime(2024, 1, 1, 10, 0, 0, 5, tzinfo=UTC)
    texts = ["a b", "%2F/=:", None, "é"]
    table.append(
        pa.table(
            {
                "id": range(4),
                "p": texts,
                "d": [dt.date(2024, 1, n) for n in (1, 1, 2, 3)],
                "t": [moment, None, moment, moment],
            },
            schema,
        )
    )
    return table


def computed_partitions(catalog: SqlCatalog) -> Table:
    schema = pa.schema([("id", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("s", pa.string())])
    table = catalog.create_table("db.computed_partitions", schema)
    with table.update_spec() as spec:
        spec.add_field("t", DayTransform(), "t_day")
        spec.add_field("id", BucketTransform(4), "id_bucket")
        spec.add_field("s", TruncateTransform(2), "s_trunc")
    times = [dt.datetime(2024, 1, n, 23, 30, tzinfo=UTC) for n in range(1, 6)]
    table.append(pa.table({"id": range(5), "t": times, "s": list("abcde")}, schema))
    return table


def evolved_partitions(catalog: SqlCatalog) -> Table:
    """``p`` stays, ``q`` comes and ``r`` goes; an empty text is not NULL."""
    schema = pa.schema([(name, pa.string()) for name in ("id", "p", "q", "r", "e")])
    table = catalog.create_table("db.evolved_partitions", schema)
    with table.update_spec() as spec:
        for name in ("p", "r", "e"):
            spec.add_identity(name)
    table.append(
        pa.table([["1", "2"], ["x", "y"], ["q", "q"], ["r", None], ["", "z"]], schema=schema)
    )
    with table.update_spec() as spec:
        spec.add_identity("q")
        spec.remove_field("r")
    table.append(
        pa.table([["3", "4"], ["x", None], ["q", "w"], ["r", "s"], ["", ""]], schema=schema)
    )
    return table


def deleted_rows(catalog: SqlCatalog) -> Table:
    """By positions, twice in one file, all of another; and a new file after that."""
    table = catalog.create_table("db.deleted_rows", IDS)
    table.append(ids(*range(10)))
    table.append(ids(10, 11))
    two, one = (task.file.file_path for task in table.scan().plan_files())
    table = delete_rows(table, [(one, 0), (one, 9), (one, 4), (two, 0)])
    table = delete_rows(table, [(one, 4), (one, 5), (two, 1)])
    table.append(ids(0, 20))
    return table


def copied_on_write(catalog: SqlCatalog) -> Table:
    """Sorted; rows deleted, replaced and overwritten by new files."""
    schema = Schema(
        I.NestedField(1, "id", I.LongType(), required=False),
        I.NestedField(2, "s", I.StringType(), required=False),
    )
    order = SortOrder(SortField(source_id=1, transform=IdentityTransform()))
    table = catalog.create_table("db.copied", schema, sort_order=order)
    table.append(ids(1, 2, 3))
    table.append(ids(4, 5, 6))
    table.delete("id = 2")
    table.overwrite(ids(50), overwrite_filter="id >= 5")
    return table


def nested(catalog: SqlCatalog) -> Table:
    inner = pa.struct([("x", pa.int64()), ("y", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("l", pa.list_(inner)),
            ("m", pa.map_(pa.string(), inner)),
            ("s", inner),
        ]
    )
    table = catalog.create_table("db.nested", schema)
    value = {"x": 1, "y": "a"}
    rows = {"id": [1, 2], "l": [[value, None], []], "m": [[("k", value)], None], "s": [value, None]}
    table.append(pa.table(rows, schema))
    with table.update_schema() as change:
        change.rename_column(("s", "x"), "z")
        change.add_column(("s", "w"), I.IntegerType())
        change.rename_column(("l", "element", "y"), "yy")
        change.add_column(("m", "value", "n"), I.StringType())
    arrow = table.schema().as_arrow()
    rows = {
        "id": [3],
        "l": [[{"x": 9, "yy": "b"}]],
        "m": [[("k", {"x": 2, "y": "c", "n": "n"})]],
        "s": [{"z": 5, "y": "d", "w": 6}],
    }
    table.append(pa.table(rows, arrow))
    return table


def no_rows(catalog: SqlCatalog) -> Table:
    return catalog.create_table("db.no_rows", IDS, properties={"comment": "nothing yet"})


def first_format(catalog: SqlCatalog) -> Table:
    table = catalog.create_table("db.first_format", IDS, properties={"format-version": "1"})
    with table.update_spec() as spec:
        spec.add_identity("s")
    table.append(ids(1, 2))
    with table.update_spec() as spec:
        spec.remove_field("s")
    table.append(ids(3))
    return table


TABLES: list[Callable[[SqlCatalog], Table]] = [
    every_type, evolved_names, wider_types, partitioned, computed_partitions, evolved_partitions,
    deleted_rows, copied_on_write, nested, no_rows, first_format,
]  # fmt: skip
LATER = {wider_types, evolved_partitions, copied_on_write, first_format}
"""Tables of ``make thorough`` alone."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "make", [pytest.param(m, marks=pytest.mark.thorough) if m in LATER else m for m in TABLES]
)
def test_rows_are_the_same(
    spark: SparkSession, tmp_path: Path, make: Callable[[SqlCatalog], Table]
) -> None:
    table = make(new_catalog(tmp_path))
    expected = table.scan().to_arrow()
    before = {path: path.stat().st_mtime_ns for path in root_of(table).rglob("*") if path.is_file()}
    result = convert_to_delta(spark, identifier(table), verify=True)
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert result.location == f"file:{root_of(table)}"
    found = read(spark, root_of(table))
    assert found.columns == expected.column_names
    assert rows_as_text(found.toArrow(), found.columns) == rows_as_text(expected, found.columns)
    [info] = first_commit(root_of(table))["commitInfo"]
    assert info["operationParameters"]["sourceFormat"] == "iceberg"
    assert info["operationMetrics"]["numConvertedFiles"] == str(result.num_files)
    _change(spark, root_of(table), found.columns)


def _change(spark: SparkSession, root: Path, columns: list[str]) -> None:
    """Change and add rows where they lie, and look at the others."""
    table = DeltaTable.forPath(spark, str(root))
    key = "c1" if "c1" in columns else "id"
    rows = table.toDF().toArrow()
    untouched = rows_as_text(rows, columns)
    table.update(f"{key} = 1", {key: "100"})
    table.delete(f"{key} = 3")
    source = read(spark, root).where(f"{key} = 2")
    merged = table.alias("t").merge(source.alias("s"), f"t.{key} = s.{key} + 1")
    merged.whenMatchedUpdate(set={key: f"t.{key}"}).whenNotMatchedInsertAll().execute()
    after = read(spark, root)
    numbers = [str(value) for value in rows[key].to_pylist()]
    expected = sorted(
        ["100" if n == "1" else n for n in numbers if n != "3"] + [n for n in numbers if n == "2"]
    )
    assert sorted(str(row[0]) for row in after.select(key).collect()) == expected
    kept = rows_as_text(after.where(f"{key} not in (2, 100)").toArrow(), columns)
    assert set(kept) <= set(untouched)


def test_c_70_names_ids_and_types_are_those_of_iceberg(spark: SparkSession, tmp_path: Path) -> None:
    table = wider_types(new_catalog(tmp_path))
    sql(spark, f"CONVERT TO DELTA {identifier(table)}")
    commit = first_commit(root_of(table))
    configuration = commit["metaData"][0]["configuration"]
    assert configuration["delta.columnMapping.mode"] == "id"
    assert configuration["delta.columnMapping.maxColumnId"] == str(table.metadata.last_column_id)
    assert {"columnMapping", "typeWidening"} <= set(commit["protocol"][0]["readerFeatures"])
    fields = read(spark, root_of(table)).schema
    assert [f.dataType.simpleString() for f in fields] == [
        "bigint", "double", "decimal(20,2)", "struct<i:bigint>", "array<bigint>",
    ]  # fmt: skip
    text = commit["metaData"][0]["schemaString"]
    assert '"delta.typeChanges":[{"toType":"long","fromType":"integer"}]' in text
    assert '"fieldPath":"element"' in text


def test_c_71_partitions_and_bounds(spark: SparkSession, tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = evolved_partitions(catalog)
    convert_to_delta(spark, identifier(table))
    assert first_commit(root_of(table))["metaData"][0]["partitionColumns"] == ["p"]
    table = computed_partitions(catalog)
    convert_to_delta(spark, identifier(table))
    found = adds(root_of(table)).values()
    assert first_commit(root_of(table))["metaData"][0]["partitionColumns"] == []
    assert {a["stats"]["minValues"]["t"] for a in found} == {
        f"2024-01-0{n}T23:30:00.000Z" for n in range(1, 6)
    }
    assert all(a["stats"]["nullCount"] == {"id": 0, "t": 0, "s": 0} for a in found)


def test_c_72_deleted_rows_are_deletion_vectors(spark: SparkSession, tmp_path: Path) -> None:
    table = deleted_rows(new_catalog(tmp_path))
    convert_to_delta(spark, identifier(table), collect_stats=False)
    found = adds(root_of(table)).values()
    vectors = [a["deletionVector"]["cardinality"] for a in found if "deletionVector" in a]
    assert vectors == [4]
    assert len(found) == 2
    assert sorted(r.id for r in read(spark, root_of(table)).collect()) == [0, 1, 2, 3, 6, 7, 8, 20]


def test_c_03_a_version_hint_names_the_metadata(spark: SparkSession, tmp_path: Path) -> None:
    table = copied_on_write(new_catalog(tmp_path))
    name = Path(table.metadata_location).name
    (root_of(table) / "metadata" / "version-hint.text").write_text(name)
    converted = DeltaTable.convertToDelta(spark, f"iceberg.`{root_of(table)}`")
    assert converted.toDF().count() == 4
