"""From a directory to the content of version 0: what will be committed, nothing written yet."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from puredelta.commands.command import Command
from puredelta.commands.convert.collect import (
    DescribeStatistics,
    ReadFile,
    distinct_schemas,
    read_files,
)
from puredelta.commands.convert.infer import FileSchemas, with_partition_columns
from puredelta.commands.convert.parquet_dir import list_data_files, require_files
from puredelta.commands.convert.partitions import (
    PartitionRules,
    PartitionValues,
    read_partitions,
    require_partition_columns,
)
from puredelta.commands.convert.settings import ConvertSettings
from puredelta.commands.convert.with_spark import cast_texts, read_parquet_schema
from puredelta.commands.definition.new_table import DEFAULTS_PREFIX, plan_new_table
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import encode_path
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store, StoredFile

logger = logging.getLogger(__name__)

_MAPPING_SETTING = f"{DEFAULTS_PREFIX}columnMapping.mode"
_ROW_TRACKING = "rowTracking"

_ROW_TRACKING_WITHOUT_STATS = f"""\
Cannot enable row tracking without collecting statistics.
If you want to enable row tracking, do the following:
  1. Enable statistics collection: set spark.databricks.delta.stats.collect to true.
  2. Convert with collect_stats=True.

If you do not want to collect statistics, disable row tracking:
  1. Unset {DEFAULTS_PREFIX}feature.rowTracking.
  2. Unset {DEFAULTS_PREFIX}enableRowTracking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionPlan:
    """The content of version 0."""

    config: TableConfig
    adds: tuple[Add, ...]
    """Ordered by path, each file once."""
    collects_stats: bool


def plan_conversion(
    command: Command, partitions: StructType, *, collect_stats: bool
) -> ConversionPlan:
    """Plan the conversion of a directory. Reads names and footers, writes nothing."""
    settings = ConvertSettings.parse(command.session.settings)
    if collect_stats and not settings.collect_stats:
        logger.warning("collect_stats is set, but spark.databricks.delta.stats.collect is false")
    planner = _Planner(
        command=command,
        partitions=partitions,
        settings=settings,
        collects_stats=collect_stats and settings.collect_stats,
        schemas=FileSchemas(settings.parquet, partial(read_parquet_schema, command.spark)),
    )
    return planner.plan()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """One conversion to plan."""

    command: Command
    partitions: StructType
    settings: ConvertSettings
    collects_stats: bool
    schemas: FileSchemas

    @property
    def store(self) -> Store:
        """Where the directory is."""
        return self.command.log.store

    def plan(self) -> ConversionPlan:
        """Find the files, their partition values, the schema and the statistics.

        Cheap checks come first: partition values before any footer is opened. Files without
        rows are part of the table like all others, with ``numRecords`` 0, so that the count
        of files is the same everywhere and does not depend on statistics (C-25, W-23).
        """
        require_partition_columns(self.partitions)
        files = list_data_files(self.store, use_metadata_log=self.settings.use_metadata_log)
        values = self._partition_values(files)
        read, config = self._read(files)
        adds = tuple(_add(file, values) for file in read)
        return ConversionPlan(config=config, adds=adds, collects_stats=self.collects_stats)

    def _partition_values(self, files: Sequence[StoredFile]) -> Mapping[str, PartitionValues]:
        rules = PartitionRules(
            columns=self.partitions.fields,
            cast=partial(cast_texts, self.command.spark),
            case_sensitive=self.settings.case_sensitive,
            ignore_cast_failure=self.settings.ignore_cast_failure,
        )
        return read_partitions((f.path for f in files), self.store.root_uri, rules)

    def _read(self, files: Sequence[StoredFile]) -> tuple[Sequence[ReadFile], TableConfig]:
        """Read all footers; again only if they show another schema than the guess."""
        guess = self._guess_schema(files)
        read = self._read_footers(files, guess)
        schema = self._schema_of(read)
        if self.collects_stats and schema != guess:
            read = self._read_footers([r.file for r in read], schema)
        return read, self._config(schema)

    def _guess_schema(self, files: Sequence[StoredFile]) -> StructType | None:
        """Return the schema of the first and the last file, if statistics need one."""
        if not self.collects_stats:
            return None
        ends = files if len(files) == 1 else (files[0], files[-1])
        read = self._read_footers(ends, None)
        return self._schema_of(read) if read else None

    def _read_footers(
        self, files: Sequence[StoredFile], schema: StructType | None
    ) -> Sequence[ReadFile]:
        return read_files(
            self.store,
            files,
            (lambda *_: None) if schema is None else _statistics_of(self._config(schema)),
            ignore_corrupt=self.settings.ignore_corrupt_files,
        )

    def _schema_of(self, read: Sequence[ReadFile]) -> StructType:
        require_files(self.store, [r.file for r in read])
        data = self.schemas.merge(distinct_schemas(self.store, read))
        return with_partition_columns(
            data, self.partitions.fields, case_sensitive=self.settings.case_sensitive
        )

    def _config(self, schema: StructType) -> TableConfig:
        config = plan_new_table(self.command.session.settings, schema, self.partitions.names)
        _require_convertible(config, collects_stats=self.collects_stats)
        return config


def _add(read: ReadFile, values: Mapping[str, PartitionValues]) -> Add:
    return Add(
        path=encode_path(read.file.path),
        partition_values=values[read.file.directory],
        size_bytes=read.file.size_bytes,
        modified_ms=read.file.modified_ms,
        data_change=True,
        stats=read.stats,
    )


def _statistics_of(config: TableConfig) -> DescribeStatistics:
    statistics = TableStatistics(config)
    return lambda footer, message: statistics.encode(footer, message=message)


def _require_convertible(config: TableConfig, *, collects_stats: bool) -> None:
    """Refuse default properties that existing files cannot live up to (E-02)."""
    if config.column_mapping is not ColumnMappingMode.NONE:
        mode = config.column_mapping.value
        raise InvalidRequestError(
            f"The configuration '{_MAPPING_SETTING}' cannot be set to `{mode}` when using CONVERT "
            "TO DELTA.",
            code=ErrorCode.CONVERSION_UNSUPPORTED_COLUMN_MAPPING,
            config=_MAPPING_SETTING,
            mode=mode,
        )
    if config.supports(_ROW_TRACKING) and not collects_stats:
        raise InvalidRequestError(
            _ROW_TRACKING_WITHOUT_STATS, code=ErrorCode.CONVERT_ROW_TRACKING_WITHOUT_STATS
        )
    config.require(Capability.CONVERT)
