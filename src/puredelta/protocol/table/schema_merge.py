"""Merging the schema of new rows into the schema of a table (M-49, M-52, C-30, C-38).

Nothing is ever removed, reordered or renamed: fields match by name, case ignored, and
keep the table's spelling and place; unknown ones go to the end of their struct.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    BYTE,
    INTEGER,
    SHORT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.protocol.table.schema_checks import require_no_duplicates

_WIDTHS = (BYTE, SHORT, INTEGER)
"""Types that Parquet stores alike, so that old files keep reading in the wider one."""


def _never(_current: DataType, _update: DataType) -> bool:
    return False


def merge_schemas(
    current: StructType,
    update: StructType,
    *,
    keeps_type: Callable[[DataType, DataType], bool] = _never,
    widens_type: Callable[[DataType, DataType], bool] = _never,
) -> StructType:
    """Return ``current`` evolved so that rows of ``update`` fit in.

    Equal types stay; byte, short and int widen into each other; VOID gives way to
    anything. ``keeps_type(current, update)`` lets a caller that casts values keep the
    table's type for other pairs (M-52), ``widens_type`` one that may widen columns take the
    update's, which comes first (M-53). New fields are nullable, all the way down.

    Raises:
        InvalidRequestError: two types cannot be merged (DELTA_FAILED_TO_MERGE_FIELDS,
            caused by DELTA_MERGE_INCOMPATIBLE_DATATYPE or ..._DECIMAL_TYPE), or
            ``update`` holds a name twice (DELTA_DUPLICATE_COLUMNS_FOUND).

    >>> table = StructType((StructField("ID", INTEGER),))
    >>> rows = StructType((StructField("id", BYTE), StructField("x", BYTE)))
    >>> merge_schemas(table, rows).names
    ('ID', 'x')
    """
    require_no_duplicates(update)
    return _merge_structs(current, update, _Choice(keeps_type, widens_type))


def as_nullable(data_type: DataType) -> DataType:
    """Return the type with every field, element and value allowed to be null."""
    match data_type:
        case StructType(fields):
            return StructType(
                tuple(
                    dataclasses.replace(f, type=as_nullable(f.type), nullable=True) for f in fields
                )
            )
        case ArrayType(element):
            return ArrayType(as_nullable(element))
        case MapType(key, value):
            return MapType(as_nullable(key), as_nullable(value))
        case PrimitiveType() | DecimalType():
            return data_type
        case _:
            assert_never(data_type)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The caller's say where two leaf types differ."""

    keeps: Callable[[DataType, DataType], bool]
    widens: Callable[[DataType, DataType], bool]


def _merge_structs(current: StructType, update: StructType, choice: _Choice) -> StructType:
    by_name = {f.name.lower(): f for f in update.fields}
    kept = tuple(
        _merge_fields(field, by_name[field.name.lower()], choice)
        if field.name.lower() in by_name
        else field
        for field in current.fields
    )
    known = {f.name.lower() for f in current.fields}
    added = tuple(
        dataclasses.replace(f, type=as_nullable(f.type), nullable=True)
        for f in update.fields
        if f.name.lower() not in known
    )
    return StructType(kept + added)


def _merge_fields(current: StructField, update: StructField, choice: _Choice) -> StructField:
    try:
        merged = _merge_types(current.type, update.type, choice)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            f"Failed to merge fields '{current.name}' and '{update.name}': {error.message}",
            code=ErrorCode.FAILED_TO_MERGE_FIELDS,
            current=current.name,
            update=update.name,
        ) from error
    return dataclasses.replace(current, type=merged)


def _merge_types(current: DataType, update: DataType, choice: _Choice) -> DataType:
    if current == update:
        return current
    match current, update:
        case StructType(), StructType():
            return _merge_structs(current, update, choice)
        case ArrayType(), ArrayType():
            element = _merge_types(current.element, update.element, choice)
            return ArrayType(element, current.contains_null)
        case MapType(), MapType():
            return MapType(
                _merge_types(current.key, update.key, choice),
                _merge_types(current.value, update.value, choice),
                current.value_contains_null,
            )
        case _:
            return _merge_leaves(current, update, choice)


def _merge_leaves(current: DataType, update: DataType, choice: _Choice) -> DataType:
    if choice.widens(current, update):
        return update
    if update == VOID or choice.keeps(current, update):
        return current
    if current == VOID:
        return as_nullable(update)
    if current in _WIDTHS and update in _WIDTHS:
        return max(current, update, key=_WIDTHS.index)
    if isinstance(current, DecimalType) and isinstance(update, DecimalType):
        raise _incompatible_decimals(current, update)
    names = simple_string(current), simple_string(update)
    raise InvalidRequestError(
        f"Failed to merge incompatible data types {names[0]} and {names[1]}",
        code=ErrorCode.MERGE_INCOMPATIBLE_DATATYPE,
        current=names[0],
        update=names[1],
    )


def _incompatible_decimals(current: DecimalType, update: DecimalType) -> InvalidRequestError:
    differing = [
        f"{what} {ours} and {theirs}"
        for what, ours, theirs in (
            ("precision", current.precision, update.precision),
            ("scale", current.scale, update.scale),
        )
        if ours != theirs
    ]
    return InvalidRequestError(
        f"Failed to merge decimal types with incompatible {' & '.join(differing)}",
        code=ErrorCode.MERGE_INCOMPATIBLE_DECIMAL_TYPE,
    )
