"""One change of a table's definition, and the commit that makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from puredelta.commands.command import Command, next_command, start_command
from puredelta.commands.finish import finish
from puredelta.log.commit.commit_request import CommitRequest, changed_definition
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, DomainMetadata, Metadata, Protocol
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.property_checks import require_sound_properties
from puredelta.protocol.features.protocol_changes import required_protocol
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.table.table_config import TableConfig


def start_change(spark: SparkSession, log: TableLog) -> Command:
    """Read the newest version for a change of it.

    Raises:
        TableNotFoundError: there is no table.
        UnsupportedError: it has a feature that this library cannot write.
    """
    return start_command(spark, log, Capability.ADMINISTER)


def next_change(command: Command) -> Command:
    """Read the newest version for another change by the same statement."""
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
    """Commit what a statement makes of a table, and return the version that this makes.

    ``writes_metadata``: the metadata action is part of the commit though it may be as before.

    Raises:
        ConflictError: another writer changed what this change is about.
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

    The protocol rises where the properties need it.

    Raises:
        InvalidRequestError: properties do not agree, or a feature has to be asked for by name
            (FEATURES_REQUIRE_MANUAL_ENABLEMENT).
    """
    properties = TableProperties.of(metadata.configuration)
    schema = parse_schema(metadata.schema_string)
    raised = required_protocol(protocol or config.protocol, schema, properties)
    changed = TableConfig.of(raised, metadata)
    require_sound_properties(changed.properties, changed.schema, changed.partition_columns)
    return changed
