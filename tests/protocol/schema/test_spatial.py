"""Names of geometries and geographies (protocol proposal "Geospatial types")."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.schema.schema_json import encode_type, parse_type, simple_string
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.types import ArrayType, PrimitiveType, is_spatial


@pytest.mark.parametrize(
    ("name", "log", "spark", "catalog"),
    [
        ("geometry", "geometry(OGC:CRS84)", "geometry(OGC:CRS84)", "geometry(4326)"),
        ("geometry(SRID:0)", "geometry(srid:0)", "geometry(SRID:0)", "geometry(0)"),
        ("geometry( EPSG:3857 )", "geometry(EPSG:3857)", "geometry(EPSG:3857)", "geometry(3857)"),
        ("geometry(srid:3857)", "geometry(srid:3857)", "geometry(EPSG:3857)", "geometry(3857)"),
        ("geometry(EPSG:4326)", "geometry(EPSG:4326)", "geometry(OGC:CRS84)", "geometry(4326)"),
        (
            "geography",
            "geography(OGC:CRS84, spherical)",
            "geography(OGC:CRS84, SPHERICAL)",
            "geography(4326)",
        ),
        (
            "geography(srid:4326,SPHERICAL)",
            "geography(srid:4326, spherical)",
            "geography(OGC:CRS84, SPHERICAL)",
            "geography(4326)",
        ),
        (
            "geography(vincenty)",
            "geography(OGC:CRS84, vincenty)",
            "geography(OGC:CRS84, VINCENTY)",
            "geography(OGC:CRS84, vincenty)",
        ),
        (
            "geometry(projjson:my.key)",
            "geometry(projjson:my.key)",
            "geometry(projjson:my.key)",
            "geometry(projjson:my.key)",
        ),
        ("geometry(SRID:ANY)", "geometry(srid:any)", "geometry(SRID:ANY)", "geometry(any)"),
    ],
)
def test_a_type_has_a_name_in_the_log_in_json_of_spark_and_in_its_sql(
    name: str, log: str, spark: str, catalog: str
) -> None:
    parsed = parse_type(name)
    assert encode_type(parsed) == log
    assert simple_string(ArrayType(parsed)) == f"array<{catalog}>"
    known = SpatialName.parse(name)
    assert known is not None
    assert (known.name, known.spark_name) == (log, spark)
    assert parse_type(spark) == parsed
    assert hash(parse_type(spark)) == hash(parsed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("geometry(srid:3857)", "geometry(EPSG:3857)"),
        ("geometry(OGC:CRS84)", "geometry(EPSG:4326)"),
        ("geography", "geography(OGC:CRS84, SPHERICAL)"),
    ],
)
def test_one_type_has_several_names(one: str, other: str) -> None:
    assert PrimitiveType(one) == PrimitiveType(other)
    assert len({PrimitiveType(one), PrimitiveType(other)}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("geometry(OGC:CRS84)", "geography(OGC:CRS84)"),
        ("geometry(srid:0)", "geometry(srid:3857)"),
        ("geometry(EPSG:5070)", "geometry(srid:5070)"),
        ("geography(spherical)", "geography(vincenty)"),
        ("geometry(OGC:CRS84)", "binary"),
    ],
)
def test_other_systems_and_algorithms_are_other_types(one: str, other: str) -> None:
    assert PrimitiveType(one) != PrimitiveType(other)


@pytest.mark.parametrize(
    "name",
    [
        "geometry(",
        "geometry()",
        "geometry(EPSG:3857",
        "geometry(EPSG:3857, spherical)",
        "geography(a, b, c)",
        "geometryx",
        "GEOMETRY(OGC:CRS84)",
        "geometry(" + "a" * 100_000 + ")",
        "geography(" + "(" * 100_000,
    ],
)
def test_what_is_no_such_name_stays_as_it_is(name: str) -> None:
    assert SpatialName.parse(name) is None
    assert encode_type(parse_type(name)) == name
    assert not is_spatial(parse_type(name))


@given(st.text(alphabet="geomtryaph(): ,OGC84SRID", max_size=40))
def test_a_name_in_the_log_stays_the_same_once_it_is_written(text: str) -> None:
    for name in (text, f"geometry({text})", f"geography({text})"):
        written = encode_type(parse_type(name))
        assert encode_type(parse_type(written)) == written
        assert parse_type(written) == parse_type(name)
