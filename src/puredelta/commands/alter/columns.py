"""ADD, DROP, RENAME and REPLACE COLUMNS, without rewriting a data file.

DROP and RENAME need column mapping; a column that a file lacks is read as NULL.

REPLACE COLUMNS may change order and comments, make columns nullable, and add columns, also nested
ones. It may not drop a column or change a type, because the data files have the old one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.alter.change import changed_config, commit_change, start_change
from puredelta.commands.defined_columns import COMMENT, stored_columns
from puredelta.commands.dependent_rules import require_unreferenced
from puredelta.commands.schema_change import require_storable_types, with_schema
from puredelta.errors import ErrorCode, InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import (
    ColumnChange,
    add_columns,
    drop_columns,
    rename_column,
    replace_columns,
)
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.features.filled_columns import identities
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.features.type_widening import can_widen, with_type_changes
from puredelta.protocol.schema.schema_edit import (
    ColumnPosition,
    End,
    FieldPath,
    add_field,
    change_field,
    drop_field,
    find_field,
)
from puredelta.protocol.schema.schema_json import encode_schema, simple_string
from puredelta.protocol.schema.traversal import all_fields
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import REFUSED_BY_DROP_COLUMN
from puredelta.spark.session.names import display_name
from puredelta.spark.session.types import from_spark

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewColumn:
    """A column or nested field to add."""

    field: T.StructField
    parent: FieldPath = ()
    """The path of the parent field; the empty path is the table itself."""
    place: ColumnPosition | None = None
    """None where no position was given: at the end."""


def add_table_columns(spark: SparkSession, log: TableLog, columns: Sequence[NewColumn]) -> int:
    """Add columns, NULL in all existing rows; return the version made."""
    command = start_change(spark, log)
    snapshot = command.snapshot
    schema = snapshot.config.schema
    recorded = []
    for column in columns:
        field = stored_columns(T.StructType([column.field])).fields[0]
        _require_addable(field)
        schema = add_field(schema, column.parent, field, column.place or End.LAST)
        raw = from_spark(T.StructType([column.field])).fields[0]
        recorded.append(
            ColumnChange(
                path=(*column.parent, field.name),
                field=raw,
                place=None if column.place is None else recorded_place(column.place),
            )
        )
    require_storable_types(schema)
    after = with_schema(snapshot.config, schema, snapshot.config.partition_columns)
    return commit_change(command, after, operation=add_columns(recorded))


def drop_table_columns(
    spark: SparkSession, log: TableLog, paths: Sequence[FieldPath], *, if_exists: bool = False
) -> int | None:
    """Drop columns and nested fields; return the version made, None if none of them existed."""
    command = start_change(spark, log)
    REFUSED_BY_DROP_COLUMN.require_defaults(command.session.settings)
    config = command.snapshot.config
    _require_mapping(config, ErrorCode.UNSUPPORTED_DROP_COLUMN, "DROP COLUMN")
    dropped = [p for p in paths if not if_exists or _exists(config.schema, p)]
    if not dropped:
        return None
    schema = config.schema
    canonical = []
    for path in dropped:
        canonical.append(find_field(schema, path)[0])
        schema = drop_field(schema, path)
    _require_droppable(command.snapshot, canonical)
    for path in canonical:
        require_unreferenced(config, path)
    after = _with_columns(config, schema, config.partition_columns, dict.fromkeys(canonical))
    return commit_change(command, after, operation=drop_columns(canonical))


def rename_table_column(spark: SparkSession, log: TableLog, path: FieldPath, new_name: str) -> int:
    """Rename a column or nested field; return the version made."""
    command = start_change(spark, log)
    config = command.snapshot.config
    canonical, _ = find_field(config.schema, path)
    _require_mapping(config, ErrorCode.UNSUPPORTED_RENAME_COLUMN, "Column rename")
    require_unreferenced(config, canonical)
    renamed = (*canonical[:-1], new_name)
    schema = change_field(
        config.schema, canonical, lambda field: dataclasses.replace(field, name=new_name)
    )
    partitions = tuple(
        new_name if canonical == (column,) else column for column in config.partition_columns
    )
    after = _with_columns(config, schema, partitions, {canonical: renamed})
    return commit_change(command, after, operation=rename_column(canonical, renamed))


def recorded_place(place: ColumnPosition) -> str | None:
    """Return a position as the history shows it."""
    if isinstance(place, End):
        return place.value if place is End.FIRST else None
    return f"AFTER {place.name}"


def _with_columns(
    config: TableConfig,
    schema: StructType,
    partition_columns: tuple[str, ...],
    moved: Mapping[FieldPath, FieldPath | None],
) -> TableConfig:
    """Return the table with fewer or renamed columns, in the properties that name columns, too."""
    configuration = dict(config.metadata.configuration)
    named = config.properties.data_skipping_stats_columns
    if named is not None:
        kept = [path for old in named if (path := _moved(old, moved)) is not None]
        configuration[_STATS_COLUMNS] = ",".join(map(display_name, kept))
    metadata = dataclasses.replace(
        config.metadata,
        schema_string=encode_schema(schema),
        partition_columns=partition_columns,
        configuration=configuration,
    )
    return changed_config(config, metadata)


def _moved(path: FieldPath, moved: Mapping[FieldPath, FieldPath | None]) -> FieldPath | None:
    lowered = tuple(part.lower() for part in path)
    for old, new in moved.items():
        if lowered[: len(old)] == tuple(part.lower() for part in old):
            return None if new is None else (*new, *path[len(old) :])
    return path


def _require_addable(field: StructField) -> None:
    if CURRENT_DEFAULT in field.metadata:
        raise InvalidRequestError(Message.WRONG_COLUMN_DEFAULTS_ADD_COLUMN, column=field.name)
    required = [f.name for f in _with_nested(field) if not f.nullable]
    if required:
        raise InvalidRequestError(
            Message.OPERATION_NOT_ALLOWED_NOT_NULL,
            required=", ".join(required),
            columns=tuple(required),
        )


def _with_nested(field: StructField) -> Iterator[StructField]:
    yield field
    yield from all_fields(field.type)


def _exists(schema: StructType, path: FieldPath) -> bool:
    try:
        find_field(schema, path)
    except InvalidRequestError:
        return False
    return True


def _require_mapping(config: TableConfig, code: ErrorCode, what: str) -> None:
    if config.column_mapping is ColumnMappingMode.NONE:
        raise InvalidRequestError(
            f"{what} is not supported for your Delta table. Please enable Column Mapping on your "
            "Delta table with mapping mode 'name': ALTER TABLE table_name SET TBLPROPERTIES "
            "('delta.columnMapping.mode' = 'name').",
            code=code,
        )


def _require_droppable(snapshot: Snapshot, paths: Sequence[FieldPath]) -> None:
    partitions = [p[0] for p in paths if p[0] in snapshot.config.partition_columns]
    if partitions:
        raise InvalidRequestError(
            Message.UNSUPPORTED_DROP_PARTITION_COLUMN,
            partitions=", ".join(partitions),
            columns=tuple(partitions),
        )
    clustered = clustering_columns(snapshot.config, snapshot.domain_metadata)
    wanted = [".".join(p) for p in paths if any(c[: len(p)] == p for c in clustered)]
    if wanted:
        raise InvalidRequestError(
            Message.UNSUPPORTED_DROP_CLUSTERING_COLUMN,
            wanted=", ".join(wanted),
            columns=tuple(wanted),
        )


_Retype = Callable[[FieldPath, DataType, DataType], DataType]


def replace_table_columns(spark: SparkSession, log: TableLog, columns: T.StructType) -> int:
    """Set the columns of a table and their order; return the version made.

    Columns keep their names as the table spells them, and a comment where no other is given.
    Data files stay as they are: new columns are NULL in existing rows.

    Raises:
        InvalidRequestError: a column would be dropped, become NOT NULL or of another type
            (UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP), the table has identity columns
            (IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED), or a name is not allowed.
        ConflictError: another writer changed the table meanwhile.
    """
    command = start_change(spark, log)
    config = command.snapshot.config
    if identities(config.schema):
        raise InvalidRequestError(Message.IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED)
    wanted = stored_columns(columns)
    require_storable_types(wanted)
    replaced = replaced_struct(config.schema, wanted, (), _retype(config))
    schema = with_type_changes(config.schema, replaced)
    after = with_schema(config, schema, config.partition_columns)
    return commit_change(command, after, operation=replace_columns(from_spark(columns).fields))


def replaced_struct(
    old: StructType, new: StructType, path: FieldPath, retype: _Retype
) -> StructType:
    """Return the fields of ``new``, each with the metadata of the old field of its name.

    ``retype`` converts a type that is neither struct, array nor map.

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
    return InvalidRequestError(Message.UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP, what=what)
