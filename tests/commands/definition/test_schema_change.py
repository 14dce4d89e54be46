"""What the schema of a table may not have."""

from __future__ import annotations

import pytest

from puredelta.commands.definition.schema_change import require_storable_types
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.schema.types import (
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
