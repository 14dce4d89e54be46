"""One change of a table's definition, and the commit that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """What a statement makes of a table."""

    config: TableConfig
    operation: Operation
    domains: tuple[DomainMetadata, ...] = ()
    writes_metadata: bool = True
    """Whether the metadata action is part of the commit though it may be as before."""
    tags: Mapping[str, str] = field(default_factory=dict)


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


def commit_change(command: Command, change: TableChange) -> int:
    """Commit the change and return the version it made.

    Raises:
        ConflictError: another writer changed what this change is about.
    """
    before, after = command.snapshot.config, change.config
    unchanged = after.metadata == before.metadata
    actions: tuple[Action, ...] = (
        *((after.metadata,) if change.writes_metadata and unchanged else ()),
        *changed_definition(before, after),
        *change.domains,
    )
    request = CommitRequest(actions=actions, operation=change.operation, tags=change.tags)
    return finish(command, request).version


def changed_config(
    config: TableConfig,
    *,
    metadata: Metadata | None = None,
    protocol: Protocol | None = None,
) -> TableConfig:
    """Return the table with other metadata or protocol, checked together.

    The protocol rises where the properties need it.

    Raises:
        InvalidRequestError: properties do not agree, or a feature has to be asked for by name
            (FEATURES_REQUIRE_MANUAL_ENABLEMENT).
    """
    metadata = metadata or config.metadata
    properties = TableProperties.of(metadata.configuration)
    schema = parse_schema(metadata.schema_string)
    raised = required_protocol(protocol or config.protocol, schema, properties)
    changed = TableConfig.of(raised, metadata)
    require_sound_properties(changed.properties, changed.schema)
    return changed
