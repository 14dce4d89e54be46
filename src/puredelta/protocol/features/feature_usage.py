"""Features that a table's metadata makes *active* (section "Active Features").

A writer must obey the rules of a listed feature only while something uses it (X-53). Every function
here returns the properties and columns that use a feature, as error messages name them. No name
means that the feature is not active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from typing_extensions import assert_never

from puredelta.protocol.features.properties import (
    CONSTRAINT_PREFIX,
    CheckpointPolicy,
    ColumnMappingMode,
    TableProperties,
)
from puredelta.protocol.schema.traversal import fields_by_path
from puredelta.protocol.schema.types import (
    PRIMITIVE_KINDS,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

Usage: TypeAlias = Callable[[TableProperties, StructType], tuple[str, ...]]

INVARIANTS = "delta.invariants"
GENERATION_EXPRESSION = "delta.generationExpression"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
TYPE_CHANGES = "delta.typeChanges"
IDENTITY_START = "delta.identity.start"
IDENTITY_STEP = "delta.identity.step"
IDENTITY_ALLOWS_EXPLICIT = "delta.identity.allowExplicitInsert"
IDENTITY_HIGH_WATER_MARK = "delta.identity.highWaterMark"


def never(_properties: TableProperties, _schema: StructType) -> tuple[str, ...]:
    """Nothing in the metadata uses the feature; other actions may."""
    return ()


def when_set(attribute: str) -> Usage:
    """Used when the boolean property behind this attribute is true."""

    def find(properties: TableProperties, _schema: StructType) -> tuple[str, ...]:
        key: str = vars(TableProperties)[attribute].key
        return (f"property {key}=true",) if getattr(properties, attribute) else ()

    return find


def when_fields_have(*keys: str) -> Usage:
    """Used when a field, nested ones too, has one of these keys in its metadata."""

    def find(_properties: TableProperties, schema: StructType) -> tuple[str, ...]:
        return tuple(
            f"column {path}"
            for path, field in fields_by_path(schema)
            if not field.metadata.keys().isdisjoint(keys)
        )

    return find


def when_types_need(feature: str) -> Usage:
    """Used when a column holds a type whose row in `PRIMITIVE_KINDS` has the feature."""
    kinds = [kind for kind in PRIMITIVE_KINDS if kind.feature == feature]
    names = tuple(name for kind in kinds for name in (kind.name, *kind.members))

    def find(_properties: TableProperties, schema: StructType) -> tuple[str, ...]:
        return tuple(
            f"column {path}" for path, field in fields_by_path(schema) if _holds(field.type, names)
        )

    return find


def any_of(*usages: Usage) -> Usage:
    """Used when one of ``usages`` is."""

    def find(properties: TableProperties, schema: StructType) -> tuple[str, ...]:
        return tuple(name for usage in usages for name in usage(properties, schema))

    return find


def check_constraints(properties: TableProperties, _schema: StructType) -> tuple[str, ...]:
    """Name the CHECK constraints."""
    return tuple(f"property {CONSTRAINT_PREFIX}{name}" for name in properties.check_constraints)


def column_mapping(properties: TableProperties, _schema: StructType) -> tuple[str, ...]:
    """Name the mapping mode unless it is ``none``."""
    mode = properties.column_mapping_mode
    if mode is ColumnMappingMode.NONE:
        return ()
    return (f"property delta.columnMapping.mode={mode.value}",)


def v2_checkpoints(properties: TableProperties, _schema: StructType) -> tuple[str, ...]:
    """Name the checkpoint policy unless it is ``classic``."""
    policy = properties.checkpoint_policy
    if policy is CheckpointPolicy.CLASSIC:
        return ()
    return (f"property delta.checkpointPolicy={policy.value}",)


def _holds(data_type: DataType, names: tuple[str, ...]) -> bool:
    """Return whether the type, an element, a key or a value has one of the names."""
    match data_type:
        case PrimitiveType(name):
            return any(name == n or name.startswith(n + "(") for n in names)
        case ArrayType(element):
            return _holds(element, names)
        case MapType(key, value):
            return _holds(key, names) or _holds(value, names)
        case StructType() | DecimalType():
            return False
        case _:
            assert_never(data_type)
