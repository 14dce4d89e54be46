"""SET and UNSET TBLPROPERTIES, with the features, column mapping and row ids that they require.

Row tracking first raises the protocol, so that every other writer assigns ids to its files from
then on. Then the files without ids are committed again, and the transaction assigns their ids.

The protocol is also raised here: by its versions, or by the name of a feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.alter.change import changed_config, commit_change, next_change, start_change
from puredelta.commands.alter.remove_features import MAPPING_MODE, remove_column_mapping
from puredelta.commands.command import Command, next_command, start_command
from puredelta.commands.compaction import Optimization, OptimizeSettings
from puredelta.commands.finish import finish
from puredelta.commands.iceberg_files import require_kept_rules, violating_files
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.iceberg.entry import require_exporter
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.maintenance.compaction_plan import plan_rewrite
from puredelta.log.managed.table_update import TIMESTAMP_PROPERTIES
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import action_object
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.actions.operations import (
    Operation,
    upgrade_protocol,
    upgrade_uniform_properties,
)
from puredelta.protocol.actions.operations import set_properties as set_operation
from puredelta.protocol.actions.operations import unset_properties as unset_operation
from puredelta.protocol.features.column_mapping import MAX_COLUMN_ID, map_existing_columns
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    ColumnMappingMode,
    TableProperties,
)
from puredelta.protocol.features.property_checks import (
    PROTOCOL_VERSION_KEYS,
    canonical_key,
    checked_properties,
)
from puredelta.protocol.features.protocol_changes import (
    feature_named,
    stored_configuration,
    upgraded,
    with_features,
)
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.table.clustering import CLUSTERING
from puredelta.protocol.table.iceberg_compat import (
    ENABLED_FORMATS,
    ICEBERG,
    VERSION_MAX,
    upgraded_properties,
)
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.row_tracking import ROW_TRACKING, column_name_properties
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import ALLOW_ARBITRARY_PROPERTIES, REFUSED_BY_ROW_TRACKING

FILES_PER_COMMIT_MAX = 100_000


def give_row_ids(command: Command) -> None:
    """Raise the protocol to row tracking and assign row ids to every file, in separate commits.

    Raises:
        InvalidRequestError: a file has no row count (ROW_ID_ASSIGNMENT_WITHOUT_STATS), or the
            assignment of ids is suspended.
        ConflictError: another writer changed the table meanwhile.
    """
    snapshot = command.snapshot
    REFUSED_BY_ROW_TRACKING.require_defaults(command.session.settings)
    if snapshot.config.properties.row_tracking_suspended:
        raise InvalidRequestError(Message.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION_SUSPENDED)
    if not snapshot.config.supports(ROW_TRACKING):
        protocol = with_features(snapshot.protocol, [ROW_TRACKING])
        commit_change(
            command,
            TableConfig.of(protocol, snapshot.metadata),
            operation=upgrade_protocol(action_object(protocol)[1]),
            writes_metadata=False,
        )
    batch = 0
    while _give_some(next_change(command), batch):
        batch += 1


def _give_some(command: Command, batch: int) -> bool:
    """Assign row ids to one batch of files in one commit; return False if none was left."""
    snapshot = command.snapshot
    without = snapshot.files.select(pc.is_null(snapshot.files.rows["base_row_id"]))
    if not len(without):
        return False
    adds = [replace(add, data_change=False) for add in islice(without.adds(), FILES_PER_COMMIT_MAX)]
    command.transaction.read_files(None, without)
    operation = Operation(name="ROW TRACKING BACKFILL", parameters={"batchId": str(batch)})
    finish(command, CommitRequest(actions=adds, operation=operation, is_blind_append=False))
    return True


COMMENT = "comment"

_ENABLE_ROW_TRACKING = "delta.enableRowTracking"
_ONLY_ROW_TRACKING_TAG = "rowTrackingEnablementOnly"


def set_table_properties(
    spark: SparkSession,
    log: TableLog,
    properties: Mapping[str, str],
    *,
    operation: Operation | None = None,
) -> int:
    """Set properties of a table; return the version made.

    ``comment`` is the table's description, ``delta.feature.<name>`` and the version keys
    change the protocol alone. Row tracking, switched on, first assigns ids to all existing rows;
    the mapping mode ``none`` first rewrites all files; both in commits before. ``operation`` is
    the name in the history, SET TBLPROPERTIES if none is given.
    """
    command = start_change(spark, log)
    arbitrary = ALLOW_ARBITRARY_PROPERTIES.flag(command.session.settings)
    wanted = checked_settings(properties, allow_arbitrary=arbitrary)
    _require_free(log, wanted)
    if ENABLED_FORMATS in wanted:
        _ = with_settings(command.snapshot.config, wanted)  # the rules come first
        require_exporter(wanted, command.log.root_uri)
    if _is_off(wanted.get(MAPPING_MODE)) and _is_mapped(command):
        version = _unmapped(command, wanted, keeps_property=True)
        if len(wanted) == 1:
            return version
        command = next_change(command)
    if wanted.get(_ENABLE_ROW_TRACKING, "").lower() == "true":
        _ = with_settings(command.snapshot.config, wanted)  # refused before anything is written
        give_row_ids(command)
        command = next_change(command)
    tags = {}
    if list(wanted) == [_ENABLE_ROW_TRACKING] and wanted[_ENABLE_ROW_TRACKING].lower() == "true":
        tags[_ONLY_ROW_TRACKING_TAG] = "true"
    after = with_settings(command.snapshot.config, wanted)
    if after.iceberg_compat not in (None, command.snapshot.config.iceberg_compat):
        require_kept_rules(command.snapshot.files, after, command.log.store)
    return commit_change(command, after, operation=operation or set_operation(wanted), tags=tags)


def upgrade_uniform(spark: SparkSession, log: TableLog, version: int) -> DataFrame:
    """Let a table keep the rules of a version of IcebergCompat; return the row of an OPTIMIZE.

    One commit sets the properties, Iceberg metadata among them, and replaces the files that do not
    keep the rules. Nothing is committed where all of it is so already.

    Raises:
        UnsupportedError: there is no such version, the table cannot keep its rules
            (DELTA_ICEBERG_COMPAT_VIOLATION), or pyiceberg is missing.
        ConflictError: another writer changed the table meanwhile.
    """
    if not 1 <= version <= VERSION_MAX:
        raise UnsupportedError(
            Message.ICEBERG_COMPAT_VERSION_NOT_SUPPORTED, version=version, maxVersion=VERSION_MAX
        )
    log.require_unmanaged("REORG")
    command = start_command(spark, log, Capability.MERGE)
    before = command.snapshot.config
    wanted = {**upgraded_properties(before, version), ENABLED_FORMATS: ICEBERG}
    require_exporter(wanted, log.root_uri)
    after = with_settings(before, wanted)
    files = command.snapshot.files
    settings = OptimizeSettings.parse(command.session.settings)
    partitioning = Partitioning.of(before, command.session.time_zone)
    old = [add for add, _ in violating_files(files, after, command.log.store)]
    return (
        Optimization(
            command=command,
            bins=plan_rewrite(old, settings.limits, partitioning),
            operation=upgrade_uniform_properties(wanted),
            num_considered=len(files),
            definition=None if after.metadata == before.metadata and not old else after,
        )
        .run()
        .row(spark)
    )


def unset_table_properties(
    spark: SparkSession, log: TableLog, keys: Sequence[str], *, if_exists: bool = True
) -> int:
    """Unset properties of a table; return the version made.

    Raises:
        InvalidRequestError: one is not set and ``if_exists`` is false
            (UNSET_NON_EXISTENT_PROPERTY), or column mapping would be removed and a name needs it
            (INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING).
        ConflictError: another writer changed the table meanwhile.
    """
    command = start_change(spark, log)
    snapshot = command.snapshot
    names = [canonical_key(key) for key in keys]
    before = snapshot.metadata.configuration
    missing = [name for name in names if name not in before and name != COMMENT]
    if missing and not if_exists:
        raise InvalidRequestError(
            Message.UNSET_NON_EXISTENT_PROPERTY, root_uri=snapshot.root_uri, property=missing[0]
        )
    _require_free(log, names)
    if MAPPING_MODE in names and _is_mapped(command):
        version = _unmapped(command, {}, keeps_property=False)
        if len(names) == 1:
            return version
        command = next_change(command)
        snapshot = command.snapshot
        before = snapshot.metadata.configuration
    rest = {key: value for key, value in before.items() if key not in names}
    _require_mapping_change(snapshot.config.column_mapping, TableProperties.of(rest))
    metadata = replace(
        snapshot.metadata,
        configuration=rest,
        description=None if COMMENT in names else snapshot.metadata.description,
    )
    after = changed_config(snapshot.config, metadata)
    return commit_change(command, after, operation=unset_operation(names, if_exists=True))


def _require_free(log: TableLog, keys: Iterable[str]) -> None:
    """Refuse changes of the properties by which a catalog orders its commits, as delta-spark."""
    if log.managed is not None and not TIMESTAMP_PROPERTIES.isdisjoint(keys):
        raise InvalidRequestError(Message.CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES)


def _is_off(mode: str | None) -> bool:
    return mode is not None and mode.lower() == ColumnMappingMode.NONE.value


def _is_mapped(command: Command) -> bool:
    return command.snapshot.config.column_mapping is not ColumnMappingMode.NONE


def _unmapped(command: Command, others: Mapping[str, str], *, keeps_property: bool) -> int:
    """Remove column mapping from a table, in a commit before that of the other properties."""
    rest = {key: value for key, value in others.items() if key != MAPPING_MODE}
    _ = with_settings(command.snapshot.config, rest)  # refused before anything is written
    following = next_command(command, Capability.MERGE)
    return remove_column_mapping(following, keeps_property=keeps_property)


def upgrade_protocol_versions(
    spark: SparkSession, log: TableLog, *, reader: int, writer: int
) -> int:
    """Support all features of a pair of protocol versions; return the version made.

    Nothing is removed: versions lower than the table's change nothing.
    """
    versions = dict(zip(PROTOCOL_VERSION_KEYS, (str(reader), str(writer)), strict=True))
    return set_table_properties(spark, log, versions)


def add_feature_support(spark: SparkSession, log: TableLog, name: str) -> int:
    """Make the table support a feature, named in any case; return the version made."""
    asked = {FEATURE_PREFIX + name: "supported"}
    return set_table_properties(spark, log, asked, operation=set_operation(asked))


def checked_settings(properties: Mapping[str, str], *, allow_arbitrary: bool) -> dict[str, str]:
    """Return properties under canonical keys, and refuse those that SET cannot set.

    Raises:
        InvalidRequestError: as `checked_properties`; a constraint (ADD_CONSTRAINTS), the
            location or the provider of the table, or the feature clustering.
    """
    for key in properties:
        if key.lower().startswith(CONSTRAINT_PREFIX):
            raise InvalidRequestError(Message.ADD_CONSTRAINTS, property=key)
        if key == "location":
            raise InvalidRequestError(Message.CANNOT_CHANGE_LOCATION)
        if key == "provider":
            raise InvalidRequestError(Message.CANNOT_CHANGE_PROVIDER)
    wanted = checked_properties(properties, allow_arbitrary=allow_arbitrary)
    if FEATURE_PREFIX + CLUSTERING in wanted:
        raise InvalidRequestError(
            Message.ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE, clustering=CLUSTERING
        )
    return wanted


def with_settings(
    config: TableConfig, wanted: Mapping[str, str], *, new_id: IdSource = random_id
) -> TableConfig:
    """Return the table with properties of `checked_settings` set."""
    stored = {k: v for k, v in stored_configuration(wanted).items() if k != COMMENT}
    metadata = replace(
        config.metadata,
        configuration={**config.metadata.configuration, **stored},
        description=wanted.get(COMMENT, config.metadata.description),
    )
    protocol = _asked_protocol(config.protocol, wanted)
    metadata = _with_mapping(config, metadata)
    tracked = ROW_TRACKING in supported_features(protocol) or (
        TableProperties.of(metadata.configuration).enable_row_tracking
    )
    if tracked:
        named = column_name_properties(metadata.configuration, new_id)
        metadata = replace(metadata, configuration={**metadata.configuration, **named})
    return changed_config(config, metadata, protocol=protocol)


def _asked_protocol(protocol: Protocol, wanted: Mapping[str, str]) -> Protocol:
    reader_key, writer_key = PROTOCOL_VERSION_KEYS
    if reader_key in wanted or writer_key in wanted:
        protocol = upgraded(
            protocol,
            reader=int(wanted.get(reader_key, protocol.min_reader_version)),
            writer=int(wanted.get(writer_key, protocol.min_writer_version)),
        )
    asked = TableProperties.of(wanted).requested_features
    return with_features(protocol, [feature_named(name) for name in asked])


def _with_mapping(config: TableConfig, metadata: Metadata) -> Metadata:
    """Map existing columns to their own names, where mapping is switched on."""
    wanted = TableProperties.of(metadata.configuration)
    _require_mapping_change(config.column_mapping, wanted)
    if wanted.column_mapping_mode is config.column_mapping:
        return metadata
    schema, highest = map_existing_columns(config.schema)
    return replace(
        metadata,
        schema_string=encode_schema(schema),
        configuration={**metadata.configuration, MAX_COLUMN_ID: str(highest)},
    )


def _require_mapping_change(before: ColumnMappingMode, after: TableProperties) -> None:
    """Allow only ``none`` to ``name``, which rewrites no file; `_unmapped` handles ``none``."""
    wanted = after.column_mapping_mode
    allowed = wanted is before or (
        before is ColumnMappingMode.NONE and wanted is ColumnMappingMode.NAME
    )
    if not allowed:
        raise InvalidRequestError(
            Message.UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE_PROPERTY,
            old_mode=before.value,
            new_mode=wanted.value,
        )
