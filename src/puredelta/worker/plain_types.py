"""Types of Arrow that hold the same values in another layout: Arrow can do little with some."""

from __future__ import annotations

import pyarrow as pa


def without_views(schema: pa.Schema) -> pa.Schema:
    """Return the schema with views as what they are views of, the very schema if there are none.

    >>> without_views(pa.schema([("a", pa.string())])).types
    [DataType(string)]
    """
    plain = pa.schema([_plain_field(field) for field in schema], schema.metadata)
    return schema if plain.equals(schema) else plain


def _plain(kind: pa.DataType) -> pa.DataType:
    name = str(kind)
    if "view" not in name:
        return kind
    if name == "string_view":
        return pa.string()
    if name == "binary_view":
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if pa.types.is_list(kind) or name.startswith("list_view"):
        return pa.list_(_plain_field(kind.value_field))
    return kind


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))
