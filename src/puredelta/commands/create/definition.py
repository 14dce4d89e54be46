"""Definitions of tables, and the protocol, metadata and domains planned from them.

All errors of a definition are found here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from puredelta.commands.defined_columns import require_valid_columns
from puredelta.commands.new_table import NewTableProperties, plan_new_table
from puredelta.commands.schema_change import require_storable_types
from puredelta.errors import InvalidRequestError, Message
from puredelta.iceberg.entry import require_exporter
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import DomainMetadata
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT, GENERATION_EXPRESSION
from puredelta.protocol.features.properties import FEATURE_PREFIX
from puredelta.protocol.features.property_checks import (
    checked_properties,
    require_sound_properties,
)
from puredelta.protocol.features.protocol_changes import with_features
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.clustering import (
    CLUSTERING,
    ColumnPath,
    clustering_domain,
    resolve_clustering_columns,
)
from puredelta.protocol.table.iceberg_compat import require_iceberg_rules
from puredelta.protocol.table.schema_checks import require_no_duplicates, resolve_partition_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.sql_text import (
    Fault,
    check_expression,
    require_valid_default,
)
from puredelta.spark.session.delta_conf import ALLOW_ARBITRARY_PROPERTIES
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.types import to_spark_type

_CLUSTERING_FEATURE = FEATURE_PREFIX + CLUSTERING
_COMMENT = "comment"
_RESERVED = frozenset(
    {_COMMENT, "external", "is_managed_location", "location", "owner", "provider"}
)
"""Properties reserved by Spark; a table stores only its comment."""

_DEFAULTS_FEATURE = "allowColumnDefaults"
_STAYING = (
    "delta.enableRowTracking",
    "delta.enableDeletionVectors",
    "delta.checkpointPolicy",
)
"""Properties that a replacement keeps unless it sets them."""

_ROW_TRACKING_NAMES = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table definition as stated; nothing is checked yet."""

    columns: StructType
    """As `puredelta.commands.create.columns` makes them."""
    partition_columns: tuple[str, ...] = ()
    clustering_columns: tuple[ColumnPath, ...] | None = None
    """None without a clustering clause."""
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """A checked definition, as the actions of a commit."""

    config: TableConfig
    domains: tuple[DomainMetadata, ...]
    clustering_columns: tuple[ColumnPath, ...]
    own_properties: Mapping[str, str]
    """The statement's own properties, under canonical keys, without defaults."""


def plan_table(
    spark: SparkSession, definition: TableDefinition, *, replaces: Snapshot | None = None
) -> PlannedTable:
    """Plan the table of a definition; runs no job.

    Where a table exists, the plan is that of `plan_replacement`; column ids continue from those
    of the old table.
    """
    columns = definition.columns
    require_no_duplicates(columns)
    require_storable_types(columns)
    partition_columns = resolve_partition_columns(columns, definition.partition_columns)
    _require_one_layout(definition)
    require_valid_columns(columns, partition_columns)
    own = _own_properties(spark, definition.properties)
    _require_defaults_allowed(columns, own)
    _require_valid_defaults(spark, columns)
    require_valid_generation(spark, columns)
    clustered = {} if definition.clustering_columns is None else {_CLUSTERING_FEATURE: "supported"}
    last_id = 0 if replaces is None else replaces.config.properties.column_mapping_max_id
    wanted = NewTableProperties(
        properties={**own, **clustered},
        description=definition.properties.get(_COMMENT, definition.description),
        max_column_id=last_id,
    )
    config = plan_new_table(settings_of(spark), columns, partition_columns, wanted=wanted)
    require_sound_properties(config.properties, config.schema)
    clustering = resolve_clustering_columns(config, definition.clustering_columns or ())
    domains = () if not clustered else (clustering_domain(config, clustering),)
    table = PlannedTable(
        config=config, domains=domains, clustering_columns=clustering, own_properties=own
    )
    return table if replaces is None else plan_replacement(table, replaces)


def plan_replacement(table: PlannedTable, old: Snapshot) -> PlannedTable:
    """Return the planned table as the replacement of an existing one.

    The protocol never loses a feature, tracked rows stay tracked under the same column
    names, deletion vectors and the checkpoint policy stay as they were unless the statement
    sets them, and the end of clustering is recorded.

    Raises:
        InvalidRequestError: a clustered table would become a partitioned one.
    """
    was_clustered = old.config.supports(CLUSTERING)
    if was_clustered and table.config.partition_columns:
        raise InvalidRequestError(Message.CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE)
    protocol = with_features(old.protocol, supported_features(table.config.protocol))
    configuration = {**table.config.metadata.configuration, **_kept(table, old)}
    config = TableConfig.of(protocol, replace(table.config.metadata, configuration=configuration))
    domains = table.domains
    if was_clustered and not domains:
        domains = (clustering_domain(config, ()),)
    require_iceberg_rules(old.config, config)
    return replace(table, config=config, domains=domains)


def _kept(table: PlannedTable, old: Snapshot) -> dict[str, str]:
    before = old.metadata.configuration
    names = {key: before[key] for key in _ROW_TRACKING_NAMES if key in before}
    settings = {
        key: before[key] for key in _STAYING if key in before and key not in table.own_properties
    }
    return {**names, **settings}


def require_valid_generation(spark: SparkSession, columns: StructType) -> None:
    """Check the expressions of generated columns against the columns they may use.

    Raises:
        InvalidRequestError: an expression uses a column that does not exist or is generated
            itself, is not deterministic, has an aggregate, calls a function of a user, or has
            another type than its column.
    """
    plain = StructType(tuple(f for f in columns.fields if GENERATION_EXPRESSION not in f.metadata))
    for column in columns.fields:
        if GENERATION_EXPRESSION not in column.metadata:
            continue
        expression = str(column.metadata[GENERATION_EXPRESSION])
        checked = check_expression(spark, expression, plain)
        if checked.fault is not None:
            raise _invalid_generation(column.name, expression, checked.fault)
        if checked.user_function is not None:
            raise InvalidRequestError(
                Message.UNSUPPORTED_EXPRESSION_GENERATED_COLUMN,
                column=column.name,
                expression=expression,
                function=checked.user_function,
            )
        found, wanted = checked.simple_type, to_spark_type(column.type).simpleString()
        if found != wanted:
            raise InvalidRequestError(
                Message.GENERATED_COLUMNS_EXPR_TYPE_MISMATCH,
                found=found.upper(),
                wanted=wanted.upper(),
                column=column.name,
                expression=expression,
            )


def _invalid_generation(name: str, expression: str, fault: Fault) -> InvalidRequestError:
    match fault:
        case Fault.UNRESOLVED:
            return InvalidRequestError(
                Message.INVALID_GENERATED_COLUMN_REFERENCES, expression=expression, column=name
            )
        case Fault.NON_DETERMINISTIC:
            return InvalidRequestError(
                Message.NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN,
                expression=expression,
                column=name,
            )
        case Fault.AGGREGATE:
            return InvalidRequestError(
                Message.AGGREGATE_IN_GENERATED_COLUMN, expression=expression, column=name
            )


def _own_properties(spark: SparkSession, given: Mapping[str, str]) -> dict[str, str]:
    wanted = {key: value for key, value in given.items() if key not in _RESERVED}
    arbitrary = ALLOW_ARBITRARY_PROPERTIES.flag(spark.conf.getAll)
    own = checked_properties(wanted, allow_arbitrary=arbitrary)
    require_exporter(own, "the new table")
    if _CLUSTERING_FEATURE in own:
        raise InvalidRequestError(
            Message.CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE, clustering=CLUSTERING
        )
    return own


def _require_one_layout(definition: TableDefinition) -> None:
    if definition.clustering_columns and definition.partition_columns:
        raise InvalidRequestError(Message.CLUSTER_BY_WITH_PARTITIONED_BY)


def _require_defaults_allowed(columns: StructType, properties: Mapping[str, str]) -> None:
    names: Sequence[str] = [f.name for f in columns.fields if CURRENT_DEFAULT in f.metadata]
    if names and (FEATURE_PREFIX + _DEFAULTS_FEATURE.lower()) not in properties:
        raise InvalidRequestError(
            Message.WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED_CREATE,
            names=", ".join(names),
            feature_prefix=FEATURE_PREFIX,
            defaults_feature=_DEFAULTS_FEATURE,
            columns=tuple(names),
        )


def _require_valid_defaults(spark: SparkSession, columns: StructType) -> None:
    for column in columns.fields:
        if CURRENT_DEFAULT in column.metadata:
            require_valid_default(
                spark,
                column.name,
                str(column.metadata[CURRENT_DEFAULT]),
                to_spark_type(column.type),
                statement="CREATE TABLE",
            )
