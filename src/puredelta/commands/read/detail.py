"""What a table is, as one row in the columns of DESCRIBE DETAIL."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read.history import utc_time
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.paths import short_uri
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.spark.jvm.entry_format import StoredEntry
from puredelta.spark.jvm.session_catalog import SESSION_CATALOG

_SCHEMA = """
    format STRING, id STRING, name STRING, description STRING, location STRING,
    createdAt TIMESTAMP, lastModified TIMESTAMP, partitionColumns ARRAY<STRING>,
    clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT,
    properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT,
    tableFeatures ARRAY<STRING>
"""


def detail_rows(
    spark: SparkSession, snapshot: Snapshot, *, catalog_name: str | None = None
) -> DataFrame:
    """Return one row that describes the table at this version; reads nothing.

    ``catalog_name`` is the name by which it was found; without one it is the log's.
    """
    metadata, protocol = snapshot.metadata, snapshot.protocol
    created_ms = metadata.created_ms
    row = (
        "delta",
        metadata.id,
        metadata.name if catalog_name is None else catalog_name,
        metadata.description,
        short_uri(snapshot.root_uri),
        None if created_ms is None else utc_time(created_ms),
        utc_time(snapshot.timestamp_ms),
        list(metadata.partition_columns),
        [".".join(path) for path in clustering_columns(snapshot.config, snapshot.domain_metadata)],
        len(snapshot.files),
        snapshot.files.total_size_bytes,
        dict(metadata.configuration),
        protocol.min_reader_version,
        protocol.min_writer_version,
        sorted(snapshot.config.supported_features),
    )
    return spark.createDataFrame([row], _SCHEMA)


def other_detail_rows(spark: SparkSession, entry: StoredEntry) -> DataFrame:
    """Return one row of what the catalog says of a table of another format, as delta-spark."""
    row = (
        entry.provider,
        None,
        f"{SESSION_CATALOG}.{entry.database}.{entry.name}",
        entry.comment or "",
        short_uri(entry.location),
        utc_time(entry.created_ms),
        None,
        list(entry.partition_columns),
        None,
        None,
        None,
        dict(entry.properties),
        None,
        None,
        None,
    )
    return spark.createDataFrame([row], _SCHEMA)
