"""One change of a table's definition, and the commit that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from puredelta.commands.engine import engine_info
from puredelta.log.commit.transaction import Transaction
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, DomainMetadata, Metadata, Protocol
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.features.property_checks import require_sound_properties
from puredelta.protocol.features.protocol_versions import required_protocol
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


def start(spark: SparkSession, log: TableLog) -> tuple[Snapshot, Transaction]:
    """Read the newest version for a change of it.

    Raises:
        TableNotFoundError: there is no table.
        UnsupportedError: it has a feature that this library cannot write.
    """
    snapshot = log.snapshot()
    transaction = Transaction(
        log, snapshot, engine_info=engine_info(spark), capability=Capability.ADMINISTER
    )
    return snapshot, transaction


def finish(transaction: Transaction, snapshot: Snapshot, change: TableChange) -> int:
    """Commit the change and return the version it made.

    Raises:
        ConflictError: somebody else changed what this change is about.
    """
    before, after = snapshot.config, change.config
    actions: list[Action] = []
    if change.writes_metadata or after.metadata != before.metadata:
        actions.append(after.metadata)
    if after.protocol != before.protocol:
        actions.append(after.protocol)
    actions += change.domains
    committed = transaction.commit(actions, change.operation, metrics={}, tags=change.tags)
    return committed.version


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
