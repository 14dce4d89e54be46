"""Protocol and metadata of a new table, before anything is written.

Every command that creates a table starts here, so that all agree on the session's default
properties (C-53), on the features that schema and properties need (X-55), and on physical names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from puredelta.log.files.clock import Clock, IdSource, random_id, wall_clock
from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.column_mapping import MAX_COLUMN_ID, assign_columns
from puredelta.protocol.features.properties import (
    FEATURE_PREFIX,
    PROPERTY_KEYS,
    ColumnMappingMode,
    TableProperties,
)
from puredelta.protocol.features.property_checks import require_statistics_columns
from puredelta.protocol.features.protocol_changes import (
    protocol_for_new_table,
    stored_configuration,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.iceberg_compat import (
    require_iceberg_rules,
    with_nested_ids,
    with_required_properties,
)
from puredelta.protocol.table.row_tracking import ROW_TRACKING, column_name_properties
from puredelta.protocol.table.schema_checks import require_valid_schema
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import (
    PROPERTY_DEFAULTS,
    READER_VERSION_DEFAULT,
    REFUSED_BY_DEFINITIONS,
    WRITER_VERSION_DEFAULT,
)

DEFAULTS_PREFIX = PROPERTY_DEFAULTS.key
"""Prefix of session settings that are properties of every table the session creates."""

_PROPERTY_PREFIX = "delta."
_PROTOCOL_ONLY = tuple(
    _PROPERTY_PREFIX + conf.key.removeprefix(DEFAULTS_PREFIX)
    for conf in (READER_VERSION_DEFAULT, WRITER_VERSION_DEFAULT)
)
"""Protocol requests, which are no properties of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTableProperties:
    """Properties and options of a new table, beside its columns."""

    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties that override the session's defaults."""
    name: str | None = None
    description: str | None = None
    max_column_id: int = 0
    """With column mapping on, the ids of columns are above this."""


NOTHING_BUT_COLUMNS = NewTableProperties()


def plan_new_table(
    settings: Mapping[str, str],
    schema: StructType,
    partition_columns: Sequence[str] = (),
    *,
    wanted: NewTableProperties = NOTHING_BUT_COLUMNS,
    clock: Clock = wall_clock,
    new_id: IdSource = random_id,
) -> TableConfig:
    """Return protocol and metadata of a table with this schema (``config.protocol``,
    ``config.metadata``: the two actions of its first commit).

    ``settings`` are the session's. With column mapping on, every field gets a physical name
    and an id. Runs no job and touches no storage.
    """
    REFUSED_BY_DEFINITIONS.require_defaults(settings)
    properties = {**default_properties(settings), **wanted.properties}
    properties = with_required_properties(properties)
    TableProperties.of(properties).validate()
    mode = TableProperties.of(properties).column_mapping_mode
    require_valid_schema(schema, partition_columns, column_mapping=mode)
    schema, properties = _with_column_mapping(schema, properties, wanted.max_column_id)
    properties = _with_row_tracking_columns(properties, new_id)
    metadata = Metadata(
        id=new_id(),
        schema_string=encode_schema(schema),
        partition_columns=tuple(partition_columns),
        configuration=stored_configuration(properties),
        created_ms=clock(),
        name=wanted.name,
        description=wanted.description,
    )
    config = TableConfig.of(protocol_for_new_table(schema, properties), metadata)
    require_iceberg_rules(None, config)
    # The session's defaults are meant for tables of all kinds.
    named = TableProperties.of(wanted.properties)
    require_statistics_columns(named, config.schema, config.partition_columns)
    return config


def default_properties(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the table properties that a session gives to every new table (C-53).

    Settings that name no property are ignored, as in delta-spark.

    >>> default_properties({DEFAULTS_PREFIX + "appendOnly": "true"})
    {'delta.appendOnly': 'true'}
    """
    known = {*PROPERTY_KEYS.values(), *_PROTOCOL_ONLY}
    found = {
        _PROPERTY_PREFIX + key.removeprefix(DEFAULTS_PREFIX): value
        for key, value in settings.items()
        if key.startswith(DEFAULTS_PREFIX)
    }
    return {
        key: value for key, value in found.items() if key in known or key.startswith(FEATURE_PREFIX)
    }


def _with_column_mapping(
    schema: StructType, properties: Mapping[str, str], max_column_id: int
) -> tuple[StructType, dict[str, str]]:
    if TableProperties.of(properties).column_mapping_mode is ColumnMappingMode.NONE:
        return schema, dict(properties)
    mapped, highest = assign_columns(schema, max_column_id=max_column_id)
    return with_nested_ids(mapped, {**properties, MAX_COLUMN_ID: str(highest)})


def _with_row_tracking_columns(properties: Mapping[str, str], new_id: IdSource) -> dict[str, str]:
    """Name the columns that rewritten files keep row ids in (section "Row Tracking")."""
    wanted = TableProperties.of(properties)
    listed = any(name.lower() == ROW_TRACKING.lower() for name in wanted.requested_features)
    if not wanted.enable_row_tracking and not listed:
        return dict(properties)
    return {**properties, **column_name_properties(properties, new_id)}
