"""SHOW, DESCRIBE TABLE and DESCRIBE DETAIL of a table.

All values come from the log, even where the catalog lists columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.read_table import utc_time
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.paths import short_uri
from puredelta.protocol.features.feature_registry import WRITER_VERSION_MAX
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.features.properties import FEATURE_PREFIX
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.schema_edit import FieldPath, find_field
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import StructField
from puredelta.protocol.table.clustering import CLUSTERING_DOMAIN, clustering_columns
from puredelta.spark.jvm.catalog import SESSION_CATALOG, CatalogTable, StoredEntry
from puredelta.spark.scan.scan_columns import partition_rows
from puredelta.spark.session.names import display_name
from puredelta.spark.session.types import quoted

_COMMENT = "comment"
_BLANK = ("", "", "")

Row = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTable:
    """A table at one version, with its catalog entry if it has one."""

    snapshot: Snapshot
    location: str
    """As a statement or the catalog spells it."""
    known: CatalogTable | None = None

    @property
    def name(self) -> str:
        """The name in messages."""
        if self.known is None:
            return display_name((SESSION_CATALOG, "delta", self.location))
        return self.known.full_name

    def properties(self) -> dict[str, str]:
        """Return the shown properties by key: configuration, clustering, protocol."""
        metadata, protocol = self.snapshot.metadata, self.snapshot.protocol
        shown = {
            **metadata.configuration,
            "delta.minReaderVersion": str(protocol.min_reader_version),
            "delta.minWriterVersion": str(protocol.min_writer_version),
        }
        if protocol.min_writer_version >= WRITER_VERSION_MAX:
            listed = supported_features(protocol)
            shown |= {FEATURE_PREFIX + name: "supported" for name in listed}
        domains = self.snapshot.domain_metadata
        if CLUSTERING_DOMAIN in domains:  # also without columns, after CLUSTER BY NONE
            clustered = clustering_columns(self.snapshot.config, domains)
            shown["clusteringColumns"] = json.dumps(clustered, separators=(",", ":"))
        return dict(sorted(shown.items()))


def property_rows(spark: SparkSession, table: DescribedTable, key: str | None) -> DataFrame:
    """Return the properties of a table by key, or one of them."""
    shown = table.properties()
    if key is not None:
        missing = f"Table {table.name} does not have property: {key}"
        shown = {key: shown.get(key, missing)}
    return _rows(spark, list(shown.items()), "key", "value")


def column_rows(spark: SparkSession, table: DescribedTable) -> DataFrame:
    """Return the names of a table's columns."""
    return _rows(spark, [(name,) for name in table.snapshot.config.schema.names], "col_name")


def partition_value_rows(
    spark: SparkSession, table: DescribedTable, values: Sequence[tuple[str, str]] = ()
) -> DataFrame:
    """Return the partitions that hold rows, one row of typed values each; reads no data file.

    ``values`` limits them to those where some columns equal constants, which are SQL texts.

    Raises:
        InvalidRequestError: the table has no partitions, or a column is no partition column.
    """
    config = table.snapshot.config
    if not config.partition_columns:
        raise InvalidRequestError(Message.SHOW_PARTITION_IN_NON_PARTITIONED_TABLE, table=table.name)
    if others := [name for name, _ in values if name not in config.partition_columns]:
        raise InvalidRequestError(
            Message.SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN,
            columns=", ".join(others),
            partition_columns=", ".join(config.partition_columns),
        )
    columns = [quoted(name) for name in config.partition_columns]
    rows = partition_rows(spark, table.snapshot.files, config)
    for name, constant in values:
        kind = rows.schema[name].dataType
        # Spark's parser makes a text of each constant of a partition.
        rows = rows.where(rows[quoted(name)] == F.expr(constant).cast("string").cast(kind))
    return rows.select(*columns).distinct().orderBy(*columns)


def describe_rows(spark: SparkSession, table: DescribedTable, *, extended: bool) -> DataFrame:
    """Return columns and partitioning of a table, ``extended`` with everything else."""
    rows = [*map(_column, table.snapshot.config.schema.fields), *_partitioning(table)]
    if extended:
        rows += [*_details(table), *_defaults(table)]
    return _rows(spark, rows, "col_name", "data_type", "comment", required=2)


def describe_column(spark: SparkSession, table: DescribedTable, path: FieldPath) -> DataFrame:
    """Return name, type and comment of one column.

    Raises:
        InvalidRequestError: there is no such column, or it is a nested field.
    """
    if len(path) > 1:
        raise InvalidRequestError(Message.DESC_TABLE_COLUMN_NESTED, column=display_name(path))
    _, field = find_field(table.snapshot.config.schema, path)
    comment = str(field.metadata.get(_COMMENT, "NULL"))
    rows = [("col_name", field.name), ("data_type", _type(field)), ("comment", comment)]
    return _rows(spark, rows, "info_name", "info_value")


def _partitioning(table: DescribedTable) -> Iterator[Row]:
    config = table.snapshot.config
    if config.partition_columns:
        yield "# Partition Information", "", ""
        yield "# col_name", "data_type", "comment"
        yield from map(_column, config.partition_schema.fields)


def _details(table: DescribedTable) -> Iterator[Row]:
    known = table.known
    database, name = ("delta", table.location) if known is None else (known.database, known.name)
    is_managed = known is None or known.is_managed  # a path counts as managed, as in Spark
    lines = {
        "Catalog": SESSION_CATALOG if known is None else known.catalog,
        "Namespace": database,
        "Database": database,
        "Table": name,
        "Type": "MANAGED" if is_managed else "EXTERNAL",
        "Comment": table.snapshot.metadata.description,
        "Location": table.location,
        "Provider": "delta",
        "Owner": None if known is None else known.owner or None,
        "Is_managed_location": "true" if known is not None and is_managed else None,
        "Table Properties": f"[{','.join(f'{k}={v}' for k, v in table.properties().items())}]",
    }
    yield _BLANK
    yield "# Detailed Table Information", "", ""
    for title, value in lines.items():
        if value is not None:
            yield title, value, ""


def _defaults(table: DescribedTable) -> Iterator[Row]:
    having = [f for f in table.snapshot.config.schema.fields if CURRENT_DEFAULT in f.metadata]
    if having:
        yield _BLANK
        yield "# Column Default Values", "", ""
        for field in having:
            yield field.name, _type(field), str(field.metadata[CURRENT_DEFAULT])


def _column(field: StructField) -> Row:
    comment = field.metadata.get(_COMMENT)
    return field.name, _type(field), None if comment is None else str(comment)


def _type(field: StructField) -> str:
    return simple_string(field.type)  # char(n) and varchar(n) as strings, as in delta-spark


def _rows(
    spark: SparkSession,
    rows: Sequence[tuple[str | None, ...]],
    *names: str,
    required: int | None = None,
) -> DataFrame:
    """Return rows of text; the first ``required`` columns, by default all, are never NULL."""
    filled = len(names) if required is None else required
    fields = [T.StructField(name, T.StringType(), n >= filled) for n, name in enumerate(names)]
    return spark.createDataFrame(rows, T.StructType(fields))


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

    ``catalog_name`` is the name that the caller used; without one it is the log's.
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
    """Return the catalog's description of a table of another format, as delta-spark does."""
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
