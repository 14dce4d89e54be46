"""Columns of a definition, as stated and as stored.

Attributes beyond name and type are stored in the metadata of the field: generation
expressions, identity, defaults, ``char(n)``, comments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.features.feature_usage import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOWS_EXPLICIT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from puredelta.protocol.features.generated_columns import (
    IdentitySpec,
    with_high_water_marks,
    without_high_water_marks,
)
from puredelta.protocol.schema.schema_json import encode_schema, simple_string
from puredelta.protocol.schema.traversal import all_fields, types_by_path
from puredelta.protocol.schema.types import (
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import CHAR_VARCHAR, TableConfig
from puredelta.spark.session.types import from_spark

COMMENT = "comment"

_CHAR_TYPES = ("char(", "varchar(")


def column(
    name: str,
    data_type: T.DataType,
    *,
    nullable: bool = True,
    generated_as: str | IdentitySpec | None = None,
    comment: str | None = None,
    default: str | None = None,
) -> StructField:
    """Return one column of a definition; ``default`` is SQL text."""
    metadata: dict[str, Any] = {}
    match generated_as:
        case str():
            metadata[GENERATION_EXPRESSION] = generated_as
        case IdentitySpec():
            metadata[IDENTITY_STEP] = generated_as.step
            metadata[IDENTITY_ALLOWS_EXPLICIT] = generated_as.allows_explicit_insert
            metadata[IDENTITY_START] = generated_as.start
        case None:
            pass
    if comment is not None:
        metadata[COMMENT] = comment
    if default is not None:
        metadata[CURRENT_DEFAULT] = default
    stored = stored_columns(T.StructType([T.StructField(name, data_type, nullable)]))
    return dataclasses.replace(stored.fields[0], metadata={**stored.fields[0].metadata, **metadata})


def stored_columns(schema: T.StructType) -> StructType:
    """Return columns as a table stores them: ``char(n)`` and ``varchar(n)`` are strings.

    The length stays in the metadata of the column, at any depth of nesting (M-106).
    """
    return StructType(tuple(_stored(field) for field in from_spark(schema).fields))


def _stored(field: StructField) -> StructField:
    plain = _without_lengths(field.type)
    if plain == field.type:
        return field
    metadata = {**field.metadata, CHAR_VARCHAR: simple_string(field.type)}
    return dataclasses.replace(field, type=plain, metadata=metadata)


def _without_lengths(data_type: DataType) -> DataType:
    match data_type:
        case PrimitiveType(name) if name.startswith(_CHAR_TYPES):
            return STRING
        case StructType(fields):
            return StructType(
                tuple(dataclasses.replace(f, type=_without_lengths(f.type)) for f in fields)
            )
        case ArrayType(element, nulls):
            return ArrayType(_without_lengths(element), nulls)
        case MapType(key, value, nulls):
            return MapType(_without_lengths(key), _without_lengths(value), nulls)
        case _:
            return data_type


def require_valid_columns(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Check the types and metadata of single columns."""
    for field in schema.fields:
        _require_nullable_elements(field)
        if IDENTITY_STEP in field.metadata:
            _require_valid_identity(field, partition_columns)


def _require_valid_identity(field: StructField, partition_columns: Sequence[str]) -> None:
    if field.metadata[IDENTITY_STEP] == 0:
        raise InvalidRequestError(Message.IDENTITY_COLUMNS_ILLEGAL_STEP, column=field.name)
    if field.type != LONG:
        raise InvalidRequestError(
            Message.IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE,
            field_type=simple_string(field.type),
            column=field.name,
        )
    if field.name in partition_columns:
        raise InvalidRequestError(
            Message.IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED, column=field.name
        )


def _require_nullable_elements(field: StructField) -> None:
    for path, kind in types_by_path(field.type, (field.name,)):
        match kind:
            case ArrayType(element):
                _require_no_required_field(element, ".".join(path), "element")
            case MapType(key, value):
                _require_no_required_field(key, ".".join(path), "key")
                _require_no_required_field(value, ".".join(path), "value")
            case _:
                pass


def _require_no_required_field(data_type: DataType, name: str, part: str) -> None:
    if not all(field.nullable for field in all_fields(data_type)):
        raise InvalidRequestError(
            Message.NESTED_NOT_NULL_CONSTRAINT,
            part=part,
            data_type=simple_string(data_type),
            column=name,
        )


_IDENTITY_UPDATE = "delta.identity.schemaUpdate"


def config_with_marks(config: TableConfig, marks: Mapping[str, int]) -> TableConfig:
    """Return the table with other high water marks of identity columns."""
    if not marks:
        return config
    schema = with_high_water_marks(config.schema, marks)
    metadata = dataclasses.replace(config.metadata, schema_string=encode_schema(schema))
    return TableConfig.of(config.protocol, metadata)


def identity_tags(before: TableConfig, after: TableConfig) -> Mapping[str, str] | None:
    """Return the commit's tag if high water marks are its only change of the table."""
    if before.protocol != after.protocol or before.metadata == after.metadata:
        return None
    unmarked = [
        dataclasses.replace(
            c.metadata, schema_string=encode_schema(without_high_water_marks(c.schema))
        )
        for c in (before, after)
    ]
    return {_IDENTITY_UPDATE: "true"} if unmarked[0] == unmarked[1] else None
