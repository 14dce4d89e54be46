"""Columns of a data file in the current types of its table, inside a Spark worker.

A file may be older than its table: it lacks columns and fields, which are NULL, and has narrower
types. A file of another writer may differ in the spelling of names, the order of fields and the
layout of values. Columns and fields are found by their names or by their ids, as Spark does.

Spark exchanges geometries and geographies with its workers as structs of a number (SRID) and
well-known binary. Parquet has the binary alone, in columns of a type that names the coordinate
system.

Traps this module knows:

* Spark tells such a struct from others by metadata of its binary field.
* Since version 21 Arrow writes Parquet's types from extension types with GeoArrow's name; an older
  one would write plain binary.
* A slice of a list or a map shares its elements with the whole, so lists are rebuilt from their
  offsets.
* ``cast`` would read text as numbers, which Spark never does when it reads a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.read_rows import FIELD_ID, OnlySparkError, require_one_calendar

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


def has_field_id(field: pa.Field) -> bool:
    """Return whether a column of a file has a number of its own."""
    return FIELD_ID in (field.metadata or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules:
    """The way to find columns and fields in a file, and to read its values."""

    by_field_id: bool = False
    case_sensitive: bool = False
    hybrid_calendar: bool = False
    """Whether old dates and timestamps of the file may be in the Julian calendar."""

    def find(self, wanted: pa.Field, present: Sequence[pa.Field]) -> int | None:
        """Return the place of a column or field; ``None``: the file lacks it.

        Raises:
            OnlySparkError: several could be meant.
        """
        key = self._key
        found = [place for place, field in enumerate(present) if key(field) == key(wanted)]
        if len(found) > 1:
            raise OnlySparkError(f"several columns could be {wanted.name}")
        return found[0] if found else None

    def _key(self, field: pa.Field) -> str | bytes | None:
        if self.by_field_id:
            return (field.metadata or {}).get(FIELD_ID)
        return str(field.name) if self.case_sensitive else str(field.name).lower()


def as_stored(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    """Return a column, or what is inside of one, in a type of the table.

    Raises:
        OnlySparkError: the values are none of that type.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type == wanted and not rules.hybrid_calendar:
        return column
    if is_spatial(wanted) and pa.types.is_binary(column.type):
        return from_binary(column, wanted)
    if is_spatial(column.type) and pa.types.is_binary(wanted):
        return to_binary(column)
    for is_kind, convert in _NESTED.items():
        if is_kind(wanted):
            if not is_kind(column.type) and not (
                is_kind is pa.types.is_list and pa.types.is_large_list(column.type)
            ):
                raise _unlike(column.type, wanted)
            return convert(column, wanted, rules)
    if rules.hybrid_calendar:
        require_one_calendar(column)
    return _cast(column, wanted)


def _struct(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    present, children = list(column.type), column.flatten()
    made = []
    for field in wanted:
        place = rules.find(field, present)
        made.append(
            pa.nulls(len(column), field.type)
            if place is None
            else as_stored(children[place], field.type, rules)
        )
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(made, fields=list(wanted), mask=mask)


def _list(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    values = as_stored(column.values, wanted.value_type, rules)
    return pa.ListArray.from_arrays(_offsets(column), values, type=wanted)


def _map(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    keys = as_stored(column.keys, wanted.key_type, rules)
    items = as_stored(column.items, wanted.item_type, rules)
    return pa.MapArray.from_arrays(_offsets(column), keys, items, type=wanted)


def _offsets(column: pa.Array) -> pa.Array:
    """Return where each list begins, and where the last one ends; NULL where there is no list.

    Raises:
        OnlySparkError: all lists together are too long.
    """
    try:
        offsets = column.offsets.cast(pa.int32())  # Polars keeps 64 bits
    except pa.ArrowException as failure:
        raise OnlySparkError(f"lists are too long: {failure}") from failure
    if not column.null_count:
        return offsets
    absent = np.append(column.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(offsets.to_numpy(), mask=absent)


_NESTED: Mapping[Callable[[pa.DataType], bool], Callable[..., pa.Array]] = {
    pa.types.is_struct: _struct,
    pa.types.is_map: _map,
    pa.types.is_list: _list,
}


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    if _is_text(column.type) != _is_text(wanted) or pa.types.is_nested(column.type):
        raise _unlike(column.type, wanted)
    try:
        # Timestamps of nanoseconds lose what Spark does not have.
        return column.cast(wanted, safe=not pa.types.is_timestamp(wanted))
    except pa.ArrowException as failure:
        raise OnlySparkError(f"{column.type} is no {wanted}: {failure}") from failure


def _is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _unlike(stored: pa.DataType, wanted: pa.DataType) -> OnlySparkError:
    return OnlySparkError(f"a column is stored as {stored}, which is no {wanted}")
