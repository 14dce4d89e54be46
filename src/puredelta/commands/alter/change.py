"""Definition changes and their commits; CLUSTER BY and SET LOCATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from puredelta.commands.command import Command, next_command, start_command
from puredelta.commands.finish import finish
from puredelta.errors import InvalidRequestError, Message, TableNotFoundError
from puredelta.log.commit.commit_request import CommitRequest, changed_definition
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, DomainMetadata, Metadata, Protocol
from puredelta.protocol.actions.operations import Operation, cluster_by
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.property_checks import require_sound_properties
from puredelta.protocol.features.protocol_changes import required_protocol, with_features
from puredelta.protocol.schema.schema_json import encode_schema, parse_schema, simple_string
from puredelta.protocol.table.clustering import (
    CLUSTERING,
    ColumnPath,
    clustering_columns,
    clustering_domain,
    resolve_clustering_columns,
)
from puredelta.protocol.table.iceberg_compat import (
    require_iceberg_rules,
    with_nested_ids,
    without_orphaned_format,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import ALTER_LOCATION_BYPASS
from puredelta.spark.session.session import settings_of


def start_change(spark: SparkSession, log: TableLog) -> Command:
    """Read the newest version of a table in order to change it."""
    return start_command(spark, log, Capability.ADMINISTER)


def next_change(command: Command) -> Command:
    """Read the newest version again, for another change by the same statement."""
    return next_command(command, Capability.ADMINISTER)


def commit_change(
    command: Command,
    after: TableConfig,
    *,
    operation: Operation,
    domains: Sequence[DomainMetadata] = (),
    writes_metadata: bool = True,
    tags: Mapping[str, str] | None = None,
) -> int:
    """Commit a changed definition, and return the version made.

    ``writes_metadata``: the commit contains a metadata action even if the metadata is unchanged.
    """
    before = command.snapshot.config
    unchanged = after.metadata == before.metadata
    actions: tuple[Action, ...] = (
        *((after.metadata,) if writes_metadata and unchanged else ()),
        *changed_definition(before, after),
        *domains,
    )
    request = CommitRequest(actions=actions, operation=operation, tags=tags)
    return finish(command, request).version


def changed_config(
    config: TableConfig, metadata: Metadata, *, protocol: Protocol | None = None
) -> TableConfig:
    """Return the table with other metadata or protocol, checked together.

    The protocol is raised where the properties need it.
    """
    schema = parse_schema(metadata.schema_string)
    schema, configuration = with_nested_ids(
        schema, without_orphaned_format(config, metadata.configuration)
    )
    metadata = replace(metadata, configuration=configuration)
    if schema != parse_schema(metadata.schema_string):
        metadata = replace(metadata, schema_string=encode_schema(schema))
    properties = TableProperties.of(configuration)
    raised = required_protocol(protocol or config.protocol, schema, properties)
    changed = TableConfig.of(raised, metadata)
    require_sound_properties(changed.properties, changed.schema, changed.partition_columns)
    require_iceberg_rules(config, changed)
    return changed


def cluster_table_by(
    spark: SparkSession, log: TableLog, columns: Sequence[ColumnPath]
) -> int | None:
    """Set the clustering columns, none for CLUSTER BY NONE; return the version made.

    Returns None, without a commit, for CLUSTER BY NONE on a table that never was clustered.

    Raises:
        InvalidRequestError: the table is partitioned, or a column cannot cluster it.
        ConflictError: another writer changed the table meanwhile.
    """
    command = start_change(spark, log)
    config = command.snapshot.config
    if config.partition_columns:
        raise InvalidRequestError(Message.ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE)
    if not columns and not config.supports(CLUSTERING):
        return None
    new = resolve_clustering_columns(config, columns)
    old = clustering_columns(config, command.snapshot.domain_metadata)
    protocol = with_features(config.protocol, [CLUSTERING])
    return commit_change(
        command,
        TableConfig.of(protocol, config.metadata),
        operation=cluster_by([".".join(p) for p in old], [".".join(p) for p in new]),
        domains=(clustering_domain(config, new),),
        writes_metadata=protocol != config.protocol,
    )


def require_table_at(spark: SparkSession, now: TableLog, wanted: TableLog) -> None:
    """Require a Delta table at the new location, with the columns and partitions of the present.

    If the present location has no table any more, because the table was moved, any table is
    accepted.

    Raises:
        TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
        InvalidRequestError: it has other columns (DELTA_SET_LOCATION_SCHEMA_MISMATCH).
    """
    if not wanted.exists():
        raise TableNotFoundError(Message.MISSING_DELTA_TABLE_NEW_LOCATION, table=wanted.root_uri)
    if ALTER_LOCATION_BYPASS.flag(settings_of(spark)) or not now.exists():
        return
    old, new = now.snapshot().config, wanted.snapshot().config
    same = without_mapping(old.schema) == without_mapping(new.schema)
    if same and old.partition_columns == new.partition_columns:
        return
    raise InvalidRequestError(
        Message.SET_LOCATION_SCHEMA_MISMATCH,
        partition_columns=old.partition_columns,
        partition_columns_shown=new.partition_columns,
        alter_location_bypass_key=ALTER_LOCATION_BYPASS.key,
        original=simple_string(old.schema),
        destination=simple_string(new.schema),
    )
