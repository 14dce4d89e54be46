"""Write a DataFrame into a table: create, append, overwrite, in one commit.

The order of things is the promise: everything that can be refused is refused first, then
one Spark job writes files nobody sees yet, then one commit makes them the table. If
anything fails, the files are removed and the table is what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from puredelta.commands.committing import discarded_on_failure
from puredelta.commands.engine import engine_info
from puredelta.commands.identity_marks import identity_tags
from puredelta.commands.new_table import plan_new_table
from puredelta.commands.optimize.auto import compact_after
from puredelta.commands.overwritten import (
    only_where,
    partition_predicate,
    partitions_of,
    resolve_replaced,
)
from puredelta.commands.replace_where import Replacement, replace_rows
from puredelta.commands.row_changes.run import executed_before
from puredelta.commands.write_columns import complete_rows, require_no_explicit_identity
from puredelta.commands.write_options import SaveMode, WriteOptions
from puredelta.commands.write_schema import (
    SchemaChange,
    config_for_rows,
    require_storable_types,
    resolve_columns,
)
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.clock import wall_clock
from puredelta.log.file_table import FileTable
from puredelta.log.snapshot import Snapshot
from puredelta.log.table_log import TableLog
from puredelta.log.tombstones import remove_file
from puredelta.log.transaction import IfCreated, Transaction
from puredelta.protocol.actions import Action, Remove
from puredelta.protocol.feature_registry import Capability
from puredelta.protocol.operations import Operation, WriteMode, write
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
    its own. An append or overwrite without effect commits nothing, and neither does a write
    that its application (``txnAppId``, ``txnVersion``) has done before. With ``replaceWhere``
    or ``partitionOverwriteMode=dynamic`` an overwrite replaces a part of the table.

    Raises:
        InvalidRequestError: the table is there (TABLE_ALREADY_EXISTS), the rows do not fit
            (SCHEMA_MISMATCH, FAILED_TO_MERGE_FIELDS), break a constraint or do not satisfy
            ``replaceWhere`` (REPLACE_WHERE_MISMATCH), a table must not lose rows
            (CANNOT_MODIFY_APPEND_ONLY), an option is unknown.
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
                overwrite=chosen.change.overwrite
                and mode is SaveMode.OVERWRITE
                and chosen.replace_where is None,
            ),
            case_sensitive=SessionInfo.of(spark).case_sensitive,
        )
    write = _Write(
        rows=rows,
        log=log,
        snapshot=snapshot,
        config=config,
        mode=mode,
        options=chosen,
        partition_by=partition_by,
    )
    return write.run()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A write that is allowed: nothing has been changed yet."""

    rows: DataFrame
    log: TableLog
    snapshot: Snapshot | None
    config: TableConfig
    """The table after the write, but for high water marks."""
    mode: SaveMode
    options: WriteOptions
    partition_by: Sequence[str]

    def run(self) -> WriteOutcome:
        """Write the files and commit them; high water marks of identity columns move."""
        spark = self.rows.sparkSession
        settings = self.options.settings
        capability = Capability.OVERWRITE if self.overwrites else Capability.APPEND
        self.config.require(capability)
        transaction = Transaction(
            self.log, self.snapshot, engine_info=engine_info(spark), capability=capability
        )
        if executed_before(transaction, settings.marker):
            outcome = WriteOutcome(version=None)
        else:
            outcome = self._replace(transaction)
        settings.reset_marker(spark)
        return outcome

    @property
    def overwrites(self) -> bool:
        """Whether anything is replaced."""
        return self.mode is SaveMode.OVERWRITE

    @property
    def replaces_partitions(self) -> bool:
        """Whether the partitions of the new rows are; a table without any is replaced whole."""
        partitioned = bool(self.config.partition_columns)
        return self.overwrites and self.options.replaces_partitions and partitioned

    def _replace(self, transaction: Transaction) -> WriteOutcome:
        """Find out what goes, as far as that is known before the new rows are."""
        where = self.options.replace_where if self.overwrites else None
        snapshot = self.snapshot
        if where is not None:
            replaced = resolve_replaced(self.rows.sparkSession, where, self.config)
            if snapshot is None:
                return self._commit_rows(transaction, None, where=where)
            if not replaced.goes_by_file(self.config):
                return self._replace_rows(transaction, snapshot, where)
            files = replaced.files(self.rows.sparkSession, snapshot)
            transaction.read_files(replaced.predicate, files)
            return self._commit_rows(transaction, files, where=where)
        if snapshot is None or not self.overwrites or self.replaces_partitions:
            return self._commit_rows(transaction, None)
        transaction.read_files(None, snapshot.files)
        return self._commit_rows(transaction, snapshot.files)

    def _commit_rows(
        self, transaction: Transaction, replaced: FileTable | None, *, where: str | None = None
    ) -> WriteOutcome:
        settings, store = self.options.settings, self.log.store
        complete = complete_rows(self.rows, self.config, store=store)
        config = self.config if settings.collects_statistics else without_statistics(self.config)
        try:
            rows = self._checked(complete.rows, where)
            written = write_rows(rows, store=store, config=config)
        finally:
            complete.remove(store)
        with discarded_on_failure(partial(discard, written, store)):
            if self.replaces_partitions and self.snapshot is not None:
                replaced = partitions_of(written.adds, self.snapshot.files, self.config)
                predicate = partition_predicate(written.adds, self.config)
                transaction.read_files(predicate, replaced)
            outcome = self._commit(transaction, written, _removes(replaced), complete.config)
        if outcome.version is not None:
            compact_after(self.rows.sparkSession, self.log, outcome.version, self.config)
        return outcome

    def _commit(
        self,
        transaction: Transaction,
        written: WriteResult,
        removes: Sequence[Remove],
        after: TableConfig,
    ) -> WriteOutcome:
        settings = self.options.settings
        marker = () if settings.marker is None else (settings.marker,)
        actions: list[Action] = [
            *_table_actions(self.snapshot, after),
            *written.adds,
            *removes,
            *marker,
        ]
        if not actions:
            return WriteOutcome(version=None)
        committed = transaction.commit(
            actions,
            self._operation(),
            metrics=_metrics(written, removes, overwrites=self.overwrites)
            if settings.records_metrics
            else None,
            is_blind_append=False if self.overwrites else None,
            user_metadata=settings.user_metadata,
            tags=None if self.snapshot is None else identity_tags(self.snapshot.config, after),
            if_created=IfCreated.APPEND if self.mode is SaveMode.APPEND else IfCreated.FAIL,
        )
        refresh_cached_frames(self.rows.sparkSession, self.log)
        return WriteOutcome(
            version=committed.version,
            num_files=len(written.adds),
            num_rows=written.num_rows,
            size_bytes=written.size_bytes,
            num_removed_files=len(removes),
        )

    def _replace_rows(
        self, transaction: Transaction, snapshot: Snapshot, where: str
    ) -> WriteOutcome:
        """Replace rows of a condition that files do not decide: they are split."""
        replacement = Replacement(
            rows=self._checked(self.rows, where),
            where=where,
            evolves=self.config is not snapshot.config,
            operation=self._operation(),
        )
        outcome = replace_rows(
            replacement,
            log=self.log,
            snapshot=snapshot,
            transaction=transaction,
            settings=self.options.settings,
        )
        return WriteOutcome(
            version=outcome.version,
            num_files=outcome.metrics["numFiles"],
            num_rows=outcome.rows.inserted,
            size_bytes=outcome.metrics["numOutputBytes"],
            num_removed_files=outcome.metrics["numRemovedFiles"],
        )

    def _checked(self, rows: DataFrame, where: str | None) -> DataFrame:
        if where is None or not self.options.checks_replaced:
            return rows
        return only_where(rows, where)

    def _operation(self) -> Operation:
        return write(
            _RECORDED_MODE[self.mode],
            partition_by=self.partition_by,
            replace_where=self.options.replace_where if self.overwrites else None,
            merges_schema=self.options.change.merge,
            overwrites_schema=self.options.change.overwrite,
            overwrites_partitions=self.replaces_partitions,
        )


def _removes(files: FileTable | None) -> list[Remove]:
    now_ms = wall_clock()
    return [] if files is None else [remove_file(a, deleted_ms=now_ms) for a in files.adds()]


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
