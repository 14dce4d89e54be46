"""Hypothesis strategies that several test modules share."""

from __future__ import annotations

from hypothesis import strategies as st

from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

PRIMITIVE_NAMES = [
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "void",
]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def decimals(draw: st.DrawFn) -> DecimalType:
    precision = draw(st.integers(1, 38))
    return DecimalType(precision, draw(st.integers(0, precision)))


def structs(
    types: st.SearchStrategy[DataType],
    names: st.SearchStrategy[str] = NAMES,
) -> st.SearchStrategy[StructType]:
    """Structs of up to four fields whose names differ also when case is ignored."""
    fields = st.builds(
        StructField, names, types, st.booleans(), st.dictionaries(NAMES, st.integers(), max_size=1)
    )
    return st.lists(fields, max_size=4, unique_by=lambda f: f.name.lower()).map(
        lambda fs: StructType(tuple(fs))
    )


PRIMITIVES: st.SearchStrategy[DataType] = (
    st.sampled_from(PRIMITIVE_NAMES).map(PrimitiveType) | decimals()
)
DATA_TYPES: st.SearchStrategy[DataType] = st.recursive(
    PRIMITIVES,
    lambda inner: (
        st.builds(ArrayType, inner, st.booleans())
        | st.builds(MapType, inner, inner, st.booleans())
        | structs(inner)
    ),
    max_leaves=6,
)
SCHEMAS = structs(DATA_TYPES)
