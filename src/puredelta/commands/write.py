"""Write a DataFrame into a table: create, append, overwrite, in one commit.

The order of things is the promise: everything that can be refused is refused first, then
one Spark job writes files nobody sees yet, then one commit makes them the table. If
anything fails, the files are removed and the table is what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from puredelta.commands.engine import engine_info
from puredelta.commands.identity_marks import identity_tags
from puredelta.commands.new_table import plan_new_table
from puredelta.commands.write_columns import complete_rows, require_no_explicit_identity
from puredelta.commands.write_options import SaveMode, WriteOptions
from puredelta.commands.write_schema import (
    SchemaChange,
    config_for_rows,
    require_storable_types,
    resolve_columns,
)
from puredelta.errors import CommitUnknownError, ErrorCode, InvalidRequestError
from puredelta.log.clock import wall_clock
from puredelta.log.snapshot import Snapshot
from puredelta.log.table_log import TableLog
from puredelta.log.tombstones import remove_file
from puredelta.log.transaction import IfCreated, Transaction
from puredelta.protocol.actions import Action, Remove
from puredelta.protocol.feature_registry import Capability
from puredelta.protocol.operations import WriteMode, write
from puredelta.protocol.stats import without_statistics
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import StructType
from puredelta.spark.cached_frames import refresh_cached_frames
from puredelta.spark.names import require_no_helper_names
from puredelta.spark.session import SessionInfo
from puredelta.spark.types import from_spark, struct_as_nullable, without_table_metadata
from puredelta.spark.writer import write_rows
from puredelta.spark.written_files import WriteResult, discard

_RECORDED_MODE = {
    SaveMode.ERROR: WriteMode.ERROR_IF_EXISTS,
    SaveMode.APPEND: WriteMode.APPEND,
    SaveMode.OVERWRITE: WriteMode.OVERWRITE,
    SaveMode.IGNORE: WriteMode.IGNORE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What a write did."""

    version: int | None
    """The version it made; None if there was nothing to do."""
    num_files: int = 0
    num_rows: int = 0
    size_bytes: int = 0
    num_removed_files: int = 0


def write_table(
    rows: DataFrame,
    log: TableLog,
    *,
    mode: SaveMode = SaveMode.ERROR,
    partition_by: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> WriteOutcome:
    """Write ``rows`` into the table at ``log``, which is created if it is not there.

    Runs one Spark job, none if there is nothing to do; another one if values of identity
    columns are to be generated. ``properties``, ``name`` and
    ``description`` are those of a table that this write creates; one that is there keeps
    its own. An append or overwrite without effect commits nothing.

    Raises:
        InvalidRequestError: the table is there (TABLE_ALREADY_EXISTS), the rows do not fit
            (SCHEMA_MISMATCH, FAILED_TO_MERGE_FIELDS) or break a constraint, a table must not
            lose rows (CANNOT_MODIFY_APPEND_ONLY), an option is unknown.
        UnsupportedError: the table needs a feature this library cannot write.
        ConflictError: another writer changed what this write relies on.
        DeltaError: the storage refused (WRITE_FAILED).
    """
    spark = rows.sparkSession
    chosen = WriteOptions.of(spark, options or {})
    require_no_helper_names(rows.columns)
    snapshot = log.snapshot() if log.exists() else None
    if snapshot is not None and mode is SaveMode.IGNORE:
        return WriteOutcome(version=None)
    if snapshot is not None and mode is SaveMode.ERROR:
        raise InvalidRequestError(
            f"Cannot write to already existent path {log.root_uri} without setting OVERWRITE = "
            "'true': a Delta table is there. Use mode 'append' or 'overwrite'.",
            code=ErrorCode.TABLE_ALREADY_EXISTS,
            path=log.root_uri,
        )
    schema = _schema_of(rows)
    if snapshot is None:
        case_sensitive = SessionInfo.of(spark).case_sensitive
        config = plan_new_table(
            spark,
            schema,
            resolve_columns(partition_by, schema, case_sensitive=case_sensitive),
            properties={**chosen.properties, **(properties or {})},
            name=name,
            description=description,
        )
    else:
        if mode is SaveMode.OVERWRITE:
            _require_removable(snapshot)
        require_no_explicit_identity(schema, snapshot.config)
        config = config_for_rows(
            snapshot.config,
            schema,
            partition_by,
            change=SchemaChange(
                merge=chosen.change.merge,
                overwrite=chosen.change.overwrite and mode is SaveMode.OVERWRITE,
            ),
            case_sensitive=SessionInfo.of(spark).case_sensitive,
        )
    return _write(rows, log, snapshot, config, mode=mode, options=chosen, partition_by=partition_by)


def _schema_of(rows: DataFrame) -> StructType:
    """Return the rows' schema as a table would have it: everything nullable (as the reference)."""
    plain = without_table_metadata(struct_as_nullable(rows.schema))
    schema = from_spark(plain)
    if not schema.fields:
        raise InvalidRequestError(
            "Data used in creating the Delta table doesn't have any columns.",
            code=ErrorCode.EMPTY_DATA,
        )
    require_storable_types(schema)
    return schema


def _require_removable(snapshot: Snapshot) -> None:
    if snapshot.config.properties.append_only and len(snapshot.files):
        raise InvalidRequestError(
            "This table is configured to only allow appends. If you would like to permit updates "
            f"or deletes, use 'ALTER TABLE delta.`{snapshot.root_uri}` SET TBLPROPERTIES "
            "(delta.appendOnly=false)'.",
            code=ErrorCode.CANNOT_MODIFY_APPEND_ONLY,
        )


# --- one job, one commit --------------------------------------------------------------------


def _write(
    rows: DataFrame,
    log: TableLog,
    snapshot: Snapshot | None,
    config: TableConfig,
    *,
    mode: SaveMode,
    options: WriteOptions,
    partition_by: Sequence[str],
) -> WriteOutcome:
    overwrites = mode is SaveMode.OVERWRITE
    capability = Capability.OVERWRITE if overwrites else Capability.APPEND
    config.require(capability)
    transaction = Transaction(
        log, snapshot, engine_info=engine_info(rows.sparkSession), capability=capability
    )
    removes = _removes(snapshot) if overwrites and snapshot is not None else []
    if overwrites and snapshot is not None:
        transaction.read_files(None, snapshot.files)
    complete = complete_rows(rows, config, store=log.store)
    try:
        written = write_rows(
            complete.rows,
            store=log.store,
            config=config if options.collects_statistics else without_statistics(config),
        )
    finally:
        complete.remove(log.store)
    after = complete.config
    actions: list[Action] = [*_table_actions(snapshot, after), *written.adds, *removes]
    if not actions:
        return WriteOutcome(version=None)
    try:
        committed = transaction.commit(
            actions,
            write(
                _RECORDED_MODE[mode],
                partition_by=partition_by,
                merges_schema=options.change.merge,
                overwrites_schema=options.change.overwrite,
            ),
            metrics=_metrics(written, removes, overwrites=overwrites)
            if options.records_metrics
            else None,
            is_blind_append=False if overwrites else None,
            user_metadata=options.user_metadata,
            tags=None if snapshot is None else identity_tags(snapshot.config, after),
            if_created=IfCreated.APPEND if mode is SaveMode.APPEND else IfCreated.FAIL,
        )
    except CommitUnknownError:
        raise  # the commit may have landed, and then the files are the table's
    except BaseException:
        discard(written, log.store)
        raise
    refresh_cached_frames(rows.sparkSession, log)
    return WriteOutcome(
        version=committed.version,
        num_files=len(written.adds),
        num_rows=written.num_rows,
        size_bytes=written.size_bytes,
        num_removed_files=len(removes),
    )


def _removes(snapshot: Snapshot) -> list[Remove]:
    now_ms = wall_clock()
    return [remove_file(add, deleted_ms=now_ms) for add in snapshot.files.adds()]


def _table_actions(snapshot: Snapshot | None, config: TableConfig) -> list[Action]:
    """Return the metadata and protocol that this write changes or creates."""
    old = None if snapshot is None else snapshot.config
    actions: list[Action] = []
    if old is None or old.metadata != config.metadata:
        actions.append(config.metadata)
    if old is None or old.protocol != config.protocol:
        actions.append(config.protocol)
    return actions


def _metrics(
    written: WriteResult, removes: Sequence[Remove], *, overwrites: bool
) -> dict[str, int | str]:
    metrics: dict[str, int | str] = {"numFiles": len(written.adds)}
    if overwrites:
        metrics["numRemovedFiles"] = len(removes)
        metrics["numRemovedBytes"] = sum(remove.size_bytes or 0 for remove in removes)
    metrics["numOutputRows"] = written.num_rows
    metrics["numOutputBytes"] = written.size_bytes
    return metrics
