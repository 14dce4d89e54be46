"""Changes of a column to a wider type, while old files keep theirs ("Type Widening", M-53).

A change is recorded in the metadata of the field whose type changed, or of the field with the array
or map inside which it changed. So readers know the types that old files may have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import Any

from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.schema.schema_json import encode_type
from puredelta.protocol.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)

_INTEGRALS = (BYTE, SHORT, INTEGER, LONG)
_TO_DOUBLE = (BYTE, SHORT, INTEGER)
_WHOLE = ("byte", "short", "integer")
_DIGITS = {BYTE: 10, SHORT: 10, INTEGER: 10, LONG: 20}
"""How many digits a decimal needs; Parquet stores the three small types as 32 bits."""


class AutomaticWidening(Enum):
    """Which types a statement may widen automatically; the value is that of the session setting."""

    ALWAYS = "always"
    SAME_FAMILY = "same_family_type"
    NEVER = "never"

    def allows(self, current: DataType, wider: DataType) -> bool:
        """Return whether a column of one type may get the other.

        >>> AutomaticWidening.SAME_FAMILY.allows(INTEGER, DOUBLE)
        False
        >>> AutomaticWidening.ALWAYS.allows(INTEGER, DOUBLE)
        True
        """
        match self:
            case AutomaticWidening.ALWAYS:
                return can_widen(current, wider)
            case AutomaticWidening.SAME_FAMILY:
                return can_widen(current, wider) and _is_same_family(current, wider)
            case AutomaticWidening.NEVER:
                return False


def can_widen(current: DataType, wider: DataType) -> bool:
    """Return whether the feature supports the change of a leaf; an equal type is no change."""
    if current == wider:
        return False
    match current, wider:
        case DecimalType(), DecimalType():
            return _holds(wider, current.precision - current.scale, current.scale)
        case _, DecimalType():
            digits = next((n for kind, n in _DIGITS.items() if kind == current), None)
            return digits is not None and _holds(wider, digits, 0)
        case _ if current in _INTEGRALS and wider in _INTEGRALS:
            return _INTEGRALS.index(current) < _INTEGRALS.index(wider)
        case _:
            return (
                (current in _TO_DOUBLE and wider == DOUBLE)
                or (current == FLOAT and wider == DOUBLE)
                or (current == DATE and wider == TIMESTAMP_NTZ)
            )


def iceberg_widens(before: str, after: str) -> bool:
    """Return whether Iceberg reads files with the one type as the other, too; by names in schemas.

    >>> iceberg_widens("integer", "long"), iceberg_widens("integer", "double")
    (True, False)
    """
    if before.startswith("decimal(") and after.startswith("decimal("):
        return before.partition(",")[2].strip() == after.partition(",")[2].strip()
    if before in _WHOLE:
        return after in {*_WHOLE, "long"}
    return (before, after) == ("float", "double")


def with_type_changes(before: StructType, after: StructType) -> StructType:
    """Return ``after`` with the changes of types since ``before`` recorded in its fields.

    Earlier records are kept, in their order. Fields match by name; new fields have no record.
    """
    fields = []
    for field in after.fields:
        old = before.find(field.name)
        if old is None or old.type == field.type:
            fields.append(field)
            continue
        changes = [*field.metadata.get(TYPE_CHANGES, ()), *_changes(old.type, field.type, ())]
        metadata = {**field.metadata, TYPE_CHANGES: changes} if changes else field.metadata
        kind = _inside(old.type, field.type)
        fields.append(dataclasses.replace(field, type=kind, metadata=metadata))
    return StructType(tuple(fields))


def _inside(before: DataType, after: DataType) -> DataType:
    """Record the changes of the fields inside a type."""
    match before, after:
        case StructType(), StructType():
            return with_type_changes(before, after)
        case ArrayType(old), ArrayType(element, nulls):
            return ArrayType(_inside(old, element), nulls)
        case MapType(old_key, old_value), MapType(key, value, nulls):
            return MapType(_inside(old_key, key), _inside(old_value, value), nulls)
        case _:
            return after


def _changes(before: DataType, after: DataType, path: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the changes that belong to one field: its own, and those in its arrays and maps."""
    match before, after:
        case StructType(), StructType():
            return
        case ArrayType(old), ArrayType(element):
            yield from _changes(old, element, (*path, "element"))
        case MapType(old_key, old_value), MapType(key, value):
            yield from _changes(old_key, key, (*path, "key"))
            yield from _changes(old_value, value, (*path, "value"))
        case _ if can_widen(before, after):
            change = {"toType": encode_type(after), "fromType": encode_type(before)}
            yield {**change, "fieldPath": ".".join(path)} if path else change
        case _:
            return


def _is_same_family(current: DataType, wider: DataType) -> bool:
    return isinstance(current, DecimalType) or (
        not isinstance(wider, DecimalType) and not (current in _TO_DOUBLE and wider == DOUBLE)
    )


def _holds(decimal: DecimalType, whole_digits: int, scale: int) -> bool:
    return decimal.precision - decimal.scale >= whole_digits and decimal.scale >= scale
