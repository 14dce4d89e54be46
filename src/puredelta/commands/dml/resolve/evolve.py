"""The table after a MERGE that evolves its schema, and implicit casts (M-46 to M-58).

Decided from names and types alone, before a row is read: a clause that never fires evolves
the table like any other. Nothing is removed, reordered or renamed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from puredelta.commands.dependent_rules import require_same_types
from puredelta.commands.dml.settings import MergeSettings
from puredelta.commands.schema_change import require_storable_types, with_schema
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.features.type_widening import AutomaticWidening, with_type_changes
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import fields_by_path, shape
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from puredelta.protocol.schema.void_fields import require_stored_fields
from puredelta.protocol.table.schema_merge import merge_schemas
from puredelta.protocol.table.table_config import TableConfig

_NUMBERS = INTEGRAL | {FLOAT, DOUBLE}
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_implicit_cast(given: DataType, to: DataType) -> bool:
    """Return whether Spark's classic coercion turns a leaf of one type into the other.

    The answer is about types, not values: a text that is no number fails later, in the cast.

    >>> from puredelta.protocol.schema.types import INTEGER
    >>> is_implicit_cast(STRING, INTEGER), is_implicit_cast(STRING, BOOLEAN)
    (True, False)
    """
    if given in (to, VOID):
        return True
    if to == STRING:
        return _is_number(given) or given in (*_TIMES, BOOLEAN, BINARY)
    if given == STRING:
        return _is_number(to) or to in (*_TIMES, BINARY)
    return (_is_number(given) and _is_number(to)) or (given in _TIMES and to in _TIMES)


def _is_number(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType) or data_type in _NUMBERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """The requests of a statement's clauses for new columns."""

    assigned: Sequence[tuple[str, ...]]
    """The columns and fields that MATCHED and NOT MATCHED clauses name (M-47, M-48)."""
    has_star: bool
    case_sensitive: bool

    def referenced(self, source: StructType) -> StructType:
        """Return the part of the source's schema that evolves the table (M-48).

        All of it if some clause has a star; otherwise the named fields, with all fields inside.
        """
        return StructType(tuple(self._referenced(source, ())))

    def _referenced(self, struct: StructType, base: tuple[str, ...]) -> Iterator[StructField]:
        for field in struct.fields:
            path = (*base, field.name)
            below = [names for names in self.assigned if self._starts_with(names, path)]
            if any(len(names) == len(path) for names in below):
                yield field
            elif isinstance(field.type, StructType) and (below or self.has_star):
                inner = StructType(tuple(self._referenced(field.type, path)))
                yield dataclasses.replace(field, type=inner)
            elif self.has_star:
                yield field

    def _starts_with(self, names: Sequence[str], prefix: Sequence[str]) -> bool:
        return len(names) >= len(prefix) and all(
            one == other or (not self.case_sensitive and one.lower() == other.lower())
            for one, other in zip(names, prefix, strict=False)
        )


def evolved_config(
    config: TableConfig, source: StructType, evolution: Evolution, settings: MergeSettings
) -> TableConfig:
    """Return the table after the MERGE; ``config`` itself where nothing changes.

    New columns and fields come last in their struct and are nullable (M-49). A type that
    differs stays if Spark would cast the source's to it implicitly (M-52), unless the table
    has type widening switched on and the source's is wider (M-53).
    """
    widening = _widening(config, settings)
    merged = merge_schemas(
        config.schema,
        evolution.referenced(source),
        keeps_type=lambda current, update: is_implicit_cast(update, current),
        widens_type=widening.allows,
    )
    if shape(merged) == shape(config.schema):
        return config
    _require_wanted_voids(config.schema, merged, settings)
    require_same_types(config, merged)
    require_storable_types(merged)
    recorded = with_type_changes(config.schema, merged)
    return with_schema(config, recorded, config.partition_columns)


def canonical_path(schema: StructType, path: Sequence[str]) -> tuple[str, ...]:
    """Return a path as the schema spells it, case ignored; unknown steps stay."""
    names: list[str] = []
    level: object = schema
    for name in path:
        field = level.find_ignoring_case(name) if isinstance(level, StructType) else None
        names.append(name if field is None else field.name)
        level = None if field is None else field.type
    return tuple(names)


def _widening(config: TableConfig, settings: MergeSettings) -> AutomaticWidening:
    supported = config.supports("typeWidening") or config.supports("typeWidening-preview")
    if config.properties.enable_type_widening and supported:
        return settings.automatic_widening
    return AutomaticWidening.NEVER


def _require_wanted_voids(before: StructType, after: StructType, settings: MergeSettings) -> None:
    """Refuse the VOID fields that the session forbids; files omit VOID columns and fields."""
    if settings.refuses_void:
        known = {path.lower() for path, field in fields_by_path(before) if _holds_void(field)}
        for path, field in fields_by_path(after):
            if _holds_void(field) and path.lower() not in known:
                raise InvalidRequestError(Message.MERGE_ADD_VOID_COLUMN, new_column=path)
    require_stored_fields(after)


def _holds_void(field: StructField) -> bool:
    """Tell whether a field is VOID, or an array or map of it; fields of structs are checked one by
    one.
    """
    text = simple_string(field.type)
    return not isinstance(field.type, StructType) and re.search(r"\bvoid\b", text) is not None
