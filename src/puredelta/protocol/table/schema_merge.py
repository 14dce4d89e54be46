"""Merging the schema of new rows into the schema of a table (M-49, M-52, C-30, C-38).

Nothing is removed, reordered or renamed. Fields match by name, ignoring case, and keep the
spelling and place of the table. New fields go to the end of their struct.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import as_nullable
from puredelta.protocol.schema.types import (
    BYTE,
    INTEGER,
    SHORT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.schema_checks import require_no_duplicates

_WIDTHS = (BYTE, SHORT, INTEGER)
"""Types that Parquet stores in the same way, so that old files can be read as the wider type."""


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

    Equal types stay; of byte, short and int the wider type is taken; VOID becomes any other type.
    If ``widens_type(current, update)``, the type of the update is taken (M-53). Otherwise, if
    ``keeps_type(current, update)``, the type of the table stays and the caller casts values
    (M-52). New fields are nullable at every level.

    >>> table = StructType((StructField("ID", INTEGER),))
    >>> rows = StructType((StructField("id", BYTE), StructField("x", BYTE)))
    >>> merge_schemas(table, rows).names
    ('ID', 'x')
    """
    require_no_duplicates(update)
    return _merge_structs(current, update, _Choice(keeps_type, widens_type))


@dataclass(frozen=True, slots=True)
class _Choice:
    """The caller's choice between two leaf types that differ."""

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
            Message.FAILED_TO_MERGE_FIELDS,
            reason=error.message,
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
        Message.MERGE_INCOMPATIBLE_DATATYPE, current=names[0], update=names[1]
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
        Message.MERGE_INCOMPATIBLE_DECIMAL_TYPE, differing=" & ".join(differing)
    )
