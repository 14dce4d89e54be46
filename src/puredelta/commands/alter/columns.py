"""ADD, DROP, RENAME, REPLACE and ALTER COLUMN, without rewriting a data file.

DROP and RENAME need column mapping; a column that a file lacks is read as NULL.

REPLACE COLUMNS may change order and comments, make columns nullable, and add columns, also nested
ones. It may not drop a column or change a type, because the data files have the old one.

ALTER COLUMN changes comment, type, nullability, default and position; SYNC IDENTITY is one of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.alter.change import changed_config, commit_change, start_change
from puredelta.commands.defined_columns import COMMENT, config_with_marks, stored_columns
from puredelta.commands.dependent_rules import require_unreferenced
from puredelta.commands.schema_change import require_storable_types, with_schema
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import (
    ColumnChange,
    add_columns,
    change_column,
    change_columns,
    drop_columns,
    rename_column,
    replace_columns,
)
from puredelta.protocol.features.feature_usage import (
    CURRENT_DEFAULT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_STEP,
)
from puredelta.protocol.features.generated_columns import Identity, identities
from puredelta.protocol.features.properties import PROPERTY_KEYS, ColumnMappingMode
from puredelta.protocol.features.type_widening import can_widen, with_type_changes
from puredelta.protocol.schema.schema_edit import (
    ColumnPosition,
    End,
    FieldPath,
    add_field,
    change_field,
    drop_field,
    find_field,
    find_type,
    move_field,
)
from puredelta.protocol.schema.schema_json import encode_schema, simple_string
from puredelta.protocol.schema.traversal import all_fields
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.protocol.table.table_config import CHAR_VARCHAR, TableConfig
from puredelta.spark.resolve.sql_text import require_valid_default
from puredelta.spark.scan.scan import scan_strictly
from puredelta.spark.session.concurrent_jobs import tagged_jobs
from puredelta.spark.session.delta_conf import REFUSED_BY_DROP_COLUMN, REFUSED_BY_SYNC_IDENTITY
from puredelta.spark.session.names import display_name, quote_name
from puredelta.spark.session.types import from_spark, to_spark_type

_NAMING_COLUMNS = ("data_skipping_stats_columns", "bloom_filter_columns")


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
    _require_mapping(config, Message.UNSUPPORTED_DROP_COLUMN)
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
    _require_mapping(config, Message.UNSUPPORTED_RENAME_COLUMN)
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
    for name in _NAMING_COLUMNS:
        if (key := PROPERTY_KEYS[name]) in configuration:
            named = getattr(config.properties, name)
            kept = [path for old in named if (path := _moved(old, moved)) is not None]
            configuration[key] = ",".join(map(display_name, kept))
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


def _require_mapping(config: TableConfig, message: Message) -> None:
    if config.column_mapping is ColumnMappingMode.NONE:
        raise InvalidRequestError(message)


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
