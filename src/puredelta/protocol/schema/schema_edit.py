"""Editing a schema at a path: add, drop, move and change fields, nested ones too.

A path goes through structs by field name, and through arrays and maps by Spark's words
``element``, ``key`` and ``value``. Names are found ignoring case, because that makes columns of a
table unique. Every function returns a new schema. Whether data files and features of the table
allow the change is checked elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType

FieldPath: TypeAlias = tuple[str, ...]


class End(Enum):
    """The first or last place among the fields of a struct; the history shows the value."""

    FIRST = "FIRST"
    LAST = "LAST"


@dataclass(frozen=True, slots=True)
class After:
    """The place directly after another field of the same struct."""

    name: str


ColumnPosition: TypeAlias = End | After


def find_type(schema: StructType, path: FieldPath) -> tuple[FieldPath, DataType]:
    """Return the type at a path, and the path in the spelling of the schema.

    Raises:
        InvalidRequestError: there is no such path (UNRESOLVED_COLUMN), or it goes through a
            type without fields (INVALID_FIELD_NAME).
    """
    own_path: FieldPath = ()
    level: DataType = schema
    for name in path:
        found = _inside(level, name)
        if found is None:
            raise _not_found(level, path, own_path)
        own_name, level = found
        own_path = (*own_path, own_name)
    return own_path, level


def find_field(schema: StructType, path: FieldPath) -> tuple[FieldPath, StructField]:
    """Return the field at a path, and the path as the schema spells it; errors as `find_type`.

    The element of an array and the key and value of a map are no real fields; they are returned
    as if they were fields.
    """
    parent_path, parent = find_type(schema, path[:-1])
    own_path, _ = find_type(schema, path)
    name = own_path[-1]
    match parent:
        case StructType():
            field = parent.find(name)
            assert field is not None  # noqa: S101 - found just before
            return own_path, field
        case ArrayType(element, contains_null):
            return own_path, StructField(name, element, contains_null)
        case MapType(key, value, value_contains_null):
            inner = StructField(name, key, nullable=False)
            return own_path, inner if name == "key" else StructField(
                name, value, value_contains_null
            )
        case _:
            raise _not_found(parent, path, parent_path)


def add_field(
    schema: StructType, parent: FieldPath, field: StructField, place: ColumnPosition = End.LAST
) -> StructType:
    """Add a field to the struct at ``parent``; the empty path is the table itself.

    Raises:
        InvalidRequestError: there is no struct at ``parent``, it has the field already
            (FIELD_ALREADY_EXISTS), or it lacks the field of ``place`` (FIELD_NOT_FOUND).
    """

    def add(struct: StructType) -> StructType:
        if struct.find_ignoring_case(field.name) is not None:
            raise InvalidRequestError(
                Message.FIELD_ALREADY_EXISTS_ADD,
                schema=simple_string(schema),
                column=".".join((*parent, field.name)),
            )
        return _placed(struct, field, place)

    return _edit_struct(schema, parent, add)


def drop_field(schema: StructType, path: FieldPath) -> StructType:
    """Remove the field at a path.

    Raises:
        InvalidRequestError: there is no such field, it is the only one of its struct
            (DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA), or it is in an array or map
            (UNSUPPORTED_DROP_NESTED_COLUMN).
    """
    own_path, _ = find_type(schema, path)
    _, parent = find_type(schema, path[:-1])
    if not isinstance(parent, StructType):
        raise InvalidRequestError(
            Message.UNSUPPORTED_DROP_NESTED_COLUMN,
            parent=simple_string(parent),
            path=".".join(path[:-1]),
            column=".".join(path),
        )

    def drop(struct: StructType) -> StructType:
        if len(struct.fields) == 1:
            raise InvalidRequestError(
                Message.DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA,
                struct=simple_string(struct),
                column=".".join(path),
            )
        return StructType(tuple(f for f in struct.fields if f.name != own_path[-1]))

    return _edit_struct(schema, path[:-1], drop)


def change_field(
    schema: StructType, path: FieldPath, change: Callable[[StructField], StructField]
) -> StructType:
    """Replace the field at a path by the result of ``change``, at the same place.

    Only the type of an element, key or value can change.

    Raises:
        InvalidRequestError: there is no such field, or another field of the struct has the new
            name (FIELD_ALREADY_EXISTS).
    """
    own_path, old = find_field(schema, path)
    new = change(old)
    _, parent = find_type(schema, path[:-1])
    if not isinstance(parent, StructType):
        return _edit_type(schema, own_path, new.type)

    def replace(struct: StructType) -> StructType:
        other = struct.find_ignoring_case(new.name)
        if other is not None and other.name != old.name:
            raise InvalidRequestError(
                Message.FIELD_ALREADY_EXISTS_REPLACE,
                schema=simple_string(schema),
                column=".".join((*path[:-1], new.name)),
            )
        return StructType(tuple(new if f.name == old.name else f for f in struct.fields))

    return _edit_struct(schema, path[:-1], replace)


def move_field(schema: StructType, path: FieldPath, place: ColumnPosition) -> StructType:
    """Put the field at a path to another place in its struct."""
    own_path, field = find_field(schema, path)

    def move(struct: StructType) -> StructType:
        if isinstance(place, After) and place.name.lower() == own_path[-1].lower():
            return struct
        rest = StructType(tuple(f for f in struct.fields if f.name != field.name))
        return _placed(rest, field, place)

    return _edit_struct(schema, path[:-1], move)


def _placed(struct: StructType, field: StructField, place: ColumnPosition) -> StructType:
    match place:
        case End.FIRST:
            return StructType((field, *struct.fields))
        case End.LAST:
            return StructType((*struct.fields, field))
        case After(name):
            before = struct.find_ignoring_case(name)
            if before is None:
                raise InvalidRequestError(
                    Message.FIELD_NOT_FOUND_PLACED,
                    names=", ".join(struct.names),
                    field_name=field.name,
                    field=name,
                )
            at = struct.names.index(before.name) + 1
            return StructType((*struct.fields[:at], field, *struct.fields[at:]))


def _edit_struct(
    schema: StructType, path: FieldPath, edit: Callable[[StructType], StructType]
) -> StructType:
    own_path, found = find_type(schema, path)
    if not isinstance(found, StructType):
        raise _no_struct(path, found)
    edited = edit(found)
    return edited if not own_path else _edit_type(schema, own_path, edited)


def _edit_type(schema: StructType, own_path: FieldPath, new: DataType) -> StructType:
    result = _with_type(schema, own_path, new)
    assert isinstance(result, StructType)  # noqa: S101 - the outermost type stays a struct
    return result


def _with_type(level: DataType, path: FieldPath, new: DataType) -> DataType:
    """Return ``level`` with another type at a path that exists."""
    if not path:
        return new
    name, rest = path[0], path[1:]
    match level:
        case StructType(fields):
            return StructType(
                tuple(
                    dataclasses.replace(f, type=_with_type(f.type, rest, new))
                    if f.name == name
                    else f
                    for f in fields
                )
            )
        case ArrayType(element, contains_null):
            return ArrayType(_with_type(element, rest, new), contains_null)
        case MapType(key, value, nulls):
            if name == "key":
                return MapType(_with_type(key, rest, new), value, nulls)
            return MapType(key, _with_type(value, rest, new), nulls)
        case _:
            raise ValueError(f"{simple_string(level)} has no {name}")


def _inside(level: DataType, name: str) -> tuple[str, DataType] | None:
    match level:
        case StructType():
            field = level.find(name) or level.find_ignoring_case(name)
            return None if field is None else (field.name, field.type)
        case ArrayType(element) if name.lower() == "element":
            return "element", element
        case MapType(key) if name.lower() == "key":
            return "key", key
        case MapType(_, value) if name.lower() == "value":
            return "value", value
        case _:
            return None


def _not_found(level: DataType, path: FieldPath, reached: FieldPath) -> InvalidRequestError:
    if reached and not isinstance(level, StructType):
        return _no_struct(path, level, reached=reached)
    names = level.names if isinstance(level, StructType) else ()
    return InvalidRequestError(
        Message.UNRESOLVED_COLUMN_FOUND, names=", ".join(names), column=".".join(path)
    )


def _no_struct(
    path: FieldPath, found: DataType, *, reached: FieldPath | None = None
) -> InvalidRequestError:
    parent = ".".join(path if reached is None else reached)
    inside = {ArrayType: " Name its element: ", MapType: " Name its key or value: "}
    hint = inside.get(type(found), "")
    shown = {ArrayType: f"{parent}.element", MapType: f"{parent}.value"}.get(type(found), "")
    return InvalidRequestError(
        Message.INVALID_FIELD_NAME,
        parent=parent,
        found=simple_string(found),
        hint=hint,
        shown=shown,
        field=".".join(path),
    )
