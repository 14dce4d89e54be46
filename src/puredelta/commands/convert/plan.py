"""From a directory to the content of version 0: what will be committed, nothing written yet."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TypeAlias

from pyspark.sql import SparkSession

from puredelta.commands.command import Command
from puredelta.commands.convert.collect import ReadFile, file_uri, found_schemas, read_files
from puredelta.commands.convert.conversion_plan import ConversionPlan, require_counted
from puredelta.commands.convert.iceberg_plan import plan_iceberg
from puredelta.commands.convert.infer import (
    FileSchemas,
    require_delta_types,
    with_partition_columns,
)
from puredelta.commands.convert.listing.catalog_files import list_partition_files, list_table_files
from puredelta.commands.convert.listing.inferred import infer_partitions, inferred_schema
from puredelta.commands.convert.listing.parquet_dir import list_data_files, require_files
from puredelta.commands.convert.listing.partitions import (
    PartitionDirectory,
    PartitionRules,
    PartitionValues,
    partition_values,
    read_partitions,
    require_partition_columns,
)
from puredelta.commands.convert.listing.sink_log import SINK_LOG_DIRECTORY
from puredelta.commands.convert.settings import ConvertSettings
from puredelta.commands.convert.target import ConversionTarget
from puredelta.commands.convert.with_spark import (
    cast_texts,
    read_parquet_schema,
    require_read_by_spark,
)
from puredelta.commands.definition.new_table import (
    DEFAULTS_PREFIX,
    NewTableProperties,
    plan_new_table,
)
from puredelta.commands.running.noted import Note, counted, note_nothing
from puredelta.errors import ConcurrentWriteException, ErrorCode, InvalidRequestError
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.log.footers.known_footers import FooterSummary
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.data_files.shared_files import require_seen
from puredelta.spark.jvm.entry_format import list_partitions
from puredelta.store.base import Store, StoredFile

logger = logging.getLogger(__name__)

_MAPPING_SETTING = f"{DEFAULTS_PREFIX}columnMapping.mode"
_SHOWN = 3
_SEEN = 4
"""Files that Spark is asked for: a disk is shared, or it is not."""

_Values: TypeAlias = Mapping[str, PartitionValues]
"""The partition values of each directory."""


def require_unchanged(command: Command, target: ConversionTarget, plan: ConversionPlan) -> None:
    """List the files again, right before the commit: it must name what is there.

    Raises:
        ConcurrentWriteException: files came, went or changed (DELTA_CONCURRENT_WRITE).
    """
    if target.iceberg is not None:
        target.iceberg.require_current()
        return
    settings = ConvertSettings.parse(command.session.settings)
    now, _ = list_files(command.spark, command.log.store, target, settings)
    if now == plan.listed:
        return
    before, after = {f.path: f for f in plan.listed}, {f.path: f for f in now}
    changes = [
        *(f"{path} is gone" for path in before if path not in after),
        *(f"{path} is new" for path in after if path not in before),
        *(f"{path} has changed" for path in after if before.get(path, after[path]) != after[path]),
    ]
    shown = ", ".join(changes[:_SHOWN]) + (", ..." if len(changes) > _SHOWN else "")
    raise ConcurrentWriteException(
        f"Files of {command.log.root_uri} were written or removed while it was converted: {shown}. "
        "Nothing was changed; convert it again when nobody writes there.",
        code=ErrorCode.CONCURRENT_WRITE,
        path=command.log.root_uri,
        changes=tuple(changes[:_SHOWN]),
    )


def plan_conversion(
    command: Command, target: ConversionTarget, *, collect_stats: bool, note: Note = note_nothing
) -> ConversionPlan:
    """Plan a conversion. Reads names and footers, and the catalog; writes nothing.

    ``note`` is told how far it is.
    """
    plan = _plan(command, target, collect_stats=collect_stats, note=note)
    root = command.log.root_uri
    files = islice(plan.files.adds(), _SEEN)
    require_seen(command.spark, ((absolute_uri(root, f.path), f.size_bytes) for f in files))
    return plan


def _plan(
    command: Command, target: ConversionTarget, *, collect_stats: bool, note: Note
) -> ConversionPlan:
    if target.iceberg is not None:
        return plan_iceberg(command, target.iceberg, collect_stats=collect_stats)
    settings = ConvertSettings.parse(command.session.settings)
    if collect_stats and not settings.collect_stats:
        logger.warning("collect_stats is set, but spark.databricks.delta.stats.collect is false")
    planner = _Planner(
        command=command,
        target=target,
        settings=settings,
        collects_stats=collect_stats and settings.collect_stats,
        schemas=FileSchemas(settings.parquet, partial(read_parquet_schema, command.spark)),
        note=note,
    )
    return planner.plan()


def inferred_target(command: Command, target: ConversionTarget) -> ConversionTarget:
    """Return a target whose partition columns are known; lists the files if they must say them."""
    if not target.infers:
        return target
    settings = ConvertSettings.parse(command.session.settings)
    files = list_data_files(command.log.store, use_metadata_log=settings.use_metadata_log)
    columns = infer_partitions((file.path for file in files), command.log.root_uri)
    logger.info("Inferred partition columns of %s: %s", command.log.root_uri, columns)
    found = inferred_schema(columns)
    return replace(target, partitions=found, stated=found.names)


def list_files(
    spark: SparkSession, store: Store, target: ConversionTarget, settings: ConvertSettings
) -> tuple[tuple[StoredFile, ...], Mapping[str, PartitionDirectory] | None]:
    """Return the files of a target, and what the catalog says of their directories if it is asked.

    The log of a streaming sink comes first, then the catalog, then the listing (C-20).
    """
    entry = target.entry
    has_sink_log = settings.use_metadata_log and store.exists(SINK_LOG_DIRECTORY)
    if entry is None or has_sink_log or not settings.use_catalog_partitions:
        return list_data_files(store, use_metadata_log=settings.use_metadata_log), None
    if target.partitions.fields:
        known = list_partitions(spark, entry.database, entry.name)
        found = list_partition_files(store, str(target.full_name), known, target.partitions.names)
    else:
        found = list_table_files(store)
    return found.files, found.directories


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """One conversion to plan."""

    command: Command
    target: ConversionTarget
    settings: ConvertSettings
    collects_stats: bool
    schemas: FileSchemas
    note: Note

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
        require_partition_columns(self.target.partitions)
        self.note("listing files")
        files, directories = list_files(self.command.spark, self.store, self.target, self.settings)
        values = self._partition_values(files, directories)
        schema = self._catalog_schema()
        if schema is None:
            found, config = self._read(files, values)
        else:
            found, config = self._read_as(files, values, schema)
        self._require_read_by_spark(found, config)
        return ConversionPlan(
            config=config, files=found.files, collects_stats=self.collects_stats, listed=files
        )

    def _partition_values(
        self, files: Sequence[StoredFile], directories: Mapping[str, PartitionDirectory] | None
    ) -> _Values:
        rules = PartitionRules(
            columns=self.target.partitions.fields,
            cast=partial(cast_texts, self.command.spark),
            case_sensitive=self.settings.case_sensitive,
            ignore_cast_failure=self.settings.ignore_cast_failure,
        )
        if directories is None:
            return read_partitions((f.path for f in files), self.store.root_uri, rules)
        return partition_values(directories, rules)

    def _catalog_schema(self) -> StructType | None:
        """Return the columns that the catalog states, None where the files are to say (C-34)."""
        columns = self.target.columns if self.settings.use_catalog_schema else None
        if columns is not None:
            require_delta_types(columns, f"the catalog's entry of {self.target.full_name}")
        return columns

    def _read_as(
        self, files: Sequence[StoredFile], values: _Values, schema: StructType
    ) -> tuple[_Found, TableConfig]:
        """Read the footers for statistics alone; none where nothing is to be learnt from them."""
        config = self._config(schema)
        late = self.target.late_columns
        if not self.collects_stats and not late:
            unread = FooterSummary("", None)
            return _found((ReadFile(file, unread) for file in files), values), config
        found = self._collect(files, values, schema if self.collects_stats else None)
        if late:
            self._require_columns(found, late)
        return found, config

    def _require_read_by_spark(self, found: _Found, config: TableConfig) -> None:
        """Ask Spark of files that Arrow does not read: the first one of each kind."""
        for file in found.sparks:
            require_read_by_spark(self.command.spark, file_uri(self.store, file))
        if found.sparks:
            # Ids of rows go by the number of rows of each file, which nothing has counted.
            require_counted(config, collects_stats=False)

    def _require_columns(self, found: _Found, late: Mapping[str, str]) -> None:
        """Refuse files that lack a column whose old rows have a value: Delta reads NULL there."""
        for kind in found_schemas(self.store, found.kinds):
            columns = self.schemas.read(kind)
            for name, default in late.items():
                if columns.find_ignoring_case(name) is None:
                    raise _late_column(name, default, kind.file_uri)

    def _read(self, files: Sequence[StoredFile], values: _Values) -> tuple[_Found, TableConfig]:
        """Read all footers; again only if they show another schema than the guess."""
        guess = self._guess_schema(files)
        found = self._collect(files, values, guess)
        schema = self._schema_of(found.kinds)
        if self.collects_stats and schema != guess:
            found = self._collect(files, values, schema)
        return found, self._config(schema)

    def _guess_schema(self, files: Sequence[StoredFile]) -> StructType | None:
        """Return the schema of the first and the last file, if statistics need one."""
        if not self.collects_stats:
            return None
        ends = files if len(files) == 1 else (files[0], files[-1])
        kinds: dict[str, StoredFile] = {}
        for read in self._read_footers(ends, None):
            kinds.setdefault(read.footer.schema_text, read.file)
        return self._schema_of(kinds) if kinds else None

    def _collect(
        self, files: Sequence[StoredFile], values: _Values, schema: StructType | None
    ) -> _Found:
        """Read all footers, with statistics of the columns of a schema."""
        return _found(counted(self._read_footers(files, schema), len(files), self.note), values)

    def _read_footers(
        self, files: Sequence[StoredFile], schema: StructType | None
    ) -> Iterator[ReadFile]:
        statistics = None
        if schema is not None:
            case_sensitive = self.settings.case_sensitive
            statistics = TableStatistics(self._config(schema), case_sensitive=case_sensitive)
        ignore_corrupt = self.settings.ignore_corrupt_files
        return read_files(self.store, files, statistics, ignore_corrupt=ignore_corrupt)

    def _schema_of(self, kinds: Mapping[str, StoredFile]) -> StructType:
        require_files(self.store, kinds)
        data = self.schemas.merge(found_schemas(self.store, kinds))
        return with_partition_columns(
            data, self.target.partitions.fields, case_sensitive=self.settings.case_sensitive
        )

    def _config(self, schema: StructType) -> TableConfig:
        wanted = NewTableProperties(
            properties=self.target.properties, description=self.target.description
        )
        settings, partitions = self.command.session.settings, self.target.partitions.names
        config = plan_new_table(settings, schema, partitions, wanted=wanted)
        _require_convertible(config, collects_stats=self.collects_stats)
        return config


@dataclass(frozen=True, slots=True)
class _Found:
    """What the footers of all files say."""

    files: SpooledFiles
    kinds: Mapping[str, StoredFile]
    """The first file of each schema text."""
    sparks: tuple[StoredFile, ...]
    """The first file of each schema text of those that Spark alone reads."""


def _found(read: Iterable[ReadFile], values: _Values) -> _Found:
    files, kinds, sparks = SpooledFiles(), dict[str, StoredFile](), dict[str, StoredFile]()
    for file, (text, stats), is_sparks in read:
        if text not in kinds:
            kinds[text] = file
        if is_sparks:
            sparks.setdefault(text, file)
        files.add(
            file.path,
            values[file.directory],
            size_bytes=file.size_bytes,
            modified_ms=file.modified_ms,
            stats=stats,
        )
    return _Found(files, kinds, tuple(sparks.values()))


def _late_column(name: str, default: str, file_uri: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"The column {name} was added to the table with the default {default}, which Spark shows "
        f"for the rows of the file {file_uri}, written before. A Delta table would show NULL: "
        "rewrite the file (INSERT OVERWRITE of its partition or table) before you convert.",
        code=ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        column=name,
        default=default,
        file=file_uri,
    )


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
    require_counted(config, collects_stats=collects_stats)
    config.require(Capability.CONVERT)
