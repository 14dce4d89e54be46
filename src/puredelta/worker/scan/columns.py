"""Columns of a data file in the types that a table has by now, inside a Spark worker.

A file may be older than its table: it lacks columns and fields, which are NULL, and has narrower
types. It may be of another writer: it spells names otherwise, orders fields otherwise, and lays
values out otherwise. Columns and fields are found by their names or by their ids, as Spark does.

Traps this module knows:

* A slice of a list or a map shares its elements with the whole, so that lists are made anew from
  their offsets.
* ``cast`` would read text as numbers, which Spark never does when it reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from puredelta.worker.read_rows import OnlySparkError, require_one_calendar
from puredelta.worker.scan.spatial import from_binary, is_spatial, to_binary

FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules:
    """How columns and fields are found in a file, and how its values are read."""

    by_field_id: bool = False
    case_sensitive: bool = False
    hybrid_calendar: bool = False
    """Whether old dates and timestamps of the file may be in the Julian calendar."""

    def find(self, wanted: pa.Field, present: Sequence[pa.Field]) -> int | None:
        """Return the place of a column or field; ``None``: the file lacks it.

        Raises:
            OnlySparkError: several could be meant.
        """
        key = self._key
        found = [place for place, field in enumerate(present) if key(field) == key(wanted)]
        if len(found) > 1:
            raise OnlySparkError(f"several columns could be {wanted.name}")
        return found[0] if found else None

    def _key(self, field: pa.Field) -> str | bytes | None:
        if self.by_field_id:
            return (field.metadata or {}).get(FIELD_ID)
        return str(field.name) if self.case_sensitive else str(field.name).lower()


def as_stored(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    """Return a column, or what is inside of one, in a type of the table.

    Raises:
        OnlySparkError: the values are none of that type.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type == wanted and not rules.hybrid_calendar:
        return column
    if is_spatial(wanted) and pa.types.is_binary(column.type):
        return from_binary(column, wanted)
    if is_spatial(column.type) and pa.types.is_binary(wanted):
        return to_binary(column)
    for is_kind, convert in _NESTED.items():
        if is_kind(wanted):
            if not is_kind(column.type):
                raise _unlike(column.type, wanted)
            return convert(column, wanted, rules)
    if rules.hybrid_calendar:
        require_one_calendar(column)
    return _cast(column, wanted)


def _struct(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    present, children = list(column.type), column.flatten()
    made = []
    for field in wanted:
        place = rules.find(field, present)
        made.append(
            pa.nulls(len(column), field.type)
            if place is None
            else as_stored(children[place], field.type, rules)
        )
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(made, fields=list(wanted), mask=mask)


def _list(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    values = as_stored(column.values, wanted.value_type, rules)
    return pa.ListArray.from_arrays(_offsets(column), values, type=wanted)


def _map(column: pa.Array, wanted: pa.DataType, rules: ColumnRules) -> pa.Array:
    keys = as_stored(column.keys, wanted.key_type, rules)
    items = as_stored(column.items, wanted.item_type, rules)
    return pa.MapArray.from_arrays(_offsets(column), keys, items, type=wanted)


def _offsets(column: pa.Array) -> pa.Array:
    """Return where each list begins, and where the last one ends; NULL where there is no list."""
    offsets = column.offsets
    if not column.null_count:
        return offsets
    absent = np.append(column.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(offsets.to_numpy(), mask=absent)


_NESTED: Mapping[Callable[[pa.DataType], bool], Callable[..., pa.Array]] = {
    pa.types.is_struct: _struct,
    pa.types.is_map: _map,
    pa.types.is_list: _list,
}


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    if _is_text(column.type) != _is_text(wanted) or pa.types.is_nested(column.type):
        raise _unlike(column.type, wanted)
    try:
        # Timestamps of nanoseconds lose what Spark does not have.
        return column.cast(wanted, safe=not pa.types.is_timestamp(wanted))
    except pa.ArrowException as failure:
        raise OnlySparkError(f"{column.type} is no {wanted}: {failure}") from failure


def _is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _unlike(stored: pa.DataType, wanted: pa.DataType) -> OnlySparkError:
    return OnlySparkError(f"a column is stored as {stored}, which is no {wanted}")
