"""CLUSTER BY: other clustering columns for rows to come, or none."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from puredelta.commands.alter.change import commit_change, start_change
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.table_operations import cluster_by
from puredelta.protocol.features.protocol_changes import with_features
from puredelta.protocol.table.clustering import (
    CLUSTERING,
    ColumnPath,
    clustering_columns,
    clustering_domain,
    resolve_clustering_columns,
)
from puredelta.protocol.table.table_config import TableConfig


def cluster_table_by(
    spark: SparkSession, log: TableLog, columns: Sequence[ColumnPath]
) -> int | None:
    """Set the clustering columns, none for CLUSTER BY NONE; return the version made.

    A table that never was clustered stays as it is where there are no columns: None.

    Raises:
        InvalidRequestError: the table is partitioned, or a column cannot cluster it.
        ConflictError: another writer changed the table meanwhile.
    """
    command = start_change(spark, log)
    config = command.snapshot.config
    if config.partition_columns:
        raise InvalidRequestError(
            "ALTER TABLE CLUSTER BY cannot be applied to a partitioned table.",
            code=ErrorCode.ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE,
        )
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
