"""CREATE, REPLACE and their IF NOT EXISTS and OR REPLACE forms, for a table at a location.

No Spark job runs: the whole command is one commit of protocol, metadata and domains, and of
the tombstones of a table that is replaced.
"""

from __future__ import annotations

from enum import Enum

from pyspark.sql import SparkSession

from puredelta.commands.create.definition import (
    PlannedTable,
    TableDefinition,
    plan_table,
)
from puredelta.commands.create.existing import require_same_definition
from puredelta.commands.engine import engine_info
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.log.clock import wall_clock
from puredelta.log.snapshot import Snapshot
from puredelta.log.table_log import TableLog
from puredelta.log.tombstones import remove_file
from puredelta.log.transaction import Transaction
from puredelta.protocol.actions import Action
from puredelta.protocol.feature_registry import Capability
from puredelta.protocol.table_operations import Definition, define_table


class CreateMode(Enum):
    """What a definition does where a table is, and where none is."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "create if not exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create or replace"


def create_table(
    spark: SparkSession, log: TableLog, definition: TableDefinition, *, mode: CreateMode
) -> int | None:
    """Make the table at ``log`` what the definition says; return the version, None if it is so.

    Like the reference, CREATE OR REPLACE of a table at a path does not replace: it checks
    that the table is what the definition says, and changes nothing.

    Raises:
        InvalidRequestError: the definition cannot be a table's, a table or other files are
            there (TABLE_OR_VIEW_ALREADY_EXISTS, CREATE_TABLE_WITH_NON_EMPTY_LOCATION), or
            the table that is there is another (CREATE_TABLE_...).
        TableNotFoundError: there is no table to replace (TABLE_OR_VIEW_NOT_FOUND).
        ConflictError: somebody else created or changed the table meanwhile.
    """
    snapshot = log.snapshot() if log.exists() else None
    match mode:
        case CreateMode.CREATE | CreateMode.CREATE_IF_NOT_EXISTS if snapshot is not None:
            if mode is CreateMode.CREATE_IF_NOT_EXISTS:
                return None
            raise _already_exists(log)
        case CreateMode.REPLACE if snapshot is None:
            raise TableNotFoundError(
                f"The table or view {_name(log)} cannot be found: there is nothing to replace. "
                "Create it, or use createOrReplace.",
                code=ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
                path=log.root_uri,
            )
        case CreateMode.CREATE | CreateMode.CREATE_IF_NOT_EXISTS:
            _require_empty(log, mode)
        case CreateMode.REPLACE | CreateMode.CREATE_OR_REPLACE:
            _require_columns(definition)
            if snapshot is None:
                _require_empty(log, mode)
    replaces = snapshot if mode is CreateMode.REPLACE else None
    table = plan_table(spark, definition, replaces=replaces)
    if snapshot is None:
        how = _CREATIONS[mode]
        return _commit(spark, log, None, table, how)
    if mode is CreateMode.CREATE_OR_REPLACE:
        require_same_definition(snapshot, table, definition)
        return None
    return _commit(spark, log, snapshot, table, Definition.REPLACE)


_CREATIONS = {
    CreateMode.CREATE: Definition.CREATE,
    CreateMode.CREATE_IF_NOT_EXISTS: Definition.CREATE,
    CreateMode.CREATE_OR_REPLACE: Definition.CREATE_OR_REPLACE,
}


def _commit(
    spark: SparkSession,
    log: TableLog,
    snapshot: Snapshot | None,
    table: PlannedTable,
    how: Definition,
) -> int:
    transaction = Transaction(
        log, snapshot, engine_info=engine_info(spark), capability=Capability.ADMINISTER
    )
    config = table.config
    actions: list[Action] = [config.metadata]
    if snapshot is None or snapshot.protocol != config.protocol:
        actions.append(config.protocol)
    actions += table.domains
    if snapshot is not None:
        transaction.read_files(None, snapshot.files)
        now_ms = wall_clock()
        actions += [remove_file(file, deleted_ms=now_ms) for file in snapshot.files.adds()]
    operation = define_table(
        how,
        partition_by=config.partition_columns,
        cluster_by=[".".join(path) for path in table.clustering_columns],
        description=config.metadata.description,
        properties=config.metadata.configuration,
    )
    committed = transaction.commit(
        actions,
        operation,
        metrics={},
        is_blind_append=None if snapshot is None else False,
    )
    return committed.version


def _require_empty(log: TableLog, mode: CreateMode) -> None:
    """Refuse a directory that holds anything: a table made there would not have those rows."""
    if next(iter(log.store.walk("")), None) is None:
        return
    if mode is CreateMode.CREATE:
        raise _already_exists(log)
    raise InvalidRequestError(
        f"Cannot create table ({_name(log)}). The associated location ('{log.root_uri}') is not "
        "empty and also not a Delta table. Convert its Parquet files, or use another location.",
        code=ErrorCode.CREATE_TABLE_WITH_NON_EMPTY_LOCATION,
        path=log.root_uri,
    )


def _require_columns(definition: TableDefinition) -> None:
    if not definition.columns.fields:
        raise InvalidRequestError(
            "Table schema is not provided. Please provide the schema (column definition) of the "
            "table when using REPLACE table and an AS SELECT query is not provided.",
            code=ErrorCode.SCHEMA_NOT_PROVIDED,
        )


def _already_exists(log: TableLog) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot create table or view {_name(log)} because it already exists. Choose a different "
        "name, drop or replace the existing object, or add the IF NOT EXISTS clause "
        "(createIfNotExists) to tolerate pre-existing objects.",
        code=ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS,
        path=log.root_uri,
    )


def _name(log: TableLog) -> str:
    return f"`delta`.`{log.root_uri.removeprefix('file:')}`"
