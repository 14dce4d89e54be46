"""Column mapping: which names and ids the columns of a schema have inside files.

In modes ``name`` and ``id`` every field, nested ones too, carries a physical name and an
id in its metadata (section "Column Mapping"). Data files, statistics and partition values
speak in physical names (M-109); in mode ``none`` both names are the same.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.traversal import all_fields, all_structs, find_fields, map_fields
from puredelta.protocol.schema.types import StructField, StructType

PHYSICAL_NAME = "delta.columnMapping.physicalName"
_KEYS = "delta.columnMapping."
FIELD_ID = "delta.columnMapping.id"
PARQUET_FIELD_ID = "parquet.field.id"
"""The key under which Spark's Parquet reader and writer look for a field id."""


def physical_name(field: StructField, mode: ColumnMappingMode) -> str:
    """Return the name of a field inside files.

    Raises:
        CorruptTableError: the mapping is on and the field has no physical name.
    """
    if mode is ColumnMappingMode.NONE:
        return field.name
    name = field.metadata.get(PHYSICAL_NAME)
    if not isinstance(name, str) or not name:
        raise _incomplete(field, PHYSICAL_NAME)
    return name


def field_id(field: StructField) -> int:
    """Return the id of a field.

    Raises:
        CorruptTableError: it has none.
    """
    number = field.metadata.get(FIELD_ID)
    if not isinstance(number, int) or isinstance(number, bool):
        raise _incomplete(field, FIELD_ID)
    return number


def physical_path(
    schema: StructType, path: Sequence[str], mode: ColumnMappingMode
) -> tuple[str, ...]:
    """Translate a path of struct fields to physical names.

    Raises:
        KeyError: no such field; the caller resolved names against another schema.
    """
    fields = find_fields(schema, path)
    if fields is None:
        raise KeyError(".".join(path))
    return tuple(physical_name(field, mode) for field in fields)


def physical_schema(
    schema: StructType, mode: ColumnMappingMode, *, field_ids: bool = False
) -> StructType:
    """Return the schema as files spell it, all the way down.

    Nullability is kept and metadata dropped, but for the Parquet field ids that
    ``field_ids`` asks for (both mapped modes write them; only mode ``id`` reads by them). A
    field without an id stays without: files hold columns, such as that of the change data
    feed, which are no columns of the table and are found by name in every mode.
    """
    with_ids = field_ids and mode is not ColumnMappingMode.NONE

    def in_files(field: StructField) -> StructField:
        metadata = {PARQUET_FIELD_ID: field_id(field)} if with_ids and _has_id(field) else {}
        return StructField(physical_name(field, mode), field.type, field.nullable, metadata)

    return map_fields(schema, in_files)


def assign_columns(
    schema: StructType,
    *,
    max_column_id: int,
    new_name: Callable[[], str] = lambda: f"col-{uuid.uuid4()}",
) -> tuple[StructType, int]:
    """Give every field that lacks them an id and a physical name (M-109).

    Fields that have both keep them. Returns the schema and the highest id in use, which
    goes into ``delta.columnMapping.maxColumnId``.
    """
    highest = max((max_column_id, *(field_id(f) for f in all_fields(schema) if _has_id(f))))

    def assign(field: StructField) -> StructField:
        nonlocal highest
        metadata = dict(field.metadata)
        if FIELD_ID not in metadata:
            highest += 1
            metadata[FIELD_ID] = highest
        if PHYSICAL_NAME not in metadata:
            metadata[PHYSICAL_NAME] = new_name()
        return replace(field, metadata=metadata)

    return map_fields(schema, assign), highest


def map_existing_columns(schema: StructType) -> tuple[StructType, int]:
    """Give every field its own name as physical name: so the files there are stay readable.

    Returns the schema and the highest id, as `assign_columns`.
    """
    named = map_fields(schema, lambda f: replace(f, metadata={**f.metadata, PHYSICAL_NAME: f.name}))
    return assign_columns(named, max_column_id=0)


def without_mapping(schema: StructType) -> StructType:
    """Return the schema without ids and physical names, all the way down."""

    def unmapped(field: StructField) -> StructField:
        kept = {k: v for k, v in field.metadata.items() if not k.startswith(_KEYS)}
        return replace(field, metadata=kept)

    return map_fields(schema, unmapped)


def _has_id(field: StructField) -> bool:
    return FIELD_ID in field.metadata


def require_complete_mapping(schema: StructType, mode: ColumnMappingMode) -> None:
    """Check that a mapped schema names every field, and no two of them alike.

    Raises:
        CorruptTableError: an id or physical name is missing or used twice.
    """
    if mode is ColumnMappingMode.NONE:
        return
    _require_distinct(schema, "column id", [str(field_id(f)) for f in all_fields(schema)])
    for struct in all_structs(schema):
        # Physical names must differ within one struct; fields of different structs may share one.
        _require_distinct(struct, "physical name", [physical_name(f, mode) for f in struct.fields])


def _require_distinct(struct: StructType, what: str, values: list[str]) -> None:
    twice = sorted(value for value, count in Counter(values).items() if count > 1)
    if twice:
        raise CorruptTableError(
            f"Column mapping gives the {what} {', '.join(twice)} to several columns of "
            f"({', '.join(struct.names)}).",
            code=ErrorCode.LOG_CORRUPTED,
        )


def _incomplete(field: StructField, key: str) -> CorruptTableError:
    return CorruptTableError(
        f"Column mapping is on, but column {field.name!r} has no {key!r} in its metadata.",
        code=ErrorCode.LOG_CORRUPTED,
        column=field.name,
    )
