"""How the columns of one version of a table differ from those of a newer one.

Fields are matched by their physical names, at every level: so a renamed column is the same column,
and one that was dropped and added again is another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.protocol.features.column_mapping import PHYSICAL_NAME
from puredelta.protocol.features.type_widening import can_widen
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
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
