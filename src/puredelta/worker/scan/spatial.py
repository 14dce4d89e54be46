"""Geometries and geographies in Arrow, inside a Spark worker.

Spark hands them to its workers, and takes them back, as structs of a number (SRID) and well-known
binary; Parquet has the binary alone, in columns of a type that names the system of coordinates.

Traps this module knows:

* Spark tells such a struct from others by metadata of its binary field.
* Arrow writes Parquet's types from extension types of GeoArrow's name, since version 21; an older
  one would write plain binary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.read_rows import OnlySparkError

_BASES = (b"geometry", b"geography")
_CRS = b"puredelta.crs"
_SRID = b"srid"
_FIRST_ARROW = 21
"""The first version that writes the types."""


def spatial_type(base: str, srid: int, crs: str) -> pa.DataType:
    """Return how Spark hands over values of a type; ``crs`` is how files name the system."""
    metadata = {base: "true", _SRID: str(srid), _CRS: crs}
    return pa.struct(
        [
            pa.field("srid", pa.int32(), nullable=False),
            pa.field("wkb", pa.binary(), nullable=False, metadata=metadata),
        ]
    )


def is_spatial(kind: pa.DataType) -> bool:
    """Return whether this is how Spark hands over geometries or geographies."""
    return _described(kind) is not None


def _described(kind: pa.DataType) -> Mapping[bytes, bytes] | None:
    if not pa.types.is_struct(kind) or [field.name for field in kind] != ["srid", "wkb"]:
        return None
    metadata: Mapping[bytes, bytes] = kind.field(1).metadata or {}
    return metadata if any(base in metadata for base in _BASES) else None


def from_binary(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return well-known binary as Spark takes it."""
    described = _described(wanted) or {}
    srid = pa.repeat(pa.scalar(int(described[_SRID]), pa.int32()), len(column))
    mask = column.is_null()
    values = pc.fill_null(column, b"")
    return pa.StructArray.from_arrays([srid, values], fields=list(wanted), mask=mask)


def to_binary(column: pa.Array) -> pa.Array:
    """Return what Spark hands over as well-known binary."""
    values: pa.Array = column.flatten()[1]  # NULL where the struct is
    return values


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns with geometries and geographies as binary, the very schema without any."""
    return _changed_schema(schema, lambda _: pa.binary())


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns in the types that files get, the very schema without geometries.

    Raises:
        OnlySparkError: this Arrow does not write the types.
    """
    found = _changed_schema(schema, _stored_type)
    if found is not schema and int(pa.__version__.split(".")[0]) < _FIRST_ARROW:
        raise OnlySparkError(
            f"pyarrow {pa.__version__} does not write geometries, {_FIRST_ARROW} and newer do"
        )
    return found


class _WellKnownBinary(pa.ExtensionType):  # type: ignore[misc]
    """Binary that Arrow writes as geometries or geographies."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._text

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, text: bytes) -> _WellKnownBinary:
        return cls(text)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    described = _described(kind) or {}
    metadata = {"crs": described[_CRS].decode()}
    if b"geography" in described:
        metadata["edges"] = "spherical"
    return _WellKnownBinary(json.dumps(metadata).encode())


_Change: TypeAlias = "Callable[[pa.DataType], pa.DataType]"


def _changed_schema(schema: pa.Schema, change: _Change) -> pa.Schema:
    if not any(_holds_spatial(field.type) for field in schema):
        return schema
    fields = [field.with_type(_changed(field.type, change)) for field in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _holds_spatial(kind: pa.DataType) -> bool:
    return is_spatial(kind) or any(_holds_spatial(inner.type) for inner in _inner(kind))


def _inner(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind):
        return [kind.value_field]
    return list(kind) if pa.types.is_struct(kind) else []


def _changed(kind: pa.DataType, change: _Change) -> pa.DataType:
    if is_spatial(kind):
        return change(kind)
    inner = [field.with_type(_changed(field.type, change)) for field in _inner(kind)]
    if pa.types.is_map(kind):
        return pa.map_(*inner)
    if pa.types.is_list(kind):
        return pa.list_(*inner)
    return pa.struct(inner) if pa.types.is_struct(kind) else kind
