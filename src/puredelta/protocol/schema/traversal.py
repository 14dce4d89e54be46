"""Walking through a schema: its fields at any depth, the fields of a path, a change of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import overload

from typing_extensions import assert_never

from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)


def fields_by_path(data_type: DataType) -> Iterator[tuple[str, StructField]]:
    """Yield every field with its dotted path, outer fields first.

    Paths through arrays and maps use Spark's words ``element``, ``key`` and ``value``.

    >>> inner = StructType((StructField("x", PrimitiveType("integer")),))
    >>> schema = StructType((StructField("a", ArrayType(inner)),))
    >>> [path for path, _ in fields_by_path(schema)]
    ['a', 'a.element.x']
    """
    yield from _fields("", data_type)


def _fields(prefix: str, data_type: DataType) -> Iterator[tuple[str, StructField]]:
    match data_type:
        case StructType(fields):
            for field in fields:
                path = f"{prefix}.{field.name}" if prefix else field.name
                yield path, field
                yield from _fields(path, field.type)
        case ArrayType(element):
            yield from _fields(f"{prefix}.element", element)
        case MapType(key, value):
            yield from _fields(f"{prefix}.key", key)
            yield from _fields(f"{prefix}.value", value)
        case PrimitiveType() | DecimalType():
            return
        case _:
            assert_never(data_type)


def all_fields(data_type: DataType) -> Iterator[StructField]:
    """Yield every field of every struct inside a type, outer fields first."""
    return (field for _, field in fields_by_path(data_type))


def all_structs(schema: StructType) -> Iterator[StructType]:
    """Yield a struct and the structs inside it, outer structs first."""
    return (kind for _, kind in types_by_path(schema) if isinstance(kind, StructType))


def types_by_path(
    data_type: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """Yield a type, and every type inside it with its path, outer types first."""
    yield path, data_type
    match data_type:
        case StructType(fields):
            for field in fields:
                yield from types_by_path(field.type, (*path, field.name))
        case ArrayType(element):
            yield from types_by_path(element, (*path, "element"))
        case MapType(key, value):
            yield from types_by_path(key, (*path, "key"))
            yield from types_by_path(value, (*path, "value"))
        case PrimitiveType() | DecimalType():
            return
        case _:
            assert_never(data_type)


def primitive_names(data_type: DataType) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path and the name of every primitive type inside a type."""
    found = types_by_path(data_type)
    return ((path, kind.name) for path, kind in found if isinstance(kind, PrimitiveType))


def struct_fields(
    struct: StructType, prefix: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yield every field that is reached through structs only, with its path, outer fields first."""
    for field in struct.fields:
        path = (*prefix, field.name)
        yield path, field
        if isinstance(field.type, StructType):
            yield from struct_fields(field.type, path)


def find_fields(
    schema: StructType, path: Sequence[str], *, ignores_case: bool = False
) -> tuple[StructField, ...] | None:
    """Return the fields that a path of names leads through; ``None`` if there is no such path.

    A path goes through structs only.
    """
    found: list[StructField] = []
    level: DataType = schema
    for name in path:
        field = None
        if isinstance(level, StructType):
            field = level.find_ignoring_case(name) if ignores_case else level.find(name)
        if field is None:
            return None
        found.append(field)
        level = field.type
    return tuple(found)


@overload
def map_fields(
    data_type: StructType, change: Callable[[StructField], StructField]
) -> StructType: ...


@overload
def map_fields(data_type: DataType, change: Callable[[StructField], StructField]) -> DataType: ...


def map_fields(data_type: DataType, change: Callable[[StructField], StructField]) -> DataType:
    """Return the type with every field at any depth changed.

    ``change`` sees a field before the fields inside it, and the fields of a struct in order.
    """
    match data_type:
        case StructType(fields):
            changed = map(change, fields)
            return StructType(tuple(replace(f, type=map_fields(f.type, change)) for f in changed))
        case ArrayType(element, contains_null):
            return ArrayType(map_fields(element, change), contains_null)
        case MapType(key, value, contains_null):
            return MapType(map_fields(key, change), map_fields(value, change), contains_null)
        case PrimitiveType() | DecimalType():
            return data_type
        case _:
            assert_never(data_type)


@overload
def map_primitives(
    data_type: StructType, change: Callable[[PrimitiveType], DataType]
) -> StructType: ...


@overload
def map_primitives(
    data_type: DataType, change: Callable[[PrimitiveType], DataType]
) -> DataType: ...


def map_primitives(data_type: DataType, change: Callable[[PrimitiveType], DataType]) -> DataType:
    """Return the type with every primitive type inside it changed."""
    match data_type:
        case StructType(fields):
            return StructType(
                tuple(replace(f, type=map_primitives(f.type, change)) for f in fields)
            )
        case ArrayType(element, contains_null):
            return ArrayType(map_primitives(element, change), contains_null)
        case MapType(key, value, contains_null):
            return MapType(
                map_primitives(key, change), map_primitives(value, change), contains_null
            )
        case PrimitiveType():
            return change(data_type)
        case DecimalType():
            return data_type
        case _:
            assert_never(data_type)


def as_nullable(data_type: DataType) -> DataType:
    """Return the type with every field, element and value allowed to be null."""
    match data_type:
        case StructType(fields):
            return StructType(
                tuple(replace(f, type=as_nullable(f.type), nullable=True) for f in fields)
            )
        case ArrayType(element):
            return ArrayType(as_nullable(element))
        case MapType(key, value):
            return MapType(as_nullable(key), as_nullable(value))
        case PrimitiveType() | DecimalType():
            return data_type
        case _:
            assert_never(data_type)


def shape(data_type: DataType) -> DataType:
    """Return the type without what schema enforcement ignores: nullability and metadata."""
    return map_fields(as_nullable(data_type), lambda field: replace(field, metadata={}))
