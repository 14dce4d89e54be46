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
        (PrimitiveType("geometry(OGC:CRS84)"), "g: geometry(OGC:CRS84)"),
        (
            MapType(PrimitiveType("string"), PrimitiveType("geography(4326)")),
            "g.value: geography(4326)",
        ),
    ],
)
def test_geospatial_types_are_refused_with_their_column(type_: DataType, column: str) -> None:
    schema = StructType((StructField("id", PrimitiveType("long")), StructField("g", type_)))
    with pytest.raises(UnsupportedError) as error:
        require_storable_types(schema)
    assert error.value.code is ErrorCode.GEOSPATIAL_NOT_SUPPORTED
    assert column in error.value.message
