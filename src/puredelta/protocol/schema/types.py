"""The data types of a table schema (protocol section "Schema Serialization Format").

`puredelta.protocol.schema.schema_json` reads and writes them as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from puredelta.protocol.schema.spatial import SpatialName


@dataclass(frozen=True, slots=True, eq=False)
class PrimitiveType:
    """A type that is written as one word: ``string``, ``long``, ``timestamp_ntz``, ...

    An unknown name (``variant``, ``geometry(...)``) is kept unchanged; the features of the table
    decide whether it may be used. Types are equal by their names, those of geometry and geography
    by what the names mean: ``geometry(srid:3857)`` equals ``geometry(EPSG:3857)``.
    """

    name: str

    def __eq__(self, other: object) -> bool:
        """Compare with another type by meaning."""
        if not isinstance(other, PrimitiveType):
            return NotImplemented
        return self.name == other.name or (
            self.name.startswith("geo") and _meaning(self.name) == _meaning(other.name)
        )

    def __hash__(self) -> int:
        """Hash the meaning."""
        return hash(_meaning(self.name) if self.name.startswith("geo") else self.name)


def _meaning(name: str) -> object:
    spatial = SpatialName.parse(name)
    return name if spatial is None else spatial.meaning


@dataclass(frozen=True, slots=True)
class DecimalType:
    """``decimal(precision, scale)``, at most 38 digits."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array; ``contains_null`` tells whether elements may be null."""

    element: DataType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    """A map; keys are never null."""

    key: DataType
    value: DataType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class StructField:
    """One column or nested field. ``metadata`` holds JSON values, unknown keys included."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct, and the schema of a table."""

    fields: tuple[StructField, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Field names in order."""
        return tuple(f.name for f in self.fields)

    def find(self, name: str) -> StructField | None:
        """Return the field of this exact name."""
        return next((f for f in self.fields if f.name == name), None)

    def find_ignoring_case(self, name: str) -> StructField | None:
        """Return the field of this name, case ignored: table columns are unique that way."""
        lowered = name.lower()
        return next((f for f in self.fields if f.name.lower() == lowered), None)


DataType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType
"""Closed union: ``match`` over it ends in ``assert_never``."""


def is_spatial(data_type: DataType) -> bool:
    """Return whether the values are geometries or geographies: they have no order.

    >>> is_spatial(PrimitiveType("geometry(OGC:CRS84)")), is_spatial(PrimitiveType("binary"))
    (True, False)
    """
    return isinstance(data_type, PrimitiveType) and SpatialName.parse(data_type.name) is not None


STRING = PrimitiveType("string")
LONG = PrimitiveType("long")
INTEGER = PrimitiveType("integer")
SHORT = PrimitiveType("short")
BYTE = PrimitiveType("byte")
FLOAT = PrimitiveType("float")
DOUBLE = PrimitiveType("double")
BOOLEAN = PrimitiveType("boolean")
BINARY = PrimitiveType("binary")
DATE = PrimitiveType("date")
TIMESTAMP = PrimitiveType("timestamp")
TIMESTAMP_NTZ = PrimitiveType("timestamp_ntz")
VOID = PrimitiveType("void")
VARIANT = PrimitiveType("variant")

COLLATIONS = "__COLLATIONS"
"""The key of a field's metadata with the collations of the texts in it, by path from its name."""

INTEGRAL = frozenset({BYTE, SHORT, INTEGER, LONG})
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
PRIMITIVE_NAMES = frozenset(
    kind.name for kind in (*INTEGRAL, FLOAT, DOUBLE, *_TIMES, STRING, BINARY, BOOLEAN, VOID)
)
"""The names of these types but ``variant``, which takes a feature."""
