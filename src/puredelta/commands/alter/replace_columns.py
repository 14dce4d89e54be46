"""REPLACE COLUMNS: a new list of a table's columns that drops none of them.

It may change the order, comments and nullability (only to looser) and add columns, also nested
ones. To drop a column or to change its type is refused, because the data files have the old one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.alter.change import commit_change, start_change
from puredelta.commands.definition.columns import COMMENT, stored_columns
from puredelta.commands.definition.dependent_rules import require_unreferenced
from puredelta.commands.definition.schema_change import require_storable_types, with_schema
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.table_operations import replace_columns
from puredelta.protocol.features.filled_columns import identities
from puredelta.protocol.features.type_widening import can_widen, with_type_changes
from puredelta.protocol.schema.schema_edit import FieldPath
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import from_spark

_Retype = Callable[[FieldPath, DataType, DataType], DataType]


def replace_table_columns(spark: SparkSession, log: TableLog, columns: T.StructType) -> int:
    """Give a table these columns in this order; return the version made.

    Columns keep their names as the table spells them, and a comment where no other is given.
    Data files stay as they are: new columns are NULL in the rows there are.

    Raises:
        InvalidRequestError: a column would be dropped, become NOT NULL or of another type
            (UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP), the table has identity columns
            (IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED), or the names are no table's.
        ConflictError: another writer changed the table meanwhile.
    """
    command = start_change(spark, log)
    config = command.snapshot.config
    if identities(config.schema):
        raise InvalidRequestError(
            "ALTER TABLE REPLACE COLUMNS is not supported for tables with IDENTITY columns.",
            code=ErrorCode.IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED,
        )
    wanted = stored_columns(columns)
    require_storable_types(wanted)
    replaced = replaced_struct(config.schema, wanted, (), _retype(config))
    schema = with_type_changes(config.schema, replaced)
    after = with_schema(config, schema, config.partition_columns)
    return commit_change(command, after, operation=replace_columns(from_spark(columns).fields))


def replaced_struct(
    old: StructType, new: StructType, path: FieldPath, retype: _Retype
) -> StructType:
    """Return the fields of ``new``, each with what is known of the one it stands for.

    ``retype`` says what a type that is neither struct, array nor map becomes.

    Raises:
        InvalidRequestError: a field is missing, or becomes or comes as NOT NULL.
    """
    fields = [_replaced_field(old, field, path, retype) for field in new.fields]
    kept = {field.name.lower() for field in new.fields}
    dropped = [field.name for field in old.fields if field.name.lower() not in kept]
    if dropped:
        where = f" from {'.'.join(path)}" if path else ""
        raise _refused(f"dropping column(s) [{', '.join(dropped)}]{where}")
    return StructType(tuple(fields))


def _replaced_field(
    old: StructType, new: StructField, path: FieldPath, retype: _Retype
) -> StructField:
    known = old.find_ignoring_case(new.name)
    if known is None:
        if not new.nullable:
            raise _refused(f"adding non-nullable column {'.'.join((*path, new.name))}")
        return new
    inner = (*path, known.name)
    if known.nullable and not new.nullable:
        raise _refused(f"tightening nullability of {'.'.join(inner)}")
    said = {COMMENT: new.metadata[COMMENT]} if COMMENT in new.metadata else {}
    return dataclasses.replace(
        known,
        type=_replaced_type(known.type, new.type, inner, retype),
        nullable=new.nullable,
        metadata={**known.metadata, **said},
    )


def _replaced_type(old: DataType, new: DataType, path: FieldPath, retype: _Retype) -> DataType:
    match old, new:
        case StructType(), StructType():
            return replaced_struct(old, new, path, retype)
        case ArrayType(element, nulls), ArrayType(other):
            inner = _replaced_type(element, other, (*path, "element"), retype)
            return ArrayType(inner, nulls)
        case MapType(key, value, nulls), MapType(other_key, other_value):
            return MapType(
                _replaced_type(key, other_key, (*path, "key"), retype),
                _replaced_type(value, other_value, (*path, "value"), retype),
                nulls,
            )
        case _:
            return retype(path, old, new)


def _retype(config: TableConfig) -> _Retype:
    widens = config.is_active("typeWidening") and config.properties.enable_type_widening

    def retype(path: FieldPath, old: DataType, new: DataType) -> DataType:
        if old == new:
            return old
        if not (widens and can_widen(old, new)):
            raise _refused(
                f"changing data type of {'.'.join(path)} from {simple_string(old)} to "
                f"{simple_string(new)}"
            )
        require_unreferenced(config, path)
        return new

    return retype


def _refused(what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Unsupported ALTER TABLE REPLACE COLUMNS operation. Reason: {what}. State every column "
        "the table has with its type, or use ALTER TABLE DROP COLUMN and ALTER COLUMN TYPE.",
        code=ErrorCode.UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP,
    )
