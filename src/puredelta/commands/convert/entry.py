"""The catalog entry of a converted table, changed after the commit of its log.

Until the entry is changed, the name still reads the Parquet files and the path reads the table.
A second CONVERT completes the change (C-08). The commit records the old entry (decision 0038), so
the conversion can be undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from puredelta.commands.command import command_on
from puredelta.commands.convert.conversion_plan import ConvertSettings
from puredelta.commands.convert.plan import list_files
from puredelta.commands.convert.target import ConversionTarget
from puredelta.commands.finish import finish
from puredelta.errors import (
    CatalogError,
    ConcurrentWriteException,
    DeltaError,
    InvalidRequestError,
    Message,
)
from puredelta.log.commit.commit_request import CommitRequest, changed_definition
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions import operations
from puredelta.protocol.actions.paths import path_below_root
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.protocol_changes import required_protocol, stored_configuration
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.catalog_entries import entry_formats, listed_columns
from puredelta.spark.jvm.catalog import StoredEntry
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.session.delta_conf import CONVERT_METADATA_CHECK
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import to_spark

ENTRY_TAG = "puredelta.convertedEntry"
"""The commit tag that records the old catalog entry."""

_SHOWN = 3


def entry_tags(spark: SparkSession, target: ConversionTarget) -> Mapping[str, str]:
    """Return the commit tags that record the catalog entry before it is changed."""
    entry = target.entry
    if entry is None:
        return {}
    return {ENTRY_TAG: entry_formats(spark).format_text(spark, entry.database, entry.name)}


def require_same_entry(
    spark: SparkSession, target: ConversionTarget, was: Mapping[str, str]
) -> None:
    """Compare the catalog entry with ``was``, right before the commit.

    Raises:
        ConcurrentWriteException: another session has changed it since ``was`` was read.
    """
    if entry_tags(spark, target) != was:
        raise ConcurrentWriteException(
            Message.CONCURRENT_WRITE_CATALOG_ENTRY,
            full_name=target.full_name,
            table=str(target.full_name),
        )


def make_entry_delta(
    spark: SparkSession, entry: StoredEntry, columns: StructType, *, was: str | None = None
) -> None:
    """Change the catalog entry to that of the new Delta table.

    ``was`` is the entry at the start of the conversion.

    Raises:
        CatalogError: the catalog refuses, or another session has changed the entry meanwhile.
    """
    formats = entry_formats(spark)
    try:
        if was is not None and formats.format_text(spark, entry.database, entry.name) != was:
            raise _not_updated(entry, "another session has changed it meanwhile")
        formats.make_delta(spark, entry.database, entry.name, listed_columns(to_spark(columns)))
    except JVM_ERRORS as refused:
        raise _not_updated(entry, str(refused)) from refused


def _not_updated(entry: StoredEntry, reason: str) -> CatalogError:
    name = f"{entry.database}.{entry.name}"
    return CatalogError(
        Message.CATALOG_ENTRY_NOT_UPDATED_CONVERT, reason=reason, name=name, path=entry.location
    )


def adopt_log(
    spark: SparkSession, log: TableLog, target: ConversionTarget, entry: StoredEntry
) -> int | None:
    """Change an entry of Parquet files to that of the existing Delta table (C-08).

    Properties in the catalog that the log lacks are added to the log. Returns the version of that
    commit, None where none was needed.
    """
    session = SessionInfo.of(spark)
    settings = ConvertSettings.parse(session.settings)
    snapshot = log.snapshot()
    _require_no_other_files(spark, log, snapshot, target, settings)
    after = _merged(snapshot.config, target, checks=settings.checks_metadata)
    version = None
    if after != snapshot.config:
        command = command_on(spark, log, snapshot, Capability.ADMINISTER, session=session)
        operation = operations.convert(
            num_files=0,
            partitioned_by=target.stated,
            collect_stats=False,
            catalog_table=target.full_name,
        )
        changes = changed_definition(snapshot.config, after)
        version = finish(command, CommitRequest(actions=changes, operation=operation)).version
    make_entry_delta(spark, entry, after.schema)
    return version


def _merged(before: TableConfig, target: ConversionTarget, *, checks: bool) -> TableConfig:
    kept = before.metadata.configuration
    stated = stored_configuration(target.properties)
    merged = {**kept, **stated}
    if merged == kept:
        return before
    if kept and checks:
        raise _mismatch(kept, stated)
    properties = TableProperties.of(merged)
    properties.validate()
    return TableConfig.of(
        required_protocol(before.protocol, before.schema, properties),
        replace(before.metadata, configuration=merged),
    )


def _mismatch(kept: Mapping[str, str], stated: Mapping[str, str]) -> DeltaError:
    def shown(properties: Mapping[str, str]) -> str:
        return "[" + ", ".join(f"{key}={properties[key]}" for key in sorted(properties)) + "]"

    return InvalidRequestError(
        Message.CONVERT_METASTORE_METADATA_MISMATCH,
        convert_metadata_check_key=CONVERT_METADATA_CHECK.key,
        catalog=shown(stated),
        log=shown(kept),
    )


def _require_no_other_files(
    spark: SparkSession,
    log: TableLog,
    snapshot: Snapshot,
    target: ConversionTarget,
    settings: ConvertSettings,
) -> None:
    """Refuse to lose rows that were written by name between a conversion and its entry.

    Only at version 0 no file has been removed by another version.
    """
    if snapshot.version > 0:
        return
    known = {path_below_root(log.root_uri, add.path) for add in snapshot.files.adds()}
    listed, _ = list_files(spark, log.store, target, settings)
    others = [file.path for file in listed if file.path not in known]
    if others:
        raise _other_files(target, log.root_uri, others)


def _other_files(target: ConversionTarget, root_uri: str, others: Sequence[str]) -> DeltaError:
    shown = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
    return InvalidRequestError(
        Message.OPERATION_NOT_ALLOWED_DETAIL_OTHER_FILES,
        others_count=len(others),
        shown=shown,
        full_name=target.full_name,
        path=root_uri,
        files=tuple(others[:_SHOWN]),
    )
