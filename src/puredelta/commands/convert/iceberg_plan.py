"""From an Iceberg table to the content of version 0, with nothing written yet."""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.commands.command import Command
from puredelta.commands.convert.conversion_plan import ConversionPlan, require_counted
from puredelta.commands.convert.iceberg.content import IcebergContent, IcebergFile, IcebergTable
from puredelta.commands.convert.settings import ConvertSettings
from puredelta.commands.definition.new_table import NewTableProperties, plan_new_table
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import PROPERTY_KEYS, ColumnMappingMode
from puredelta.protocol.table.stats import LeafPath, encode_statistics, indexed_leaves
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import REFUSED_BY_CONVERT

_COMMENT = "comment"
_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"


def plan_iceberg(command: Command, table: IcebergTable, *, collect_stats: bool) -> ConversionPlan:
    """Plan the conversion of an Iceberg table. Reads its metadata and all footers."""
    REFUSED_BY_CONVERT.require_defaults(command.session.settings)
    settings = ConvertSettings.parse(command.session.settings)
    collects = collect_stats and settings.collect_stats
    content = table.read()
    wanted = NewTableProperties(
        properties=_properties(table, content),
        description=table.properties.get(_COMMENT),
        max_column_id=content.max_column_id,
    )
    config = plan_new_table(
        command.session.settings, content.schema, content.partition_columns, wanted=wanted
    )
    require_counted(config, collects_stats=collects)
    config.require(Capability.APPEND)
    indexed = frozenset(indexed_leaves(config)) if collects else frozenset()
    adds = (
        _add(file, config, indexed, modified_ms=content.timestamp_ms, has_stats=collects)
        for file in content.files
    )
    return ConversionPlan(
        config=config,
        files=SpooledFiles.of(adds),
        collects_stats=collects,
        listed=(),
        deleted={f.path: f.deleted for f in content.files if f.deleted is not None},
    )


def _properties(table: IcebergTable, content: IcebergContent) -> Mapping[str, str]:
    """Return the properties that a table needs to mean what the Iceberg table means."""
    properties = {PROPERTY_KEYS["column_mapping_mode"]: ColumnMappingMode.ID.value}
    if any(file.deleted is not None for file in content.files):
        properties[PROPERTY_KEYS["enable_deletion_vectors"]] = "true"
    age = table.properties.get(_SNAPSHOT_AGE, "")
    if age.isdigit():
        properties[PROPERTY_KEYS["log_retention"]] = f"interval {age} milliseconds"
    return properties


def _add(
    file: IcebergFile,
    config: TableConfig,
    indexed: frozenset[LeafPath],
    *,
    modified_ms: int,
    has_stats: bool,
) -> Add:
    """Return the action of a file; one with deleted rows says at least how many it has (M-134)."""
    stats = None
    if has_stats or file.deleted is not None:
        stats = encode_statistics(
            {path: leaf for path, leaf in file.leaves.items() if path in indexed},
            num_records=file.num_rows,
            tight_bounds=True if config.supports("deletionVectors") else None,
            string_prefix_length=config.properties.data_skipping_string_prefix_length,
        )
    return Add(
        path=file.path,
        partition_values=file.partition_values,
        size_bytes=file.size_bytes,
        modified_ms=modified_ms,
        data_change=True,
        stats=stats,
    )
