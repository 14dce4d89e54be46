"""ADD, DROP and RENAME COLUMNS, without touching a data file.

Dropping and renaming need column mapping; a column that a file lacks is read as NULL.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.alter.change import changed_config, commit_change, start_change
from puredelta.commands.definition.columns import stored_columns
from puredelta.commands.definition.dependent_rules import require_unreferenced
from puredelta.commands.definition.schema_change import require_storable_types, with_schema
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.table_operations import (
    ColumnChange,
    add_columns,
    drop_columns,
    rename_column,
)
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.schema_edit import (
    ColumnPosition,
    End,
    FieldPath,
    add_field,
    change_field,
    drop_field,
    find_field,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.traversal import all_fields
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import REFUSED_BY_DROP_COLUMN
from puredelta.spark.session.identifiers import display_name
from puredelta.spark.session.types import from_spark

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewColumn:
    """A column or nested field to add."""

    field: T.StructField
    parent: FieldPath = ()
    """Where it goes: the empty path is the table itself."""
    place: ColumnPosition | None = None
    """None where nothing was said: at the end."""


def add_table_columns(spark: SparkSession, log: TableLog, columns: Sequence[NewColumn]) -> int:
    """Add columns, NULL in the rows there are; return the version made.

    Raises:
        InvalidRequestError: a column exists, is required (OPERATION_NOT_ALLOWED), has a
            default (WRONG_COLUMN_DEFAULTS_ADD_COLUMN), has nowhere to go, or a type that has
            to be enabled first.
        ConflictError: another writer changed the table meanwhile.
    """
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
    """Drop columns and nested fields; return the version made, None if there was none of them.

    Raises:
        InvalidRequestError: columns are not mapped (UNSUPPORTED_DROP_COLUMN), or one does not
            exist, partitions or clusters the table, is the last one, or something depends
            on it.
        ConflictError: another writer changed the table meanwhile.
    """
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
    """Rename a column or nested field; return the version made.

    Raises:
        InvalidRequestError: columns are not mapped (UNSUPPORTED_RENAME_COLUMN), there is no
            such column, the name is taken, or something depends on the old one.
        ConflictError: another writer changed the table meanwhile.
    """
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
    """Return a place as the history shows it."""
    if isinstance(place, End):
        return place.value if place is End.FIRST else None
    return f"AFTER {place.name}"


def _with_columns(
    config: TableConfig,
    schema: StructType,
    partition_columns: tuple[str, ...],
    moved: Mapping[FieldPath, FieldPath | None],
) -> TableConfig:
    """Return the table with fewer or renamed columns, also where a property names them."""
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
        raise InvalidRequestError(
            "Failed to execute the command because DEFAULT values are not supported when adding "
            "new columns to previously existing Delta tables; please add the column "
            f"{field.name} without a default value first, then run a second ALTER TABLE ALTER "
            "COLUMN SET DEFAULT command to apply for future inserted rows instead.",
            code=ErrorCode.WRONG_COLUMN_DEFAULTS_ADD_COLUMN,
            column=field.name,
        )
    required = [f.name for f in _with_nested(field) if not f.nullable]
    if required:
        raise InvalidRequestError(
            "Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for "
            f"Delta tables: {', '.join(required)}. The rows there are have no value for it.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
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
            f"Dropping partition columns ({', '.join(partitions)}) is not allowed.",
            code=ErrorCode.UNSUPPORTED_DROP_PARTITION_COLUMN,
            columns=tuple(partitions),
        )
    clustered = clustering_columns(snapshot.config, snapshot.domain_metadata)
    wanted = [".".join(p) for p in paths if any(c[: len(p)] == p for c in clustered)]
    if wanted:
        raise InvalidRequestError(
            f"Dropping clustering columns ({', '.join(wanted)}) is not allowed.",
            code=ErrorCode.UNSUPPORTED_DROP_CLUSTERING_COLUMN,
            columns=tuple(wanted),
        )
