"""A planned write: one Spark job, one commit, and its report.

The job writes files that no version names yet, and the commit adds them to the table. A failure
before the commit removes the files, and the table is unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame

from puredelta.commands.command import Command
from puredelta.commands.compaction import AUTO_COMPACTION
from puredelta.commands.defined_columns import identity_tags
from puredelta.commands.dml.execute import replace_rows
from puredelta.commands.dml.replaced_rows import (
    only_where,
    partition_predicate,
    partitions_of,
    resolve_replaced,
)
from puredelta.commands.dml.spec import ReplaceSpec
from puredelta.commands.file_options import file_options
from puredelta.commands.finish import discarded_on_failure, finish
from puredelta.commands.statement.parts import (
    FileAction,
    FileTotals,
    ReportState,
    RowTotals,
    StageTime,
    first_file_decisions,
)
from puredelta.commands.statement.prepared import running_statement
from puredelta.commands.statement.report import Report
from puredelta.commands.write.complete_rows import checked_rows, complete_rows
from puredelta.commands.write.options import SaveMode, WriteOptions
from puredelta.errors import BROKEN_RULES, DeltaError, InvalidRequestError, Message
from puredelta.log.commit.commit_request import CommitRequest, IfCreated, changed_definition
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add, DomainMetadata, Remove
from puredelta.protocol.actions.operations import STREAMING_UPDATE, Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.stats import without_statistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import STATS_COLLECT
from puredelta.spark.write.writer import JobOptions, write_rows
from puredelta.spark.write.written_files import WriteResult, discard

REPLACED = "its rows are replaced"
NO_FILES = FileTable.of(())


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFacts:
    """The facts about a finished write."""

    operation: str
    """The name in the history: ``WRITE``, ``CREATE TABLE AS SELECT``, ..."""
    table: str
    read_version: int | None
    version: int | None = None
    num_rows: int = 0
    num_files: int = 0
    size_bytes: int = 0
    replaced: FileTable = NO_FILES
    write_seconds: float = 0.0
    commit_seconds: float = 0.0


def written_report(facts: WrittenFacts, *, jobs_run: int | None) -> Report:
    """Return the report of a write of rows; without a version nothing was written."""
    goes = facts.replaced
    decisions = first_file_decisions(goes, FileAction.REMOVE, REPLACED)
    files, rows = facts.num_files, facts.num_rows
    return Report(
        statement=facts.operation,
        table=facts.table,
        state=ReportState.EXECUTED,
        read_version=facts.read_version,
        committed_version=facts.version,
        rows=RowTotals(inserted=rows, deleted=goes.num_records()),
        files=FileTotals(
            added=files,
            added_bytes=facts.size_bytes,
            removed=len(goes),
            removed_bytes=goes.total_size_bytes,
        ),
        decisions=decisions,
        decisions_left_out=len(goes) - len(decisions),
        jobs_run=jobs_run,
        stages=(
            StageTime(
                name="write", seconds=facts.write_seconds, outcome=f"{rows} rows in {files} files"
            ),
            StageTime(
                name="commit",
                seconds=facts.commit_seconds,
                outcome="nothing to commit"
                if facts.version is None
                else f"version {facts.version}",
            ),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """The result of a write."""

    version: int | None
    """The version it made; None if there was nothing to do."""
    num_files: int = 0
    num_rows: int = 0
    size_bytes: int = 0
    num_removed_files: int = 0
    violations: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that broke an expectation, by its name."""
    report: Report | None = field(default=None, repr=False, compare=False)
    """The same report as `puredelta.last_report`; None where there was nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """A checked write; nothing has been changed yet."""

    rows: DataFrame
    command: Command
    config: TableConfig
    """The table after the write, except for high water marks."""
    mode: SaveMode
    options: WriteOptions
    operation: Operation
    """The operation for the history."""
    domains: tuple[DomainMetadata, ...] = ()
    """Domain metadata that this write sets, too."""

    def run(self) -> WriteOutcome:
        """Write the files and commit them, with new high water marks of identity columns."""
        command = self.command
        self.config.require(write_capability(self.mode))
        self._require_same_definition()
        done = command.already_committed()
        outcome = WriteOutcome(version=None) if done else self._replace()
        if outcome.version is None:
            command.settings.reset_set_transaction(command.spark)
        return outcome

    @property
    def overwrites(self) -> bool:
        """Whether the write replaces rows."""
        return self.mode is SaveMode.OVERWRITE

    @property
    def replaces_partitions(self) -> bool:
        """Whether the new rows' partitions are replaced; without partitions, the whole table."""
        partitioned = bool(self.config.partition_columns)
        return self.overwrites and self.options.replaces_partitions and partitioned

    def _require_same_definition(self) -> None:
        """Refuse ``dataChange=false`` of a write that defines the table."""
        existing = self.command.existing
        if self.options.data_change or (existing and existing.config == self.config):
            return
        if existing is None:
            attempted = "Create a Delta table"
        elif self.overwrites:
            attempted = "Overwrite the Delta table schema or change the partition schema"
        else:
            attempted = "Change the Delta table schema"
        raise InvalidRequestError(Message.DATA_CHANGE_FALSE, attempted=attempted)

    def _replace(self) -> WriteOutcome:
        """Find the replaced files, as far as they are known before the new rows."""
        where = self.options.replace_where if self.overwrites else None
        existing, transaction = self.command.existing, self.command.transaction
        by = self.options.replace_by if self.overwrites else None
        if by is not None and existing is not None:
            return self._replace_rows(existing, None)
        if where is not None:
            spark = self.command.spark
            replaced = resolve_replaced(spark, where, self.config, alias=self.options.target_alias)
            if existing is None:
                return self._commit_rows(None, where=where)
            if not replaced.goes_by_file(self.config):
                self.require_data_change(where)
                return self._replace_rows(existing, where)
            files = replaced.files(spark, existing)
            transaction.read_files(replaced.predicate, files)
            return self._commit_rows(files, where=where)
        if existing is None or not self.overwrites or self.replaces_partitions:
            return self._commit_rows(None)
        transaction.read_files(None, existing.files)
        return self._commit_rows(existing.files)

    def _commit_rows(self, replaced: FileTable | None, *, where: str | None = None) -> WriteOutcome:
        """Write and commit the rows, as a statement with a progress line and a report."""
        command = self.command
        root, settings = command.log.root_uri, command.session.settings
        name = self.operation.name
        with running_statement(command.spark, name, root, settings) as running:
            facts = self._committed(replaced, where=where)
            report = running.finish(lambda: written_report(facts, jobs_run=running.jobs_run()))
        return WriteOutcome(
            version=facts.version,
            num_files=facts.num_files,
            num_rows=facts.num_rows,
            size_bytes=facts.size_bytes,
            num_removed_files=len(facts.replaced),
            report=report,
        )

    def _committed(self, replaced: FileTable | None, *, where: str | None) -> WrittenFacts:
        command, config, started = self.command, self.config, time.monotonic()
        store, existing = command.log.store, command.existing
        files = file_options(command.session.settings, config.properties)
        complete = complete_rows(self.rows, config, store=store, settings=command.session.settings)
        if not STATS_COLLECT.flag(command.session.settings):
            config = without_statistics(config)
        try:
            rows = self.checked(complete.rows, where)
            options = JobOptions(files=files, computed=complete.computed)
            written = write_rows(rows, store=store, config=config, options=options)
        finally:
            complete.remove(store)
        wrote = time.monotonic()
        discard_files = partial(discard, written, store)
        with discarded_on_failure(discard_files):
            if self.replaces_partitions and existing is not None:
                replaced = self._replaced_partitions(written, existing)
            removes = _removes(replaced)
            more = {} if where is None else _replaced_metrics(replaced)
            request = self._request(written, removes, complete.config, more)
        facts = WrittenFacts(
            operation=self.operation.name,
            table=store.root_uri,
            read_version=None if existing is None else existing.version,
            write_seconds=wrote - started,
        )
        if not request.actions and command.settings.set_transaction is None:
            return facts
        committed = finish(command, request, discard=discard_files)
        return replace(
            facts,
            version=committed.version,
            num_rows=written.num_rows,
            num_files=len(written.adds),
            size_bytes=written.size_bytes,
            replaced=NO_FILES if replaced is None else replaced,
            commit_seconds=time.monotonic() - wrote,
        )

    def _replaced_partitions(self, written: WriteResult, existing: Snapshot) -> FileTable:
        """Return the files of the new rows' partitions, and record the read of those partitions."""
        adds = written.adds
        if self.options.keeps_null_partitions:
            named = (add for add in adds if all(add.partition_values.values()))
            adds = tuple(named)
        zone = self.command.session.time_zone
        replaced = partitions_of(adds, existing.files, self.config, time_zone=zone)
        predicate = partition_predicate(adds, self.config)
        self.command.transaction.read_files(predicate, replaced)
        return replaced

    def _request(
        self,
        written: WriteResult,
        removes: Sequence[Remove],
        after: TableConfig,
        more_metrics: Mapping[str, int | str],
    ) -> CommitRequest:
        before = None if self.command.existing is None else self.command.existing.config
        files: list[Add | Remove] = [*written.adds, *removes]
        if not self.options.data_change:
            files = [replace(file, data_change=False) for file in files]
        return CommitRequest(
            actions=(*changed_definition(before, after), *self.domains, *files),
            operation=self.operation,
            metrics={**self._metrics(written, removes), **more_metrics},
            is_blind_append=False if self.overwrites else None,
            tags=None if before is None else identity_tags(before, after),
            if_created=IfCreated.APPEND if self.mode is SaveMode.APPEND else IfCreated.FAIL,
        )

    def _metrics(self, written: WriteResult, removes: Sequence[Remove]) -> dict[str, int | str]:
        if self.operation.name == STREAMING_UPDATE:
            return _streamed_metrics(written, removes)
        return _metrics(written, removes, overwrites=self.overwrites)

    def _replace_rows(self, existing: Snapshot, where: str | None) -> WriteOutcome:
        """Replace rows of a condition that splits files, or rows that new ones match."""
        rows, spec = self.replacement(existing, where)
        try:
            outcome, report = replace_rows(self.command, rows, spec)
        except DeltaError as error:
            if spec.by is None or error.code not in BROKEN_RULES:
                raise
            raise InvalidRequestError(
                Message.REPLACE_BY_CONSTRAINT_VIOLATION,
                expression=spec.by.given,
                violation=error.message,
            ) from error
        return WriteOutcome(
            version=outcome.version,
            num_files=outcome.metrics["numFiles"],
            num_rows=outcome.rows.inserted,
            size_bytes=outcome.metrics["numOutputBytes"],
            num_removed_files=outcome.metrics["numRemovedFiles"],
            report=report,
        )

    def require_data_change(self, where: str) -> None:
        """Refuse ``dataChange=false`` where the condition splits files: rows would be deleted."""
        if not self.options.data_change:
            raise InvalidRequestError(Message.REPLACE_WHERE_WITHOUT_DATA_CHANGE, replaceWhere=where)

    def replacement(self, existing: Snapshot, where: str | None) -> tuple[DataFrame, ReplaceSpec]:
        """Return the new rows, checked, and the statement that replaces rows by them."""
        rows = checked_rows(self.rows, self.config, lambda every: self.checked(every, where))
        spec = ReplaceSpec(
            where=where,
            target_alias=self.options.target_alias,
            by=self.options.replace_by if where is None else None,
            columns=tuple(rows.columns),
            evolves=self.config is not existing.config,
            operation=self.operation,
        )
        return rows, spec

    def checked(self, rows: DataFrame, where: str | None) -> DataFrame:
        """Return the rows, guarded by an error where ``replaceWhere`` is not true."""
        if where is None or not self.options.checks_replaced:
            return rows
        return only_where(rows, where, self.config, alias=self.options.target_alias)


def with_write_settings(command: Command, options: WriteOptions) -> Command:
    """Return a command with the settings of a write's options, and auto compaction."""
    settings = {**command.session.settings, **options.file_settings}
    return replace(
        command,
        session=replace(command.session, settings=settings),
        settings=options.settings,
        hooks=(AUTO_COMPACTION,),
    )


def write_capability(mode: SaveMode) -> Capability:
    """Return the kind of access that a write in a mode needs."""
    return Capability.OVERWRITE if mode is SaveMode.OVERWRITE else Capability.APPEND


def _removes(files: FileTable | None) -> list[Remove]:
    return [] if files is None else [*map(remove_file, files.adds())]


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


def _streamed_metrics(written: WriteResult, removes: Sequence[Remove]) -> dict[str, int | str]:
    """Return the metrics of a batch of a stream."""
    return {
        "numAddedFiles": len(written.adds),
        "numRemovedFiles": len(removes),
        "numOutputRows": written.num_rows,
        "numOutputBytes": written.size_bytes,
    }


def _replaced_metrics(replaced: FileTable | None) -> dict[str, int | str]:
    """Return further metrics where the files of a condition are replaced."""
    deleted = 0 if replaced is None else replaced.num_records()
    counted = {} if deleted is None else {"numDeletedRows": deleted}
    return {"numCopiedRows": 0, "numAddedChangeFiles": 0, **counted}
