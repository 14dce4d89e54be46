"""The content of version 0, and the settings of a conversion (S-02)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from puredelta.commands.new_table import DEFAULTS_PREFIX
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.replay import LogState
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session import delta_conf
from puredelta.store.base import StoredFile

_ROW_TRACKING = "rowTracking"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionPlan:
    """The content of version 0."""

    config: TableConfig
    files: SpooledFiles
    """Ordered by path, without duplicates."""
    collects_stats: bool
    listed: tuple[StoredFile, ...]
    """All files found, including those left out for an unreadable footer."""
    deleted: Mapping[str, RowIndexes] = field(default_factory=dict)
    """Positions of deleted rows, by file path."""

    def snapshot(self, log: TableLog) -> Snapshot:
        """Return the future version 0."""
        return Snapshot(
            root_uri=log.root_uri,
            version=0,
            timestamp_ms=0,
            in_commit_timestamp_ms=None,
            config=self.config,
            state=LogState(
                protocol=self.config.protocol,
                metadata=self.config.metadata,
                files=self.files.table(),
            ),
            commit_file=None,
            last_checkpoint_version=None,
            open_at=log.store.at,
        )


def require_counted(config: TableConfig, *, collects_stats: bool) -> None:
    """Refuse properties that need statistics where none are collected.

    Raises:
        InvalidRequestError: rows are to be tracked, and no file has a row count.
    """
    if config.supports(_ROW_TRACKING) and not collects_stats:
        raise InvalidRequestError(
            Message.CONVERT_ROW_TRACKING_WITHOUT_STATS, prefix=DEFAULTS_PREFIX
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetTypes:
    """Spark settings for the types of Parquet columns without Spark's own schema (C-33)."""

    binary_as_string: bool = False
    int96_as_timestamp: bool = True
    infer_timestamp_ntz: bool = True
    nanos_as_long: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertSettings:
    """Session settings at the start of the command; the defaults are Spark's and delta-spark's."""

    parquet: ParquetTypes = ParquetTypes()
    case_sensitive: bool = False
    """``spark.sql.caseSensitive``: names of partition columns and directories (C-35, C-41)."""
    ignore_corrupt_files: bool = False
    """``spark.sql.files.ignoreCorruptFiles``: leave files out whose footer is unreadable
    (C-32)."""
    ignore_cast_failure: bool = False
    """``convert.partitionValues.ignoreCastFailure`` (C-44)."""
    use_metadata_log: bool = True
    """``convert.useMetadataLog``: trust the log of a streaming sink over a listing (C-20)."""
    use_catalog_partitions: bool = True
    """``convert.useCatalogPartitions``: trust the catalog over a listing (C-20)."""
    use_catalog_schema: bool = True
    """``convert.useCatalogSchema``: take the columns from the catalog (C-34)."""
    checks_metadata: bool = True
    """``convert.metadataCheck.enabled`` (C-08)."""
    collect_stats: bool = True
    """``stats.collect`` (C-52)."""

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> ConvertSettings:
        """Parse the settings from text by key; a missing key means the default.

        >>> ConvertSettings.parse({"spark.sql.caseSensitive": "true"}).case_sensitive
        True
        """

        def flag(key: str, default: str) -> bool:
            return settings.get(key, default).strip().lower() == "true"

        return cls(
            parquet=ParquetTypes(
                binary_as_string=flag("spark.sql.parquet.binaryAsString", "false"),
                int96_as_timestamp=flag("spark.sql.parquet.int96AsTimestamp", "true"),
                infer_timestamp_ntz=flag("spark.sql.parquet.inferTimestampNTZ.enabled", "true"),
                nanos_as_long=flag("spark.sql.legacy.parquet.nanosAsLong", "false"),
            ),
            case_sensitive=flag("spark.sql.caseSensitive", "false"),
            ignore_corrupt_files=flag("spark.sql.files.ignoreCorruptFiles", "false"),
            ignore_cast_failure=delta_conf.IGNORE_CAST_FAILURE.flag(settings),
            use_metadata_log=delta_conf.USE_METADATA_LOG.flag(settings),
            use_catalog_partitions=delta_conf.USE_CATALOG_PARTITIONS.flag(settings),
            use_catalog_schema=delta_conf.USE_CATALOG_SCHEMA.flag(settings),
            checks_metadata=delta_conf.CONVERT_METADATA_CHECK.flag(settings),
            collect_stats=delta_conf.STATS_COLLECT.flag(settings),
        )
