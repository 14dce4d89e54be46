"""CREATE TABLE AS SELECT and CREATE TABLE LIKE.

One Spark job writes the rows; one commit adds them together with the definition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from puredelta.catalogs.catalog import MANAGED_FEATURE, TABLE_ID
from puredelta.commands.command import command_on
from puredelta.commands.create.create_table import (
    REPLACING,
    CreateMode,
    Entry,
    create_table,
    describe,
    find_existing,
)
from puredelta.commands.create.definition import PlannedTable, TableDefinition, plan_table
from puredelta.commands.write.options import SaveMode, WriteOptions
from puredelta.commands.write.planned_write import (
    PlannedWrite,
    WriteOutcome,
    with_write_settings,
    write_capability,
)
from puredelta.commands.write.write_table import columns_of
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.actions.operations import replacement_options
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.features.generated_columns import without_high_water_marks
from puredelta.protocol.features.properties import FEATURE_PREFIX
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.table.clustering import CLUSTERING, clustering_columns
from puredelta.spark.catalog.catalog_entries import EntryName
from puredelta.spark.session.names import require_no_helper_names


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows:
    """The first rows of a table, from which it takes its columns, too."""

    rows: DataFrame
    options: Mapping[str, object] = field(default_factory=dict)
    """Of the write; ``delta.*`` options are properties that the definition may overrule."""
    recorded: Mapping[str, object] = field(default_factory=dict)
    """Further values for the history, beside the definition."""


def create_table_as(
    first: FirstRows,
    log: TableLog,
    definition: TableDefinition,
    *,
    mode: CreateMode,
    entry: Entry | None = None,
) -> WriteOutcome:
    """Create or replace the table at ``log`` with a definition and these rows.

    The columns are those of the rows. REPLACE and CREATE OR REPLACE replace the existing table,
    its definition and all of its rows, also for a table given by path.
    """
    rows = first.rows
    require_no_helper_names(rows.columns)
    snapshot = find_existing(log, mode, entry)
    if mode is CreateMode.CREATE_IF_NOT_EXISTS and snapshot is not None:
        return WriteOutcome(version=None)
    if snapshot is not None:
        _require_new_definition(first.options)
    saves = SaveMode.OVERWRITE if mode in REPLACING else SaveMode.ERROR
    command = command_on(rows.sparkSession, log, snapshot, write_capability(saves))
    chosen = WriteOptions.parse(command.session.settings, first.options)
    whole = dataclasses.replace(
        definition,
        columns=columns_of(rows),
        properties={**chosen.properties, **definition.properties},
    )
    table = plan_table(rows.sparkSession, whole, replaces=snapshot)
    planned = PlannedWrite(
        rows=command.bind(rows),
        command=with_write_settings(command, chosen),
        config=table.config,
        mode=saves,
        options=dataclasses.replace(chosen, replace_where=None, replaces_partitions=False),
        operation=describe(table, mode, entry, as_select=True).with_parameters(
            {**first.recorded, **_recorded_options(chosen, mode, table)}
        ),
        domains=table.domains,
    )
    return planned.run()


def _recorded_options(
    options: WriteOptions, mode: CreateMode, table: PlannedTable
) -> Mapping[str, object]:
    """Return the history's record of options that a replacement need not obey."""
    if mode not in REPLACING:
        return {}
    return replacement_options(
        overwrites_schema=options.change.overwrite,
        overwrites_partitions=options.replaces_partitions and bool(table.config.partition_columns),
    )


def _require_new_definition(options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if name.lower() == "overwriteschema" and str(value).lower() == "false":
            raise InvalidRequestError(Message.ILLEGAL_USAGE_OVERWRITE_SCHEMA, option=name)


_OF_THE_SOURCE_ALONE = frozenset(
    {
        "delta.columnMapping.maxColumnId",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.requireCheckpointProtectionBeforeVersion",
        TABLE_ID,
        MANAGED_FEATURE,
    }
)
_TABLE_FEATURES_WRITER = 7


def definition_like(source: Snapshot, properties: Mapping[str, str]) -> TableDefinition:
    """Return the definition of a table like the source; ``properties`` override its properties.

    Columns, partitioning, clustering, properties, comment and protocol are the source's;
    column ids and the counters of identity columns are not.
    """
    config = source.config
    own = {
        key: value
        for key, value in source.metadata.configuration.items()
        if key not in _OF_THE_SOURCE_ALONE
    }
    clustered = clustering_columns(config, source.domain_metadata)
    return TableDefinition(
        columns=without_high_water_marks(without_mapping(config.schema)),
        partition_columns=config.partition_columns,
        clustering_columns=clustered if config.supports(CLUSTERING) else None,
        properties={**_protocol_wishes(source.protocol), **own, **properties},
        description=source.metadata.description,
    )


def _protocol_wishes(protocol: Protocol) -> dict[str, str]:
    """Return the properties that request protocol features, except that of clustering."""
    if protocol.min_writer_version < _TABLE_FEATURES_WRITER:
        return {
            "delta.minReaderVersion": str(protocol.min_reader_version),
            "delta.minWriterVersion": str(protocol.min_writer_version),
        }
    wanted = supported_features(protocol) - {
        CLUSTERING,
        MANAGED_FEATURE.removeprefix(FEATURE_PREFIX),
    }
    return {FEATURE_PREFIX + name: "supported" for name in sorted(wanted)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table to create under a name."""

    name: EntryName
    location: str | None
    """None: the session's directory for the database, or the location of the existing table.

    A relative location is below that of the database.
    """
    definition: TableDefinition
    rows: DataFrame | None = None
    """Its first rows, from which it takes its columns, too."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Of the write of ``rows``."""
    recorded: Mapping[str, object] = field(default_factory=dict)
    """Further values for the history of ``rows``, beside the definition."""


def require_same_location(
    table: NewTable, log: TableLog, *, known: str, stated: str | None
) -> None:
    """Check that a table that is to be replaced stays where it is.

    ``known`` is its location as the catalog spells it, ``stated`` the whole one of the statement.

    Raises:
        InvalidRequestError: the statement names another one (DELTA_TABLE_LOCATION_MISMATCH).
    """
    if stated is not None and not log.is_at(stated):
        raise InvalidRequestError(
            Message.TABLE_LOCATION_MISMATCH,
            name=str(table.name),
            known=known,
            location=table.location,
        )


def define_table_at(
    spark: SparkSession, log: TableLog, table: NewTable, mode: CreateMode, entry: Entry
) -> None:
    """Create or replace the table at a log, with its first rows if it has some."""
    if table.rows is None:
        create_table(spark, log, table.definition, mode=mode, entry=entry)
        return
    first = FirstRows(rows=table.rows, options=table.options, recorded=table.recorded)
    create_table_as(first, log, table.definition, mode=mode, entry=entry)
