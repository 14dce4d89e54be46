"""Rules for the schema of a table that a command is about to commit (X-07, C-36).

Readers are not this strict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.partition_values import is_partition_type
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import fields_by_path
from puredelta.protocol.schema.types import StructField, StructType

INVALID_CHARACTERS = " ,;{}()\n\t="
"""Old Parquet readers fail on these characters; with column mapping they never see them."""


def require_valid_schema(
    schema: StructType, partition_columns: Sequence[str], *, column_mapping: ColumnMappingMode
) -> tuple[str, ...]:
    """Check everything below; return the partition columns in the spelling of the schema."""
    require_no_duplicates(schema)
    require_valid_names(schema, column_mapping)
    return resolve_partition_columns(schema, partition_columns)


def require_no_duplicates(schema: StructType) -> None:
    """Check that no two fields of a struct differ in case only, at any depth.

    Raises:
        InvalidRequestError: DELTA_DUPLICATE_COLUMNS_FOUND.
    """
    counts = Counter(path.lower() for path, _ in fields_by_path(schema))
    twice = sorted(path for path, count in counts.items() if count > 1)
    if twice:
        raise InvalidRequestError(
            Message.DUPLICATE_COLUMNS_FOUND_SCHEMA, twice=", ".join(twice), columns=tuple(twice)
        )


def require_valid_names(schema: StructType, mode: ColumnMappingMode) -> None:
    """Check for characters that Parquet column names may not hold; a mapped schema may.

    Raises:
        InvalidRequestError: DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES.
    """
    if mode is not ColumnMappingMode.NONE:
        return
    wrong = sorted(
        {f.name for _, f in fields_by_path(schema) if set(f.name) & set(INVALID_CHARACTERS)}
    )
    if wrong:
        raise InvalidRequestError(
            Message.INVALID_CHARACTERS_IN_COLUMN_NAMES,
            invalid_characters=INVALID_CHARACTERS,
            names=", ".join(map(repr, wrong)),
            columns=tuple(wrong),
        )


def resolve_partition_columns(schema: StructType, names: Sequence[str]) -> tuple[str, ...]:
    """Find the partition columns in the schema, ignoring case; return their spelling there.

    Raises:
        InvalidRequestError: one is unknown (DELTA_PARTITION_COLUMN_NOT_FOUND), named twice
            (DELTA_DUPLICATE_COLUMNS_FOUND) or not atomic
            (DELTA_INVALID_PARTITION_COLUMN_TYPE), or no other column is left
            (DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION).
    """
    fields = tuple(_find(schema, name) for name in names)
    resolved = tuple(f.name for f in fields)
    if len(set(resolved)) < len(resolved):
        raise InvalidRequestError(
            Message.DUPLICATE_COLUMNS_FOUND_PARTITIONING,
            names=", ".join(names),
            columns=tuple(names),
        )
    if resolved and len(resolved) == len(schema.fields):
        raise InvalidRequestError(Message.ALL_COLUMNS_PARTITIONED, resolved=", ".join(resolved))
    for field in fields:
        require_partition_type(field)
    return resolved


def require_partition_columns(schema: StructType, names: Iterable[str]) -> None:
    """Require that rows have the columns that partition a table; case is ignored.

    Raises:
        InvalidRequestError: one is missing (DELTA_PARTITION_COLUMN_NOT_FOUND).
    """
    for name in names:
        _find(schema, name)


def _find(schema: StructType, name: str) -> StructField:
    field = schema.find(name) or schema.find_ignoring_case(name)
    if field is None:
        raise InvalidRequestError(
            Message.PARTITION_COLUMN_NOT_FOUND, names=", ".join(schema.names), column=name
        )
    return field


def require_partition_type(field: StructField) -> None:
    """Check that the values of a column can stand in the log as text.

    Raises:
        InvalidRequestError: DELTA_INVALID_PARTITION_COLUMN_TYPE.
    """
    if not is_partition_type(field.type):
        name = simple_string(field.type)
        raise InvalidRequestError(
            Message.INVALID_PARTITION_COLUMN_TYPE_SCHEMA, column=field.name, type=name
        )
