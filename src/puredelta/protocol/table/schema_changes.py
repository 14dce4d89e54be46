"""Differences between two schemas of one table, and the rows that stay readable under both.

Fields are matched by their physical names, at every level: so a renamed column is the same column,
and one that was dropped and added again is another one.

A newer schema may only have further columns. Renamed, dropped or retyped columns would show older
rows under wrong names or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.column_mapping import PHYSICAL_NAME, physical_name
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties
from puredelta.protocol.features.type_widening import can_widen
from puredelta.protocol.schema.schema_json import parse_schema, simple_string
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """What changed of one column, as people read it."""

    before: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChanges:
    """The changes that a reader has to look at; columns that were added are none."""

    renamed: tuple[FieldDifference, ...] = ()
    """The names before and after."""
    dropped: tuple[FieldDifference, ...] = ()
    """The names; fields inside of a dropped struct are not named."""
    widened: tuple[FieldDifference, ...] = ()
    """The name with the type before, and the type after."""
    is_readable: bool = True
    """Whether rows of the older schema can be read in the newer one: no type became another one
    that is not wider, and no column stopped taking NULL."""


@dataclass(frozen=True, slots=True)
class _Part:
    names: _Path
    """The logical path."""
    kind: DataType
    is_nullable: bool


def find_changes(older: StructType, newer: StructType) -> SchemaChanges:
    """Compare two schemas of a table.

    >>> from puredelta.protocol.schema.types import INTEGER, LONG, StructField, StructType
    >>> before, after = (StructType((StructField("a", kind),)) for kind in (INTEGER, LONG))
    >>> find_changes(before, after).widened
    (FieldDifference(before="'a': INT", after='BIGINT'),)
    """
    before, after = dict(_parts(older, (), ())), dict(_parts(newer, (), ()))
    both = [(part, after[path]) for path, part in before.items() if path in after]
    gone = [
        part
        for path, part in before.items()
        if path not in after and (len(path) == 1 or path[:-1] in after)
    ]
    leaves = [(old, new) for old, new in both if not _is_same_kind(old.kind, new.kind)]
    return SchemaChanges(
        renamed=tuple(
            FieldDifference(before=_text(old.names), after=_text(new.names))
            for old, new in both
            if old.names[-1] != new.names[-1]
        ),
        dropped=tuple(FieldDifference(before=_text(part.names)) for part in gone),
        widened=tuple(
            FieldDifference(
                before=f"{_text(old.names)}: {simple_string(old.kind).upper()}",
                after=simple_string(new.kind).upper(),
            )
            for old, new in leaves
            if can_widen(old.kind, new.kind)
        ),
        is_readable=all(can_widen(old.kind, new.kind) for old, new in leaves)
        and not any(old.is_nullable and not new.is_nullable for old, new in both),
    )


def _parts(schema: StructType, path: _Path, names: _Path) -> Iterator[tuple[_Path, _Part]]:
    for field in schema.fields:
        here = (*path, str(field.metadata.get(PHYSICAL_NAME, field.name)))
        yield from _inside(field.type, here, (*names, field.name), is_nullable=field.nullable)


def _inside(
    kind: DataType, path: _Path, names: _Path, *, is_nullable: bool
) -> Iterator[tuple[_Path, _Part]]:
    yield path, _Part(names, kind, is_nullable)
    match kind:
        case StructType():
            yield from _parts(kind, path, names)
        case ArrayType(element, nulls):
            more = (*path, "element"), (*names, "element")
            yield from _inside(element, *more, is_nullable=nulls)
        case MapType(key, value, nulls):
            yield from _inside(key, (*path, "key"), (*names, "key"), is_nullable=False)
            more = (*path, "value"), (*names, "value")
            yield from _inside(value, *more, is_nullable=nulls)
        case PrimitiveType() | DecimalType():
            return
        case _:
            assert_never(kind)


def _is_same_kind(old: DataType, new: DataType) -> bool:
    """Compare types without what is inside of them, which has parts of its own."""
    if isinstance(old, PrimitiveType | DecimalType):
        return old == new
    return type(old) is type(new)


def _text(names: _Path) -> str:
    plain = (n if n.replace("_", "a").isalnum() else f"`{n.replace('`', '``')}`" for n in names)
    return f"'{'.'.join(plain)}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """The facts of a metadata action that matter for the columns of files."""

    schema: StructType
    partition_columns: tuple[str, ...]
    column_mapping: ColumnMappingMode

    @classmethod
    def of(cls, metadata: Metadata) -> TableShape:
        """Read a metadata action alone: in a log it may come without a protocol action."""
        return cls(
            schema=parse_schema(metadata.schema_string),
            partition_columns=metadata.partition_columns,
            column_mapping=TableProperties.of(metadata.configuration).column_mapping_mode,
        )


def can_read(stored: TableShape, wanted: TableShape, *, stored_is_older: bool) -> bool:
    """Return whether rows stored under one shape may be read under another, as in delta-spark.

    The newer shape may have further columns. Nothing else may differ: no name (not even its case)
    and no type, at any depth; with column mapping also no physical name and no partitioning.
    ``wanted`` must allow NULL wherever ``stored`` does.
    """
    older, newer = (stored, wanted) if stored_is_older else (wanted, stored)
    return keeps_mapping(older, newer) and _struct_fits(
        stored.schema, wanted.schema, stored_is_older=stored_is_older
    )


def adds_columns_only(stored: StructType, wanted: StructType) -> bool:
    """Return whether ``wanted`` has every column of ``stored`` unchanged, and perhaps others.

    Fields at any depth count. ``wanted`` must allow NULL wherever ``stored`` does.
    """
    return _struct_fits(stored, wanted, stored_is_older=True)


def keeps_mapping(older: TableShape, newer: TableShape) -> bool:
    """Return whether column mapping shows no renamed or dropped column; turning it on is fine."""
    if newer.column_mapping is ColumnMappingMode.NONE:
        return older.column_mapping is ColumnMappingMode.NONE
    if older.column_mapping not in {ColumnMappingMode.NONE, newer.column_mapping}:
        return False
    names = dict(_physical_fields(newer.schema, newer.column_mapping, ()))
    # Before the mapping was turned on, logical names were the physical ones.
    return older.partition_columns == newer.partition_columns and all(
        names.get(path) == name
        for path, name in _physical_fields(older.schema, older.column_mapping, ())
    )


def _physical_fields(
    data_type: DataType, mode: ColumnMappingMode, prefix: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the physical path and the logical name of every field inside a type."""
    match data_type:
        case StructType(fields):
            for field in fields:
                path = (*prefix, physical_name(field, mode))
                yield path, field.name
                yield from _physical_fields(field.type, mode, path)
        case ArrayType(element):
            yield from _physical_fields(element, mode, (*prefix, "element"))
        case MapType(key, value):
            yield from _physical_fields(key, mode, (*prefix, "key"))
            yield from _physical_fields(value, mode, (*prefix, "value"))
        case PrimitiveType() | DecimalType():
            return
        case _:
            assert_never(data_type)


def _struct_fits(stored: StructType, wanted: StructType, *, stored_is_older: bool) -> bool:
    older, newer = (stored, wanted) if stored_is_older else (wanted, stored)
    if not {f.name.lower() for f in older.fields} <= {f.name.lower() for f in newer.fields}:
        return False
    pairs = ((field, wanted.find_ignoring_case(field.name)) for field in stored.fields)
    return all(
        match is None or _field_fits(field, match, stored_is_older=stored_is_older)
        for field, match in pairs
    )


def _field_fits(stored: StructField, wanted: StructField, *, stored_is_older: bool) -> bool:
    return (
        stored.name == wanted.name
        and (wanted.nullable or not stored.nullable)
        and _type_fits(stored.type, wanted.type, stored_is_older=stored_is_older)
    )


def _type_fits(stored: DataType, wanted: DataType, *, stored_is_older: bool) -> bool:
    match stored, wanted:
        case StructType(), StructType():
            return _struct_fits(stored, wanted, stored_is_older=stored_is_older)
        case ArrayType(), ArrayType():
            return (wanted.contains_null or not stored.contains_null) and _type_fits(
                stored.element, wanted.element, stored_is_older=stored_is_older
            )
        case MapType(), MapType():
            return (
                (wanted.value_contains_null or not stored.value_contains_null)
                and _type_fits(stored.key, wanted.key, stored_is_older=stored_is_older)
                and _type_fits(stored.value, wanted.value, stored_is_older=stored_is_older)
            )
        case _:
            return stored == wanted
