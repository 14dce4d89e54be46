"""CLONE: a new table over the files of another one.

A shallow clone is a first commit that names the source's files by absolute paths. No data is
copied, so a VACUUM of the source deletes files of the clone, too; a running VACUUM delays the
clone. Deep clones, which would copy the files, are refused as delta-spark refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command, command_on
from puredelta.commands.create.create_table import CreateMode
from puredelta.commands.create.registered import managed_entry, require_replaceable
from puredelta.commands.finish import finish
from puredelta.commands.iceberg_files import require_kept_rules
from puredelta.commands.restore import differing_files, ignores_missing, require_present
from puredelta.errors import InvalidRequestError, Message, TableNotFoundError, UnsupportedError
from puredelta.iceberg.entry import require_exporter
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.maintenance.running_vacuums import require_kept
from puredelta.log.managed.table_update import CATALOG_MANAGED, refuse_operation
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
)
from puredelta.protocol.actions.deletion_vector import BY_PATH, vector_path
from puredelta.protocol.actions.operations import clone
from puredelta.protocol.actions.paths import absolute_uri, encode_uri, is_absolute_path
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.property_checks import checked_properties, require_sound_properties
from puredelta.protocol.features.protocol_changes import (
    feature_named,
    required_protocol,
    stored_configuration,
    with_features,
)
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.table.clustering import CLUSTERING_DOMAIN
from puredelta.protocol.table.iceberg_compat import require_iceberg_rules
from puredelta.protocol.table.row_tracking import ROW_TRACKING, column_name_properties
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.catalog_entries import (
    EntryName,
    follow_columns,
    is_taken,
    register_written,
    require_possible,
)
from puredelta.spark.session.delta_conf import ALLOW_ARBITRARY_PROPERTIES, REFUSED_BY_CLONE
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.types import to_spark

_SCHEMA = """
    source_table_size BIGINT, source_num_of_files BIGINT, num_removed_files BIGINT,
    num_copied_files BIGINT, removed_files_size BIGINT, copied_files_size BIGINT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneRequest:
    """The arguments of a clone."""

    shallow: bool
    replace: bool = False
    """Whether an empty table at the target may be replaced by the clone."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties that override the source's."""
    source_name: str | None = None
    """The source's name in the history; None: its path."""


def clone_table(
    spark: SparkSession,
    source: Snapshot,
    target: TableLog,
    request: CloneRequest,
    *,
    new_id: IdSource = random_id,
) -> int:
    """Make ``target`` a clone of a version of a table; return the target's version.

    The clone's rows get new row ids, where rows are tracked.

    Raises:
        UnsupportedError: a deep clone (UNSUPPORTED_DEEP_CLONE).
        InvalidRequestError: the target exists (CREATE_TABLE_WITH_NON_EMPTY_LOCATION), or is to
            be replaced and has rows (UNSUPPORTED_NON_EMPTY_CLONE), a property is invalid, or
            files of the source's version are missing (FILE_NOT_FOUND).
        ConcurrentDeleteReadException: a VACUUM of the source may be deleting files of the version.
    """
    if not request.shallow:
        raise UnsupportedError(Message.UNSUPPORTED_DEEP_CLONE)
    _require_unmanaged(source, target)
    existing = target.find_snapshot()
    _require_free(target, existing, request)
    arbitrary = ALLOW_ARBITRARY_PROPERTIES.flag(spark.conf.getAll)
    overrides = checked_properties(request.properties, allow_arbitrary=arbitrary)
    config = cloned_config(source, existing, overrides, new_id=new_id)
    require_exporter(overrides, target.root_uri)
    if config.iceberg_compat not in (None, source.config.iceberg_compat):
        require_kept_rules(source.files, config, source.open_at(source.root_uri))
    command = command_on(spark, target, existing, Capability.ADMINISTER)
    REFUSED_BY_CLONE.require_defaults(command.session.settings)
    _require_kept(source, command)
    if existing is not None:
        command.transaction.read_files(None, existing.files)
    adds = [
        replace(
            absolute_file(add, source.root_uri),
            data_change=True,
            base_row_id=None,
            default_row_commit_version=None,
        )
        for add in source.files.adds()
    ]
    actions: list[Action] = [config.metadata, config.protocol, *adds]
    if (domain := source.domain_metadata.get(CLUSTERING_DOMAIN)) is not None:
        actions.append(domain)
    commit = CommitRequest(
        actions=actions,
        operation=clone(
            source=request.source_name or f"delta.`{source.root_uri}`",
            source_version=source.version,
        ),
        metrics=_metrics(source),
        always_records_metrics=True,
        is_blind_append=False,
    )
    return finish(command, commit).version


def clone_row(spark: SparkSession, source: Snapshot | None) -> DataFrame:
    """Return the counts of a CLONE as delta-spark's one row; None: no row."""
    rows = [] if source is None else [tuple(_metrics(source).values())]
    return spark.createDataFrame(rows, _SCHEMA)


def require_absolute(target: str) -> None:
    """Refuse a relative target, since its base differs between readers (INVALID_CLONE_PATH).

    Raises:
        InvalidRequestError: the path is relative.
    """
    if not is_absolute_path(target):
        raise InvalidRequestError(Message.INVALID_CLONE_PATH, path=target)


def cloned_config(
    source: Snapshot,
    existing: Snapshot | None,
    overrides: Mapping[str, str],
    *,
    new_id: IdSource = random_id,
) -> TableConfig:
    """Return protocol and metadata of a clone: the source's, with overriding properties.

    Raises:
        InvalidRequestError: the mapping mode would change
            (UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE), or properties do not agree.
    """
    configuration = {**source.metadata.configuration, **stored_configuration(overrides)}
    protocol = _protocol(source, existing, overrides, configuration)
    if ROW_TRACKING in supported_features(protocol):
        known = {} if existing is None else existing.metadata.configuration
        configuration |= column_name_properties(known, new_id)
    metadata = _metadata(source, existing, configuration, new_id)
    config = TableConfig.of(protocol, metadata)
    for other in (source, existing):
        if other is not None and other.config.column_mapping is not config.column_mapping:
            raise InvalidRequestError(
                Message.UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE_CLONE,
                current=other.config.column_mapping.value,
                wanted=config.column_mapping.value,
            )
    require_sound_properties(config.properties, config.schema, config.partition_columns)
    require_iceberg_rules(source.config, config)
    return config


def _metadata(
    source: Snapshot, existing: Snapshot | None, configuration: dict[str, str], new_id: IdSource
) -> Metadata:
    own = None if existing is None else existing.metadata
    return replace(
        source.metadata,
        id=new_id() if own is None else own.id,
        name=None if own is None else own.name,
        description=None if own is None else own.description,
        configuration=configuration,
    )


def _protocol(
    source: Snapshot,
    existing: Snapshot | None,
    overrides: Mapping[str, str],
    configuration: Mapping[str, str],
) -> Protocol:
    asked = TableProperties.of(overrides).requested_features
    protocol = with_features(source.protocol, map(feature_named, asked))
    protocol = required_protocol(protocol, source.config.schema, TableProperties.of(configuration))
    if existing is None:
        return protocol
    return with_features(existing.protocol, supported_features(protocol))


def _require_kept(source: Snapshot, command: Command) -> None:
    """Refuse an old source version whose files are missing, or may be deleted during the check."""
    log = TableLog(source.open_at(source.root_uri))
    latest = log.snapshot()
    older, _ = differing_files(source.files, latest.files)
    require_kept(log.store, latest, older, now_ms=command.clock())
    if not ignores_missing(command.session.settings):
        require_present(older, source, purpose="cloning")


def _require_unmanaged(source: Snapshot, target: TableLog) -> None:
    target.require_unmanaged("SHALLOW CLONE")
    if source.config.supports(CATALOG_MANAGED):
        raise refuse_operation("SHALLOW CLONE", source.root_uri)


def _require_free(target: TableLog, existing: Snapshot | None, request: CloneRequest) -> None:
    if existing is None or not request.replace:
        if next(iter(target.store.walk("")), None) is None:
            return
        raise InvalidRequestError(
            Message.CREATE_TABLE_WITH_NON_EMPTY_LOCATION_CLONE,
            table=target.root_uri.removeprefix("file:"),
            path=target.root_uri,
        )
    if len(existing.files):
        raise InvalidRequestError(Message.UNSUPPORTED_NON_EMPTY_CLONE, path=target.root_uri)


def _metrics(source: Snapshot) -> dict[str, int]:
    return {
        "sourceTableSize": source.files.total_size_bytes,
        "sourceNumOfFiles": len(source.files),
        "numRemovedFiles": 0,
        "numCopiedFiles": 0,
        "removedFilesSize": 0,
        "copiedFilesSize": 0,
    }


def absolute_file(add: Add, root_uri: str) -> Add:
    """Return a file of the table at ``root_uri`` with absolute paths, also of its vector."""
    return replace(
        add,
        path=encode_uri(absolute_uri(root_uri, add.path)),
        deletion_vector=None
        if add.deletion_vector is None
        else _absolute_vector(add.deletion_vector, root_uri),
    )


def _absolute_vector(vector: DeletionVectorDescriptor, root_uri: str) -> DeletionVectorDescriptor:
    path = vector_path(vector)
    if path is None:
        return vector
    uri = encode_uri(absolute_uri(root_uri, path))
    return replace(vector, storage_type=BY_PATH, path_or_inline=uri)


def clone_registered(
    spark: SparkSession,
    source: Snapshot,
    name: EntryName,
    request: CloneRequest,
    *,
    mode: CreateMode,
    location: str | None = None,
) -> bool:
    """Clone into a table of the catalog; return False where it exists and may stay as it is.

    Without a location the catalog owns the directory.

    Raises:
        InvalidRequestError: the name is taken (TABLE_NAME_ALREADY_EXISTS), also by another
            format (NOT_A_DELTA_TABLE), or an error of `clone_table`.
        TableNotFoundError: there is no table to replace (CANNOT_REPLACE_MISSING_TABLE), or no
            such database.
        CatalogError: the clone at the location is made, and the catalog refuses its entry.
    """
    if location is not None:
        require_absolute(location)
    if is_taken(spark, name):
        if mode is CreateMode.CREATE:
            raise InvalidRequestError(
                Message.TABLE_NAME_ALREADY_EXISTS, name_shown=name, name=str(name)
            )
        if mode is not CreateMode.CREATE_IF_NOT_EXISTS:
            known = require_replaceable(spark, name)
            clone_table(spark, source, open_log(spark, known.location), request)
            follow_columns(spark, name, to_spark(source.config.schema))
        return mode is not CreateMode.CREATE_IF_NOT_EXISTS
    if mode is CreateMode.REPLACE:
        raise nothing_to_replace(str(name))
    require_possible(spark, name)
    schema = to_spark(source.config.schema)
    if location is not None:
        log = open_log(spark, location)
        clone_table(spark, source, log, request)
        register_written(spark, name, schema, location=log.root_uri)
        return True
    with managed_entry(spark, name, schema) as log:
        clone_table(spark, source, log, request)
    return True


def nothing_to_replace(name: str) -> TableNotFoundError:
    """Return the error for REPLACE TABLE where no table is."""
    return TableNotFoundError(Message.CANNOT_REPLACE_MISSING_TABLE, table=name)
