"""The plan of a conversion: from a directory to the content of version 0.

Statistics need the table's schema, and the schema needs all footers. So the schema is guessed from
the first and the last file, and footers are read again only where the guess was wrong. The guess
is right for a directory with similar files, or with columns added over time. The driver reads
only footers; each file's actions wait in a temporary file until the commit (W-22).

A footer that is encrypted, or unsafe for Arrow (`puredelta.worker.footers`), is left to Spark,
which has the keys and reads less of it. Such a file has no statistics, as nothing proves them.

Spark is also asked for the schema of a Parquet file with an unusual shape, and for partition values
in an unusual spelling. Each costs a small Spark job; both are rare.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.commands.command import Command
from puredelta.commands.convert.conversion_plan import (
    ConversionPlan,
    ConvertSettings,
    require_counted,
)
from puredelta.commands.convert.iceberg_plan import plan_iceberg
from puredelta.commands.convert.listing import (
    SINK_LOG_DIRECTORY,
    list_data_files,
    list_partition_files,
    list_table_files,
    require_files,
)
from puredelta.commands.convert.partitions import (
    PartitionDirectory,
    PartitionRules,
    PartitionValues,
    infer_partitions,
    inferred_schema,
    partition_values,
    read_partitions,
    require_partition_columns,
)
from puredelta.commands.convert.schema import (
    FileSchemas,
    FoundSchema,
    require_delta_types,
    with_partition_columns,
)
from puredelta.commands.convert.target import ConversionTarget
from puredelta.commands.new_table import (
    DEFAULTS_PREFIX,
    NewTableProperties,
    plan_new_table,
)
from puredelta.commands.statement.progress import Note, counted, note_nothing
from puredelta.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    InvalidRequestError,
    Message,
    UnsupportedError,
)
from puredelta.log.files.file_stats import FooterSummary, KnownFooters, TableStatistics
from puredelta.log.files.parquet_footer import FooterEnd, NoFooterError, map_ends, schema_only
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import DataType, StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.catalog_entries import entry_formats
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.session.data_access import as_glob, require_seen
from puredelta.spark.session.pyspark_errors import plain_message
from puredelta.spark.session.types import from_spark, to_spark_type
from puredelta.store.base import Store, StoredFile

_THREADS = 16
"""Number of footers read in parallel where storage is slow."""


class ReadFile(NamedTuple):
    """One file and the content of its footer."""

    file: StoredFile
    footer: FooterSummary
    is_sparks: bool = False
    """Whether only Spark can read the file; `require_read_by_spark` checks that it does."""


def read_files(
    store: Store,
    files: Iterable[StoredFile],
    statistics: TableStatistics | None,
    *,
    ignore_corrupt: bool = False,
) -> Iterator[ReadFile]:
    """Yield the footers of ``files``, in their order, with statistics if they are wanted.

    With ``ignore_corrupt`` files without a readable footer are left out (C-32).

    Raises:
        CorruptTableError: a file that is not Parquet, or damaged; the message names it
            (DELTA_FAILED_READ_FILE_FOOTER).
    """
    known = KnownFooters(statistics)

    def describe(file: StoredFile, end: FooterEnd) -> ReadFile:
        try:
            return ReadFile(file, known.describe(end))
        except NoFooterError as unsound:
            return ReadFile(file, FooterSummary(schema_only(end, unsound), None), is_sparks=True)

    def recover(file: StoredFile, error: CorruptTableError) -> ReadFile | None:
        if isinstance(reason := error.__cause__, NoFooterError) and reason.is_encrypted:
            # Only Spark knows the schemas of these files, so each is a kind of its own.
            return ReadFile(file, FooterSummary(f"encrypted {file.path}", None), is_sparks=True)
        if ignore_corrupt:
            return None
        raise error

    found: Iterator[ReadFile | None] = map_ends(
        files,
        describe,
        read_end=lambda file, num_bytes: store.read_end(file.path, num_bytes),
        name=lambda file: file_uri(store, file),
        threads=_THREADS,
        recover=recover,
    )
    return (file for file in found if file is not None)


def found_schemas(store: Store, kinds: Mapping[str, StoredFile]) -> list[FoundSchema]:
    """Return the first file of each distinct schema text, in file order."""
    return [FoundSchema(text, file_uri(store, file)) for text, file in kinds.items()]


def file_uri(store: Store, file: StoredFile) -> str:
    """Return the decoded URI of a file, for messages and for Spark."""
    return f"{store.root_uri}/{file.path}"


_FOOTER = "FOOTER"
"""Part of Spark's error class for an unreadable footer."""
_CRYPTO = "rypto"
"""Part of the names of Parquet's encryption classes and exceptions."""
_NEW_TEXT = "Write the file again with that column as text, a number or a timestamp."
_NEW_DECIMAL = "Write the file again with at most 38 digits, or with that column as text."
_WAYS_OUT = {
    "NANOS": (
        "Timestamps of nanoseconds are what pandas writes: write the file again with microseconds "
        "(pandas and pyarrow: coerce_timestamps='us'), or set "
        "spark.sql.legacy.parquet.nanosAsLong to true to have them as BIGINT."
    ),
    "FLOAT16": "Write the file again with that column as a 32-bit float.",
    "TIME": _NEW_TEXT,
    "DECIMAL": _NEW_DECIMAL,
    "precision": _NEW_DECIMAL,
    "INTERVAL": _NEW_TEXT,
}
"""The informative part of Spark's reason, and the next step."""


def read_parquet_schema(spark: SparkSession, uri: str) -> StructType:
    """Return the schema Spark gives to one Parquet file; reads its footer in one job.

    Raises:
        UnsupportedError: Spark cannot read the file's types (PARQUET_TYPE_ILLEGAL).
    """
    try:
        return from_spark(spark.read.parquet(as_glob(uri)).schema)
    except PySparkException as refused:
        if _FOOTER in str(refused):
            raise _unreadable(uri, refused) from refused
        reason = plain_message(refused)
        raise UnsupportedError(
            Message.PARQUET_TYPE_ILLEGAL, reason=reason, way_out=_way_out(reason), file=uri
        ) from refused
    except JVM_ERRORS as refused:
        raise _unreadable(uri, refused) from refused


def require_read_by_spark(spark: SparkSession, uri: str) -> None:
    """Let Spark read a row of a Parquet file that Arrow does not read; runs one job.

    Raises:
        CorruptTableError: Spark does not read it either (DELTA_FAILED_READ_FILE_FOOTER).
    """
    try:
        spark.read.parquet(as_glob(uri)).limit(1).collect()
    except JVM_ERRORS as refused:
        raise _unreadable(uri, refused) from refused


def _unreadable(uri: str, refused: Exception) -> CorruptTableError:
    reason = next((line for line in str(refused).splitlines() if _CRYPTO in line), "")
    what = "It is damaged: remove it, or write it once more."
    if reason:
        what = (
            "It is encrypted, and this session has not its keys: set "
            "spark.hadoop.parquet.crypto.factory.class and what the factory needs to reach the "
            "keys, then convert."
        )
    return CorruptTableError(Message.FAILED_READ_FILE_FOOTER_CONVERT, what=what, file=uri)


def _way_out(reason: str) -> str:
    """Return the user's next step for a Parquet type that Spark does not read."""
    found = (way for mark, way in _WAYS_OUT.items() if mark in reason)
    return next(found, "Write the file again with types that Spark reads, or move it elsewhere.")


def cast_texts(
    spark: SparkSession, data_type: DataType, texts: Sequence[str]
) -> Mapping[str, str | None]:
    """Cast each text to a type and back to text; ``None`` where it is no value of the type.

    The cast is ``try_cast``: blanks around a number, ``yes`` for true and ``2024-1-1`` are
    understood. Timestamps come back in the session's time zone. Runs one job.
    """
    target = to_spark_type(data_type)
    given = spark.createDataFrame([(text,) for text in texts], "text string")
    cast = F.col("text").try_cast(target).cast("string")
    return {row[0]: row[1] for row in given.select("text", cast).collect()}


logger = logging.getLogger(__name__)

_MAPPING_SETTING = f"{DEFAULTS_PREFIX}columnMapping.mode"
_SHOWN = 3
_SEEN = 4
"""Number of files that Spark must find: a local disk is shared with it, or is not."""

_Values: TypeAlias = Mapping[str, PartitionValues]
"""The partition values of each directory."""


def require_unchanged(command: Command, target: ConversionTarget, plan: ConversionPlan) -> None:
    """List the files again, right before the commit, and compare with the plan.

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
        Message.CONCURRENT_WRITE_CONVERTED_FILES,
        shown=shown,
        path=command.log.root_uri,
        changes=tuple(changes[:_SHOWN]),
    )


def plan_conversion(
    command: Command, target: ConversionTarget, *, collect_stats: bool, note: Note = note_nothing
) -> ConversionPlan:
    """Plan a conversion. Reads names and footers, and the catalog; writes nothing.

    ``note`` gets the progress.
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
    """Return a target with known partition columns; lists the files if they are to be inferred."""
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
    """Return the files of a target, and the catalog's values of their directories where it is used.

    The log of a streaming sink comes first, then the catalog, then the listing (C-20).
    """
    entry = target.entry
    has_sink_log = settings.use_metadata_log and store.exists(SINK_LOG_DIRECTORY)
    if entry is None or has_sink_log or not settings.use_catalog_partitions:
        return list_data_files(store, use_metadata_log=settings.use_metadata_log), None
    if target.partitions.fields:
        known = entry_formats(spark).list_partitions(spark, entry.database, entry.name)
        found = list_partition_files(store, str(target.full_name), known, target.partitions.names)
    else:
        found = list_table_files(store)
    return found.files, found.directories


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """The planning of one conversion."""

    command: Command
    target: ConversionTarget
    settings: ConvertSettings
    collects_stats: bool
    schemas: FileSchemas
    note: Note

    @property
    def store(self) -> Store:
        """The store at the directory."""
        return self.command.log.store

    def plan(self) -> ConversionPlan:
        """Find the files, their partition values, the schema and the statistics.

        Cheap checks come first: partition values before any footer is opened. Files without
        rows are part of the table like all others, with ``numRecords`` 0, so that the number
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
        """Return the columns from the catalog, None where they come from the files (C-34)."""
        columns = self.target.columns if self.settings.use_catalog_schema else None
        if columns is not None:
            require_delta_types(columns, f"the catalog's entry of {self.target.full_name}")
        return columns

    def _read_as(
        self, files: Sequence[StoredFile], values: _Values, schema: StructType
    ) -> tuple[_Found, TableConfig]:
        """Read the footers for statistics alone; none where they would tell nothing."""
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
        """Let Spark read the first file of each kind that Arrow does not read."""
        for file in found.sparks:
            require_read_by_spark(self.command.spark, file_uri(self.store, file))
        if found.sparks:
            # Row ids are assigned by each file's row count, and these files have none.
            require_counted(config, collects_stats=False)

    def _require_columns(self, found: _Found, late: Mapping[str, str]) -> None:
        """Refuse files without a column whose default fills old rows: Delta reads NULL there."""
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
    """The content of all footers."""

    files: SpooledFiles
    kinds: Mapping[str, StoredFile]
    """The first file of each schema text."""
    sparks: tuple[StoredFile, ...]
    """The first file of each schema text of those that Spark alone reads."""


def _found(read: Iterable[ReadFile], values: _Values) -> _Found:
    files, kinds, sparks = SpooledFiles(), dict[str, StoredFile](), dict[str, StoredFile]()
    for file, (text, stats, num_rows), is_sparks in read:
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
            num_rows=None if stats is None else num_rows,
        )
    return _Found(files, kinds, tuple(sparks.values()))


def _late_column(name: str, default: str, file_uri: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.OPERATION_NOT_ALLOWED_DETAIL_LATE_DEFAULT,
        column=name,
        default=default,
        file=file_uri,
    )


def _require_convertible(config: TableConfig, *, collects_stats: bool) -> None:
    """Refuse default properties that existing files cannot satisfy (E-02)."""
    if config.column_mapping is not ColumnMappingMode.NONE:
        mode = config.column_mapping.value
        raise InvalidRequestError(
            Message.CONVERSION_UNSUPPORTED_COLUMN_MAPPING, config=_MAPPING_SETTING, mode=mode
        )
    require_counted(config, collects_stats=collects_stats)
    config.require(Capability.CONVERT)
