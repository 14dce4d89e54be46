"""Tables with geometries and geographies (protocol proposal "Geospatial types")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from puredelta.api import read, read_changes, sql, write
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import StructType
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.commands.spatial.geometries import (
    at,
    logical_types,
    merge_places,
    needs_spatial_types,
    on_earth,
    places,
    point,
    respell,
    set_statistics,
    shown,
    write_geometries,
)
from tests.connect_session import ask

pytestmark = needs_spatial_types

STORED = {
    ("g", "Geometry(crs=EPSG:3857)"),
    ("y", "Geography(crs=OGC:CRS84, algorithm=spherical)"),
    ("n.a.list.element", "Geometry(crs=SRID:0)"),
    ("n.m.key_value.value", "Geography(crs=OGC:CRS84, algorithm=spherical)"),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def schema_of(path: str) -> StructType:
    return TableLog.open(path).snapshot().config.schema


def types_of(path: str) -> dict[str, Any]:
    fields = json.loads(TableLog.open(path).snapshot().metadata.schema_string)["fields"]
    return {field["name"]: field["type"] for field in fields}


def lists_feature(path: str) -> bool:
    protocol = TableLog.open(path).snapshot().protocol
    features = (protocol.reader_features or (), protocol.writer_features or ())
    return all("geospatial" in listed for listed in features)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rows_are_written_changed_and_read(spark: SparkSession, path: str, vectors: str) -> None:
    properties = {
        "delta.enableDeletionVectors": vectors,
        "delta.enableChangeDataFeed": "true",
    }
    write(places(spark, 0, 6), path, properties=properties)
    assert lists_feature(path)
    assert types_of(path)["g"] == "geometry(EPSG:3857)"
    assert types_of(path)["y"] == "geography(OGC:CRS84, spherical)"
    assert types_of(path)["n"]["fields"][0]["type"]["elementType"] == "geometry(srid:0)"
    table = DeltaTable.forPath(spark, path)
    merge_places(table, places(spark, 4, 7, x=2))
    table.update("id = 1", {"g": "NULL"})
    table.update("id = 2", {"g": at(2, 2)})
    table.delete("id = 0")
    expected = [
        (1, None, 1, 1, 1, None, 0),
        (2, 2, 1, 1, 1, 3857, 0),
        (3, None, 1, 1, 1, None, 0),
        (4, 2, 2, 2, 2, 3857, 0),
        (5, 2, 2, 2, 2, 3857, 0),
        (6, None, 2, 2, 2, None, 0),
    ]
    assert shown(spark, path) == expected
    table.optimize().executeCompaction()
    table.optimize().executeZOrderBy("id")
    assert shown(spark, path) == expected
    assert logical_types(path) == STORED
    assert shown(spark, path, version=0)[1] == (1, 1, 1, 1, 1, 3857, 0)
    changes = read_changes(spark, path, starting_version=2, ending_version=2)
    assert sorted(map(tuple, changes.selectExpr("_change_type", "ST_Srid(g)").collect())) == [
        ("update_postimage", None),
        ("update_preimage", 3857),
    ]
    counts = read(spark, path).selectExpr("count(*)", "count(g)", "min(id)", "max(id)").first()
    assert tuple(counts or ()) == (6, 3, 1, 6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("writer", "reader"), [("spark", "arrow"), ("arrow", "spark")])
def test_arrow_carries_what_spark_does(
    spark: SparkSession, path: str, writer: str, reader: str
) -> None:
    with temporary_settings(spark, {"spark.puredelta.io": writer}):
        write(places(spark, 0, 6), path)
        expected = shown(spark, path)
    with temporary_settings(spark, {"spark.puredelta.io": reader}):
        assert shown(spark, path) == expected
        assert read(spark, path).where("g IS NULL").count() == 2
        source = places(spark, 5, 8, x=2).alias("s")
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        DeltaTable.forPath(spark, path).update("id = 1", {"g": "NULL"})
    with temporary_settings(spark, {"spark.puredelta.io": writer}):
        rows = shown(spark, path)
    assert [row[1] for row in rows] == [None, None, 1, None, 1, 2, None, 2]
    assert logical_types(path) == STORED


def test_null_counts_are_kept_and_no_bounds(spark: SparkSession, path: str) -> None:
    with temporary_settings(spark, {"spark.puredelta.io": "spark"}):  # Arrow counts none of them
        write(places(spark, 0, 3), path)
        write(places(spark, 0, 1), path, mode="append")
    commits = (Path(path) / "_delta_log" / f"{version:020}.json" for version in (0, 1))
    [full, empty] = [
        json.loads(action["add"]["stats"])
        for commit in commits
        for action in map(json.loads, commit.read_text().splitlines())
        if "add" in action
    ]
    assert full["nullCount"]["g"] == 1
    assert empty["nullCount"]["g"] == 1
    assert full["minValues"] == {"id": 0}


def test_nulls_are_found(spark: SparkSession, path: str) -> None:
    write(places(spark, 0, 9), path)
    assert read(spark, path).where("g IS NULL").count() == 3
    assert read(spark, path).where("g IS NOT NULL AND id < 3").count() == 2
    assert read(spark, path).where("n.a[1] IS NULL").count() == 9


def test_columns_are_added_to_tables_that_list_the_feature(spark: SparkSession, path: str) -> None:
    write(spark.range(2), path)
    add = f"ALTER TABLE delta.`{path}` ADD COLUMN g GEOMETRY(3857)"
    with pytest.raises(InvalidRequestError) as error:
        sql(spark, add)
    assert error.value.code is ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT
    sql(
        spark,
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES "
        "('delta.feature.geospatial' = 'supported', 'delta.columnMapping.mode' = 'name')",
    )
    sql(spark, add)
    (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(places(spark, 1, 3).alias("s"), "t.id = s.id")
        .withSchemaEvolution()
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    rows = [(0, None, None, None, None, None, None)]
    rows += [(n, 1, 1, 1, 1, 3857, 0) for n in (1, 2)]
    assert shown(spark, path) == rows
    sql(spark, f"ALTER TABLE delta.`{path}` RENAME COLUMN g TO h")
    assert read(spark, path).where("ST_Srid(h) = 3857").count() == 2
    sql(spark, f"ALTER TABLE delta.`{path}` DROP COLUMN h")
    with pytest.raises(InvalidRequestError) as error:
        sql(spark, f"ALTER TABLE delta.`{path}` DROP FEATURE geospatial")
    assert error.value.code is ErrorCode.FEATURE_DROP_NONREMOVABLE_FEATURE


def test_tables_are_defined_in_sql_and_by_the_builder(spark: SparkSession, path: str) -> None:
    sql(
        spark,
        f"CREATE TABLE delta.`{path}` (id INT, g GEOMETRY(4326), y GEOGRAPHY(4326)) USING delta",
    )
    assert [row[1] for row in sql(spark, f"DESCRIBE delta.`{path}`").collect()] == [
        "int",
        "geometry(4326)",
        "geography(4326)",
    ]
    sql(spark, f"INSERT INTO delta.`{path}` VALUES (1, {at(1, 2, 4326)}, {on_earth(1, 2)})")
    with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        sql(spark, f"INSERT INTO delta.`{path}` (id, g) VALUES (2, {point(1, 2)})")
    with pytest.raises(AnalysisException, match="INVALID_ORDERING_TYPE"):
        read(spark, path).where("g = g").count()
    built = f"{path}/built"
    DeltaTable.create(spark).location(built).addColumn("g", "geometry(0)").execute()
    assert types_of(built) == {"g": "geometry(srid:0)"}
    clone = f"{path}/clone"
    sql(spark, f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{path}`")
    assert read(spark, clone).where("ST_Srid(g) = 4326 AND ST_Srid(y) = 4326").count() == 1


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("PARTITIONED BY (g)", ErrorCode.INVALID_PARTITION_COLUMN_TYPE),
        ("CLUSTER BY (g)", ErrorCode.CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED),
    ],
)
def test_geometries_order_nothing(
    spark: SparkSession, path: str, call: str, code: ErrorCode
) -> None:
    with pytest.raises(DeltaError) as error:
        sql(spark, f"CREATE TABLE delta.`{path}` (id INT, g GEOMETRY(0)) USING delta {call}")
    assert error.value.code is code
    assert not Path(path).exists()
    write(places(spark, 0, 2), path)
    with pytest.raises(InvalidRequestError) as error:
        DeltaTable.forPath(spark, path).optimize().executeZOrderBy("g")
    assert error.value.code is ErrorCode.ZORDERING_ON_COLUMN_WITHOUT_STATS


def test_geometries_of_many_systems_are_refused_before_anything_is_written(
    spark: SparkSession, path: str
) -> None:
    mixed = spark.range(2).selectExpr("id", f"if(id = 0, {point(1, 2)}, {at(1, 2)}) g")
    with pytest.raises(UnsupportedError, match=r"g: geometry\(srid:any\)") as error:
        write(mixed, path)
    assert error.value.code is ErrorCode.GEOSPATIAL_NOT_SUPPORTED
    assert not Path(path).exists()


@pytest.mark.thorough
def test_rules_of_a_table_may_ask_geometries(spark: SparkSession, path: str) -> None:
    (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("w", "binary")
        .addColumn("g", "geometry(0)", generatedAlwaysAs="ST_GeomFromWKB(w)")
        .addColumn("srid", "int", generatedAlwaysAs="ST_Srid(ST_GeomFromWKB(w))")
        .addColumn("n", "struct<a: array<geometry(0)>>")
        .execute()
    )
    sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (g IS NOT NULL OR n IS NULL)")
    rows = spark.sql(f"SELECT ST_AsBinary({point(1, 2)}) w")
    write(rows, path, mode="append")
    write(rows.selectExpr("w", "ST_GeomFromWKB(w) g"), path, mode="append")
    assert read(spark, path).where("ST_AsBinary(g) = w AND srid = 0").count() == 2
    other = f"{point(2, 2)} g"
    with pytest.raises(InvalidRequestError, match=r"\n - g : 01010000000000000000000040") as error:
        write(rows.selectExpr("w", other), path, mode="append")
    assert error.value.code is ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES
    nothing = f"CAST(NULL AS BINARY) w, named_struct('a', array({point(1, 1)})) n"
    with pytest.raises(InvalidRequestError, match=r"n : a struct<a:array<geometry\(0\)>>"):
        write(rows.selectExpr(*nothing.split(", ", 1)), path, mode="append")


def test_a_directory_of_geometries_is_converted(spark: SparkSession, path: str) -> None:
    places(spark, 0, 9).repartition(3).write.parquet(path)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    assert lists_feature(path)
    assert types_of(path)["g"] == "geometry(EPSG:3857)"
    DeltaTable.forPath(spark, path).delete("id = 2")
    assert [row[0] for row in shown(spark, path)] == [0, 1, 3, 4, 5, 6, 7, 8]
    assert logical_types(path) == STORED


POINTS = [bytes.fromhex("0101000000000000000000F03F0000000000000040"), None]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("metadata", "type_"),
    [
        ({}, "geometry(OGC:CRS84)"),
        ({"crs": "EPSG:3857"}, "geometry(EPSG:3857)"),
        ({"edges": "spherical"}, "geography(OGC:CRS84, spherical)"),
    ],
)
def test_files_of_arrow_are_converted(
    spark: SparkSession, path: str, metadata: dict[str, str], type_: str
) -> None:
    write_geometries(Path(path, "a.parquet"), POINTS, **metadata)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    assert types_of(path)["g"] == type_
    assert read(spark, path).where("ST_AsBinary(g) IS NOT NULL").count() == 1


def test_a_system_that_spark_does_not_know_is_not_converted(spark: SparkSession, path: str) -> None:
    write_geometries(Path(path, "a.parquet"), POINTS, crs="EPSG:5070")
    with pytest.raises(UnsupportedError, match="EPSG:5070"):
        DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    assert not Path(path, "_delta_log").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("geometry(EPSG:3857)", "geometry(srid:3857)"),
        ("geometry(EPSG:3857)", "geometry( SRID:3857 )"),
        ("geography(OGC:CRS84, spherical)", "geography"),
        ("geography(OGC:CRS84, spherical)", "geography(EPSG:4326,SPHERICAL)"),
    ],
)
def test_types_of_other_writers_are_understood(
    spark: SparkSession, path: str, old: str, new: str
) -> None:
    write(places(spark, 0, 3), path)
    respell(path, old, new)
    write(places(spark, 3, 4), path, mode="append")
    source = places(spark, 1, 2, x=2).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedUpdateAll().execute()
    assert [row[:3] for row in shown(spark, path)] == [
        (0, None, 1),
        (1, 2, 2),
        (2, 1, 1),
        (3, None, 1),
    ]


@pytest.mark.parametrize(
    "new",
    [
        "geometry(EPSG:5070)",
        "geometry(projjson:a.property)",
        "geometry(SRID:ANY)",
        "geography(OGC:CRS84, vincenty)",
        "geometry(EPSG:3857",
        "geometry(" + "A" * 100_000 + ")",
    ],
)
def test_types_that_spark_does_not_know_are_refused(
    spark: SparkSession, path: str, new: str
) -> None:
    write(places(spark, 0, 3), path)
    respell(path, "geometry(EPSG:3857)", new)
    with pytest.raises(UnsupportedError) as error:
        read(spark, path).collect()
    assert len(error.value.message) < 10_000
    with pytest.raises((DeltaError, AnalysisException)):
        DeltaTable.forPath(spark, path).update("id = 1", {"g": "NULL"})
    assert TableLog.open(path).snapshot().version == 0


def test_bounds_of_other_writers_are_not_believed(spark: SparkSession, path: str) -> None:
    write(places(spark, 0, 3), path)
    set_statistics(
        path,
        0,
        minValues={"id": 0, "g": "POINT(9 nonsense", "y": 17},
        maxValues={"id": 2, "g": "POINT(1e999 0)", "y": {"x": []}},
    )
    assert read(spark, path).where("g IS NOT NULL AND id > 0").count() == 2
    for _ in range(10):  # a checkpoint with these statistics
        sql(spark, f"INSERT INTO delta.`{path}` (id) VALUES (9)")
    assert read(spark, path).where("g IS NULL").count() == 11


def test_a_value_that_is_no_geometry_fails_and_can_be_deleted(
    spark: SparkSession, path: str
) -> None:
    write_geometries(Path(path, "a.parquet"), [*POINTS, b"junk"], crs="EPSG:3857")
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    assert read(spark, path).where("id = 2").select("id").count() == 1
    with pytest.raises(Exception, match="WKB_PARSE_ERROR"):  # of Spark's task, by Py4J
        read(spark, path).collect()
    sql(
        spark,
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    )
    DeltaTable.forPath(spark, path).delete("id = 2")
    assert [row[0] for row in read(spark, path).select("id").orderBy("id").collect()] == [0, 1]


@pytest.mark.thorough
def test_geometries_over_connect(tmp_path: Path, connect_server: str) -> None:
    module = "tests.commands.spatial.connect_geometries"
    rows, kinds, num_present = ask(module, tmp_path, server=connect_server)
    assert rows == [
        [1, None, 1, 1, 1, None, 0],
        [2, 1, 1, 1, 1, 3857, 0],
        [3, None, 1, 1, 1, None, 0],
        [4, 2, 2, 2, 2, 3857, 0],
        [5, 2, 2, 2, 2, 3857, 0],
        [6, None, 2, 2, 2, None, 0],
        [9, 2, 2, None, None, 3857, None],
    ]
    assert set(map(tuple, kinds)) == STORED
    assert num_present == 4
