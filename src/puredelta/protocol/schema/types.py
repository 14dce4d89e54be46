"""The data types of a table schema (protocol section "Schema Serialization Format").

`PRIMITIVE_KINDS` has one row for each primitive type: a new type is a row there first.
`puredelta.protocol.schema.schema_json` reads and writes types as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
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
    _places: dict[bool, dict[str, int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The first place of each name, in lower case or as it is: wide tables ask for each."""

    @property
    def names(self) -> tuple[str, ...]:
        """Field names in order."""
        return tuple(f.name for f in self.fields)

    def find(self, name: str) -> StructField | None:
        """Return the field of this exact name."""
        return self._named(name, ignores_case=False)

    def find_ignoring_case(self, name: str) -> StructField | None:
        """Return the field of this name, case ignored: table columns are unique that way."""
        return self._named(name.lower(), ignores_case=True)

    def _named(self, name: str, *, ignores_case: bool) -> StructField | None:
        places = self._places.get(ignores_case)
        if places is None:
            names = [f.name.lower() if ignores_case else f.name for f in self.fields]
            places = {name: n for n, name in reversed([*enumerate(names)])}
            self._places[ignores_case] = places
        place = places.get(name)
        return None if place is None else self.fields[place]


DataType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType
"""Closed union: ``match`` over it ends in ``assert_never``."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveKind:
    """One row of `PRIMITIVE_KINDS`: a primitive type, or a family of types with arguments."""

    name: str
    """The name in a schema; of a family, the word before its arguments."""
    spark: str = ""
    """The name in Spark's catalog, if it is another one."""
    arrow: str | None = None
    """The Arrow type of the values in a file, as Arrow writes it. None: Spark alone reads them."""
    order: str | None = None
    """The Arrow type in which bounds compare as Spark orders the values. None: they have no
    order, or none that Arrow knows."""
    has_statistics: bool = False
    """Whether ``delta.dataSkippingStatsColumns`` may name a column of the type."""
    feature: str | None = None
    """The table feature that a table with the type has."""
    is_storable: bool = True
    """Whether new columns may have the type; a column of an older table is read in any case."""
    pyspark: tuple[int, int] = (4, 0)
    """The first PySpark that stores the type."""
    members: tuple[str, ...] = ()
    """Of a family: what the names of its types begin with."""


def _indexed(name: str, arrow: str, order: str, **more: Any) -> PrimitiveKind:
    return PrimitiveKind(name=name, arrow=arrow, order=order, has_statistics=True, **more)


PRIMITIVE_KINDS = (
    _indexed("byte", "int8", "int64", spark="tinyint"),
    _indexed("short", "int16", "int64", spark="smallint"),
    _indexed("integer", "int32", "int64", spark="int"),
    _indexed("long", "int64", "int64", spark="bigint"),
    _indexed("float", "float", "double"),
    _indexed("double", "double", "double"),
    _indexed("string", "string", "string"),
    _indexed("date", "date32[day]", "date32[day]"),
    _indexed("timestamp", "timestamp[us, tz=UTC]", "int64"),
    _indexed("timestamp_ntz", "timestamp[us]", "int64", feature="timestampNtz"),
    PrimitiveKind(name="binary", arrow="binary", order="binary"),
    PrimitiveKind(name="boolean", arrow="bool", order="int8"),
    PrimitiveKind(name="void"),
    PrimitiveKind(name="variant", has_statistics=True, feature="variantType"),
    PrimitiveKind(name="string collate", members=("string collate ",), feature="collations"),
    *(
        PrimitiveKind(name=name, members=(f"{name}(",), feature="geospatial", pyspark=(4, 2))
        for name in ("geometry", "geography")
    ),
    # The protocol has no names for intervals, and delta-spark refuses new columns. A table that
    # was made without its check (`schema.typeCheck.enabled`) is read.
    PrimitiveKind(
        name="interval year to month",
        members=("interval year", "interval month"),
        is_storable=False,
    ),
    PrimitiveKind(
        name="interval day to second",
        members=("interval day", "interval hour", "interval minute", "interval second"),
        is_storable=False,
    ),
)
"""Every primitive type, one row each; ``decimal`` alone has a class of its own."""

_BY_NAME = {kind.name: kind for kind in PRIMITIVE_KINDS}
_FAMILIES = tuple(kind for kind in PRIMITIVE_KINDS if kind.members)

PRIMITIVE_NAMES = frozenset(
    kind.name for kind in PRIMITIVE_KINDS if kind.feature in {None, "timestampNtz"}
) - {kind.name for kind in _FAMILIES}
"""The names of the types that every table of a new version may have."""


@cache
def kind_of(name: str) -> PrimitiveKind | None:
    """Return the row of a primitive type; None for a name that this library does not know.

    >>> kind_of("interval hour to second").name, kind_of("geometry(EPSG:3857)").feature
    ('interval day to second', 'geospatial')
    """
    known = _BY_NAME.get(name)
    return known or next((kind for kind in _FAMILIES if name.startswith(kind.members)), None)


def is_spatial(data_type: DataType) -> bool:
    """Return whether the values are geometries or geographies: they have no order.

    >>> is_spatial(PrimitiveType("geometry(OGC:CRS84)")), is_spatial(PrimitiveType("binary"))
    (True, False)
    """
    return isinstance(data_type, PrimitiveType) and SpatialName.parse(data_type.name) is not None
