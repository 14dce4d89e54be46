"""What the schema of a table may not have."""

from __future__ import annotations

import pytest

from puredelta.commands.new_table import NewTableProperties, plan_new_table
from puredelta.commands.schema_change import require_storable_types, with_schema
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.schema.types import (
    BINARY,
    LONG,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        (PrimitiveType("geometry(srid:any)"), "g: geometry(srid:any)"),
        (
            MapType(PrimitiveType("string"), PrimitiveType("geography(SRID:ANY, spherical)")),
            "g.value: geography(SRID:ANY, spherical)",
        ),
    ],
)
def test_columns_of_many_reference_systems_are_refused(type_: DataType, column: str) -> None:
    schema = StructType((StructField("id", PrimitiveType("long")), StructField("g", type_)))
    with pytest.raises(UnsupportedError) as error:
        require_storable_types(schema)
    assert error.value.code is ErrorCode.GEOSPATIAL_NOT_SUPPORTED
    assert column in error.value.message


def test_columns_of_geometries_are_stored() -> None:
    names = ("geometry(EPSG:3857)", "geography(OGC:CRS84, spherical)")
    require_storable_types(
        StructType(tuple(StructField(name[:4], PrimitiveType(name)) for name in names))
    )


def test_statistics_are_asked_of_columns_that_have_them_however_a_table_is_made() -> None:
    """A new table, other columns of a table, and a setting that is for tables of all kinds."""
    columns = StructType((StructField("id", LONG), StructField("b", LONG)))
    binary = StructType((StructField("id", LONG), StructField("b", BINARY)))
    wanted = NewTableProperties(properties={"delta.dataSkippingStatsColumns": "b"})
    refused = ErrorCode.COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE
    with pytest.raises(InvalidRequestError) as created:
        plan_new_table({}, binary, wanted=wanted)
    table = plan_new_table({}, columns, wanted=wanted)
    with pytest.raises(InvalidRequestError) as changed:
        with_schema(table, binary, ())
    assert created.value.code is changed.value.code is refused
    default = "spark.databricks.delta.properties.defaults.dataSkippingStatsColumns"
    assert plan_new_table({default: "b"}, binary).schema == binary
