"""ALTER COLUMN: comment, type, nullability, default, position and SYNC IDENTITY."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.alter.change import changed_config, commit_change, start_change
from puredelta.commands.alter.columns import recorded_place
from puredelta.commands.defined_columns import COMMENT, config_with_marks, stored_columns
from puredelta.commands.dependent_rules import require_unreferenced
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import ColumnChange, change_column, change_columns
from puredelta.protocol.features.feature_usage import (
    CURRENT_DEFAULT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_STEP,
)
from puredelta.protocol.features.filled_columns import Identity, identities
from puredelta.protocol.features.type_widening import can_widen, with_type_changes
from puredelta.protocol.schema.schema_edit import (
    ColumnPosition,
    FieldPath,
    change_field,
    find_field,
    find_type,
    move_field,
)
from puredelta.protocol.schema.schema_json import encode_schema, simple_string
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.protocol.table.table_config import CHAR_VARCHAR, TableConfig
from puredelta.spark.resolve.sql_text import require_valid_default
from puredelta.spark.scan.scan import scan_strictly
from puredelta.spark.session.concurrent_jobs import tagged_jobs
from puredelta.spark.session.delta_conf import REFUSED_BY_SYNC_IDENTITY
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.types import to_spark_type

_DEFAULTS_FEATURE = "allowColumnDefaults"


class Unset(Enum):
    """Marker for a part of a column that is to be removed."""

    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEdit:
    """Changes of one column; None leaves a part as it is."""

    data_type: T.DataType | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | Unset | None = None
    """SQL text of the default for future rows."""
    place: ColumnPosition | None = None


def change_table_columns(
    spark: SparkSession, log: TableLog, edits: Sequence[tuple[FieldPath, ColumnEdit]]
) -> int:
    """Change columns or nested fields; return the version made. Files stay as they are.

    A type may only become wider, and only where type widening is enabled; a column that may
    be NULL stays so.
    """
    command = start_change(spark, log)
    config = command.snapshot.config
    schema, changes = config.schema, []
    for path, edit in edits:
        canonical, old = find_field(schema, path)
        new = edited_field(config, canonical, old, edit)
        if new.type != old.type:
            require_unreferenced(config, canonical)
        if isinstance(edit.default, str):
            kind = to_spark_type(new.type)
            require_valid_default(
                spark, new.name, edit.default, kind, statement="ALTER TABLE ALTER COLUMN"
            )
        schema = _with_field(schema, canonical, new, edit.place)
        place = None if edit.place is None else recorded_place(edit.place)
        changes.append(ColumnChange(path=canonical, field=new, place=place))
    metadata = dataclasses.replace(
        config.metadata, schema_string=encode_schema(with_type_changes(config.schema, schema))
    )
    return commit_change(
        command,
        changed_config(config, metadata),
        operation=change_column(changes[0]) if len(changes) == 1 else change_columns(changes),
    )


def _with_field(
    schema: StructType, path: FieldPath, field: StructField, place: ColumnPosition | None
) -> StructType:
    changed = change_field(schema, path, lambda _: field)
    return changed if place is None else move_field(changed, path, place)


def edited_field(
    config: TableConfig, path: FieldPath, old: StructField, edit: ColumnEdit
) -> StructField:
    """Return a field with the edit applied, except its position and the history of its type."""
    if not isinstance(find_type(config.schema, path[:-1])[1], StructType):
        _require_only_a_type(path, old, edit)
    if IDENTITY_STEP in old.metadata and (edit.data_type or edit.default is not None):
        raise InvalidRequestError(
            Message.IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED, column=".".join(path)
        )
    metadata = dict(old.metadata)
    new = old
    if edit.data_type is not None:
        new = _with_type(config, path, old, edit.data_type)
        metadata = dict(new.metadata)
    if edit.nullable is not None:
        if old.nullable and not edit.nullable:
            raise _unsupported(path, f"{_type_text(old)} (nullable)", f"{_type_text(old)} NOT NULL")
        new = dataclasses.replace(new, nullable=edit.nullable)
    if edit.comment is not None:
        metadata[COMMENT] = edit.comment
    match edit.default:
        case str():
            _require_defaults(config, path)
            metadata[CURRENT_DEFAULT] = edit.default
        case Unset.DEFAULT:
            metadata.pop(CURRENT_DEFAULT, None)
        case None:
            pass
    return dataclasses.replace(new, metadata=metadata)


def _with_type(
    config: TableConfig, path: FieldPath, old: StructField, data_type: T.DataType
) -> StructField:
    wanted = stored_columns(T.StructType([T.StructField(old.name, data_type)])).fields[0]
    widened = config.is_active("typeWidening") and config.properties.enable_type_widening
    if wanted.type != old.type and not (widened and can_widen(old.type, wanted.type)):
        raise _unsupported(path, _type_text(old), simple_string(wanted.type).upper())
    metadata = {k: v for k, v in old.metadata.items() if k != CHAR_VARCHAR}
    if CHAR_VARCHAR in wanted.metadata:
        metadata[CHAR_VARCHAR] = wanted.metadata[CHAR_VARCHAR]
    return dataclasses.replace(old, type=wanted.type, metadata=metadata)


def _require_only_a_type(path: FieldPath, old: StructField, edit: ColumnEdit) -> None:
    """Refuse all but a type for the element of an array and the key and value of a map."""
    name = ".".join(path)
    if edit.comment is not None:
        raise InvalidRequestError(Message.UNSUPPORTED_COMMENT_MAP_ARRAY, column=name)
    if edit.nullable not in {None, old.nullable} or edit.default is not None or edit.place:
        raise _unsupported(path, _type_text(old), "one with another nullability, default or place")


def _require_defaults(config: TableConfig, path: FieldPath) -> None:
    if not config.supports(_DEFAULTS_FEATURE):
        raise InvalidRequestError(
            Message.WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED_ALTER,
            defaults_feature=_DEFAULTS_FEATURE,
            column=".".join(path),
        )


def _type_text(field: StructField) -> str:
    return str(field.metadata.get(CHAR_VARCHAR, simple_string(field.type))).upper()


def _unsupported(path: FieldPath, old: str, new: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP, old=old, new=new, column=".".join(path)
    )


def sync_identity(spark: SparkSession, log: TableLog, path: FieldPath) -> int:
    """Advance the next generated value past all existing values; return the version made.

    For a column that takes values from its user. The high water mark is never lowered. Runs
    one Spark job, over this column.

    Raises:
        InvalidRequestError: there is no such column, or it is no identity column
            (IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN).
        ConflictError: another writer changed the table meanwhile, by adding rows, too.
    """
    command = start_change(spark, log)
    REFUSED_BY_SYNC_IDENTITY.require_defaults(command.session.settings)
    config = command.snapshot.config
    canonical, field = find_field(config.schema, path)
    identity = identities(config.schema).get(field.name) if len(canonical) == 1 else None
    if identity is None:
        raise InvalidRequestError(
            Message.IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN, column=".".join(canonical)
        )
    command.transaction.read_files(None, command.snapshot.files)
    last = _last_value(spark, command.snapshot, identity)
    marks = {} if last is None else {identity.column: synced_mark(identity, last)}
    kept = {k: v for k, v in field.metadata.items() if k != IDENTITY_HIGH_WATER_MARK}
    recorded = dataclasses.replace(field, metadata=kept)
    return commit_change(
        command,
        config_with_marks(config, {k: v for k, v in marks.items() if v is not None}),
        operation=change_column(ColumnChange(path=canonical, field=recorded)),
    )


def synced_mark(identity: Identity, last: int) -> int | None:
    """Return the high water mark that covers the furthest existing value; None if none does.

    >>> column = Identity(column="id", start=10, step=5, allows_explicit_insert=True)
    >>> synced_mark(column, 12), synced_mark(column, 3)
    (15, None)
    """
    known = identity.high_water_mark
    if identity.further(last, identity.start) != last:
        return known  # all are before the first value
    mark = identity.rounded(last)
    return mark if known is None else identity.further(known, mark)


def _last_value(spark: SparkSession, snapshot: Snapshot, identity: Identity) -> int | None:
    column = F.col(quote_name([identity.column]))
    furthest = F.max(column) if identity.step > 0 else F.min(column)
    with tagged_jobs(spark):
        rows = scan_strictly(spark, snapshot, columns=[identity.column])
        row = rows.agg(furthest.alias("last")).first()
    return None if row is None or row["last"] is None else int(row["last"])
