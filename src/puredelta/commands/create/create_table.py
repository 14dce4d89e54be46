"""CREATE and REPLACE of a table at a location.

No Spark job runs: the whole command is one commit of protocol, metadata and domains, and of
the tombstones of a table that is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession

from puredelta.commands.command import Command, command_on
from puredelta.commands.create.definition import (
    PlannedTable,
    TableDefinition,
    plan_table,
)
from puredelta.commands.finish import finish
from puredelta.errors import InvalidRequestError, Message, TableNotFoundError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.file_table import remove_file
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action
from puredelta.protocol.actions.operations import Definition, Operation, define_table, with_rows
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType
from puredelta.protocol.table.clustering import clustering_columns

_MAPPING = "delta.columnMapping."


def require_same_definition(
    snapshot: Snapshot, table: PlannedTable, definition: TableDefinition
) -> None:
    """Check columns, partitioning, clustering, and properties where the definition has some.

    Raises:
        InvalidRequestError: something differs (CREATE_TABLE_SCHEME_MISMATCH,
            CREATE_TABLE_WITH_DIFFERENT_PARTITIONING, ..._CLUSTERING, ..._PROPERTY).
    """
    config = snapshot.config
    path = snapshot.root_uri
    differences = list(_differences(without_mapping(config.schema), definition.columns, ""))
    if differences:
        raise InvalidRequestError(
            Message.CREATE_TABLE_SCHEME_MISMATCH,
            columns=simple_string(definition.columns),
            schema=simple_string(config.schema),
            differences="; ".join(differences),
            path=path,
        )
    if table.config.partition_columns != config.partition_columns:
        raise _differs(
            Message.CREATE_TABLE_WITH_DIFFERENT_PARTITIONING,
            path,
            table.config.partition_columns,
            config.partition_columns,
        )
    clustered = tuple(map(".".join, clustering_columns(config, snapshot.domain_metadata)))
    wanted = tuple(map(".".join, table.clustering_columns))
    if clustered != wanted:
        raise _differs(
            Message.CREATE_TABLE_WITH_DIFFERENT_CLUSTERING,
            path,
            wanted,
            clustered,
        )
    _require_same_properties(table.own_properties, config.metadata.configuration, path)


def _require_same_properties(
    specified: Mapping[str, str], existing: Mapping[str, str], path: str
) -> None:
    if not specified:
        return
    ours, theirs = _without_mapping(specified), _without_mapping(existing)
    if ours != theirs:
        raise _differs(
            Message.CREATE_TABLE_WITH_DIFFERENT_PROPERTY,
            path,
            tuple(f"{k}={v}" for k, v in sorted(ours.items())),
            tuple(f"{k}={v}" for k, v in sorted(theirs.items())),
        )


def _without_mapping(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if not key.startswith(_MAPPING)}


def _differs(
    message: Message, path: str, specified: tuple[str, ...], existing: tuple[str, ...]
) -> InvalidRequestError:
    return InvalidRequestError(
        message,
        specified_list=", ".join(specified),
        existing_list=", ".join(existing),
        path=path,
        specified=specified,
        existing=existing,
    )


def _differences(existing: DataType, specified: DataType, path: str) -> Iterator[str]:
    match (existing, specified):
        case StructType(), StructType():
            yield from _field_differences(existing, specified, path)
        case ArrayType(old, old_nulls), ArrayType(new, new_nulls) if old_nulls == new_nulls:
            yield from _differences(old, new, f"{path}.element")
        case MapType(old_key, old_value, old_nulls), MapType(key, value, nulls) if (
            old_nulls == nulls
        ):
            yield from _differences(old_key, key, f"{path}.key")
            yield from _differences(old_value, value, f"{path}.value")
        case _ if existing != specified:
            yield (
                f"specified type for {path} is {simple_string(specified)}, the existing one "
                f"{simple_string(existing)}"
            )
        case _:
            return


def _field_differences(existing: StructType, specified: StructType, path: str) -> Iterator[str]:
    prefix = f"{path}." if path else ""
    for field in specified.fields:
        if existing.find_ignoring_case(field.name) is None:
            yield f"specified schema has additional field {prefix}{field.name}"
    for field in existing.fields:
        other = specified.find_ignoring_case(field.name)
        if other is None:
            yield f"specified schema is missing field {prefix}{field.name}"
        else:
            yield from _one_field(field, other, prefix + field.name)


def _one_field(existing: StructField, specified: StructField, path: str) -> Iterator[str]:
    if existing.nullable != specified.nullable:
        words = {True: "nullable", False: "non-nullable"}
        yield (
            f"field {path} is {words[specified.nullable]} in specified schema but "
            f"{words[existing.nullable]} in existing schema"
        )
    if dict(existing.metadata) != dict(specified.metadata):
        yield (
            f"specified metadata for field {path} is {dict(specified.metadata)}, the existing "
            f"one {dict(existing.metadata)}"
        )
    yield from _differences(existing.type, specified.type, path)


class CreateMode(Enum):
    """Modes of a definition: its effect on an existing and on a missing table."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "create if not exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create or replace"

    @classmethod
    def of(cls, *, creates: bool, replaces: bool, if_not_exists: bool) -> CreateMode:
        """Return the mode of the keywords before a definition."""
        if replaces:
            return cls.CREATE_OR_REPLACE if creates else cls.REPLACE
        return cls.CREATE_IF_NOT_EXISTS if if_not_exists else cls.CREATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A table's entry in the session catalog, existing or to be made."""

    name: str
    """For messages."""
    is_known: bool
    """Whether the catalog has the table already."""
    is_managed: bool
    """Whether the catalog owns the directory."""


def create_table(
    spark: SparkSession,
    log: TableLog,
    definition: TableDefinition,
    *,
    mode: CreateMode,
    entry: Entry | None = None,
) -> int | None:
    """Create or replace the table at ``log``; return the version made, None if none was needed.

    As in delta-spark, CREATE OR REPLACE replaces a table of the catalog. A table given by path
    is only compared with the definition, and stays unchanged.
    """
    snapshot = find_existing(log, mode, entry)
    if snapshot is not None and mode is CreateMode.CREATE_IF_NOT_EXISTS:
        return None
    if mode in REPLACING:
        _require_columns(definition)
    is_known = entry is not None and entry.is_known
    checks = mode is CreateMode.CREATE_OR_REPLACE and not is_known
    replaces = None if checks else snapshot
    table = plan_table(spark, definition, replaces=replaces)
    if snapshot is not None and checks:
        require_same_definition(snapshot, table, definition)
        return None
    command = command_on(spark, log, snapshot, Capability.ADMINISTER)
    return _commit(command, table, describe(table, mode, entry))


def find_existing(log: TableLog, mode: CreateMode, entry: Entry | None = None) -> Snapshot | None:
    """Return the existing table, None if there is none.

    Files without a log are what a program has left that ended while it made a table. Where the
    catalog owns the directory, a statement that replaces the table goes on from there.

    Raises:
        InvalidRequestError: there must be nothing at the location, and there is.
        TableNotFoundError: there is no table to replace.
    """
    snapshot = log.find_snapshot()
    name = _name(log) if entry is None else entry.name
    if snapshot is None and mode is CreateMode.REPLACE:
        raise nothing_to_replace(name)
    if snapshot is not None and mode is CreateMode.CREATE:
        raise already_exists(name) if entry is None else _not_empty(log, name)
    if snapshot is None and not (entry is not None and entry.is_known and entry.is_managed):
        _require_empty(log, mode, name)
    return snapshot


def describe(
    table: PlannedTable,
    mode: CreateMode,
    entry: Entry | None,
    *,
    as_select: bool = False,
) -> Operation:
    """Return the history's record of a definition."""
    config = table.config
    definition = define_table(
        _RECORDED[mode],
        partition_by=config.partition_columns,
        cluster_by=[".".join(path) for path in table.clustering_columns],
        description=config.metadata.description,
        properties=config.metadata.configuration,
        is_managed=entry is not None and entry.is_managed,
    )
    return with_rows(definition) if as_select else definition


def already_exists(name: str) -> InvalidRequestError:
    """Return the error for a name or a location that is taken."""
    return InvalidRequestError(Message.TABLE_OR_VIEW_ALREADY_EXISTS, name=name)


def nothing_to_replace(name: str) -> TableNotFoundError:
    """Return the error for REPLACE where no table is."""
    return TableNotFoundError(Message.TABLE_OR_VIEW_NOT_FOUND_REPLACE, name=name)


REPLACING = (CreateMode.REPLACE, CreateMode.CREATE_OR_REPLACE)
"""Modes that replace an existing table."""

_RECORDED = {
    CreateMode.CREATE: Definition.CREATE,
    CreateMode.CREATE_IF_NOT_EXISTS: Definition.CREATE,
    CreateMode.REPLACE: Definition.REPLACE,
    CreateMode.CREATE_OR_REPLACE: Definition.CREATE_OR_REPLACE,
}


def _commit(command: Command, table: PlannedTable, operation: Operation) -> int:
    existing, config = command.existing, table.config
    actions: list[Action] = [config.metadata]
    if existing is None or existing.protocol != config.protocol:
        actions.append(config.protocol)
    actions += table.domains
    if existing is not None:
        command.transaction.read_files(None, existing.files)
        actions += [remove_file(file) for file in existing.files.adds()]
    request = CommitRequest(
        actions=actions,
        operation=operation,
        is_blind_append=None if existing is None else False,
    )
    return finish(command, request).version


def _require_empty(log: TableLog, mode: CreateMode, name: str) -> None:
    """Refuse a directory that is not empty: a table made there would not contain its rows."""
    if next(iter(log.store.walk("")), None) is None:
        return
    if mode is CreateMode.CREATE:
        raise already_exists(name)
    raise _not_empty(log, name)


def _not_empty(log: TableLog, name: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.CREATE_TABLE_WITH_NON_EMPTY_LOCATION_CREATE, name=name, path=log.root_uri
    )


def _require_columns(definition: TableDefinition) -> None:
    if not definition.columns.fields:
        raise InvalidRequestError(Message.SCHEMA_NOT_PROVIDED_COLUMNS)


def _name(log: TableLog) -> str:
    return f"`delta`.`{log.root_uri.removeprefix('file:')}`"
