"""Rows that Spark computes become data files of a table, described for the log.

Spark's own Parquet writer does the work in one job, in a new directory directly under the
table root (`puredelta.spark.write.parquet_job`). The rules of the table are checked in the same
job (`puredelta.spark.values.constraints`), and statistics come from the footers. Nothing is
committed here: the caller commits `WriteResult.adds`, or calls `discard`.

Partition columns are left out of the files, as the protocol allows (M-144), unless the table asks
for them. Their values come back through the directories, which carry the columns' own names because
some readers (Polars) take ``column=value`` in a path for a column of the table.
"""

from __future__ import annotations

import dataclasses
import random
import string
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.files.clock import Clock, IdSource, random_id, wall_clock
from puredelta.protocol.actions.log_paths import CHANGE_DATA_DIRECTORY
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import (
    BINARY,
    COLLATIONS,
    STRING,
    VOID,
    DecimalType,
    PrimitiveType,
    StructField,
)
from puredelta.protocol.schema.void_fields import require_stored_fields, stored_type, void_paths
from puredelta.protocol.table.change_data import CHANGE_TYPE
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.data_access import DataIo, data_io
from puredelta.spark.session.names import CHANGE, DIRECTORY, IS_CHANGE
from puredelta.spark.session.session import is_connect, seen_files
from puredelta.spark.session.types import as_nullable, from_spark, quoted, to_spark, to_spark_type
from puredelta.spark.values.constraints import Check, as_stored, guarded, table_checks
from puredelta.spark.write.arrow_job import ArrowJob, run_arrow_job
from puredelta.spark.write.parquet_job import (
    ORDERED_SETTINGS,
    SESSION_FILES,
    FileOptions,
    named_failures,
    removed_on_failure,
    run_parquet_job,
    write_session,
)
from puredelta.spark.write.written_files import (
    WriteResult,
    describe_answers,
    describe_files,
    describe_with_changes,
    partition_text,
)
from puredelta.store.base import NameRule, Store


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How one job writes its rows; the defaults are for rows that are new to the table."""

    enforce_constraints: bool = True
    """Off: rows are taken as they are, because the table had them before."""
    computed: frozenset[str] = frozenset()
    """Generated columns that hold what their expression gave in every row: no user gave a value
    that could be wrong. An expression reads the values as they were given, so ``length(x)`` is 0
    of the empty text that a partition stores as NULL (M-108), as in delta-spark."""
    rebalance: bool = False
    """First bring the rows of a partition together, for fewer and larger files."""
    keeps_order: bool = False
    """A task's rows are of one partition and stay in the order they have."""
    with_changes: bool = False
    """The frame has the column `CHANGE`, too, and rows in which it is not NULL go into change
    files; they are copies of rows that were checked. The data files of such a job have the column
    ``_change_type`` with NULLs, as those of delta-spark do.
    """
    files: FileOptions = SESSION_FILES
    """How many files there are, and how they are compressed."""
    only: frozenset[str] | None = None
    """The columns that are written, by logical name; ``None``: all of them."""
    hidden: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Long columns of the frame that are in no schema, with their names inside files (row ids)."""


NEW_ROWS = JobOptions()


def write_rows(
    rows: DataFrame,
    *,
    store: Store,
    config: TableConfig,
    options: JobOptions = NEW_ROWS,
    clock: Clock = wall_clock,
    new_id: IdSource = random_id,
) -> WriteResult:
    """Write ``rows`` as data files of the table; runs one Spark job.

    ``rows`` has exactly the table's columns, by logical name and of the table's types.
    Files without rows are dropped, so no rows make no file (M-83).
    """
    directory = job_directory(config, clock(), new_id())
    with named_failures(f"{store.root_uri}/{directory}"):
        layout = _FileLayout(config=config, options=options, names=store.name_rule())
    if config.needs_arrow_writer or (data_io(rows.sparkSession, [store.root_uri]) is DataIo.ARROW):
        return _written_by_arrow(layout.physical_rows(rows), directory, layout, store)
    settings = {
        **(ORDERED_SETTINGS if options.keeps_order else {}),
        **layout.files.session_settings,
    }
    with write_session(rows, settings, columns=to_spark(config.schema)) as bound:
        job = run_parquet_job(
            layout.physical_rows(bound),
            directory,
            store=store,
            partition_columns=layout.directories,
            options=layout.files.writer_options,
        )
    describe = describe_with_changes if options.with_changes else describe_files
    changes = f"{CHANGE_DATA_DIRECTORY}/{directory}"
    with (
        removed_on_failure([directory, changes], store),
        named_failures(f"{store.root_uri}/{directory}"),
    ):
        written = describe(job, directory, config, store)
        job.require_rows(written.num_rows + written.num_changes)
        seen_files(rows.sparkSession).update(f"{store.root_uri}/{file.path}" for file in job.files)
        return written


def stored_values(rows: DataFrame, config: TableConfig, options: JobOptions) -> DataFrame:
    """Return the columns of ``options.only`` as files hold them, then those of ``options.hidden``.

    Without ``enforce_constraints`` the frame needs no other columns.
    """
    layout = _FileLayout(config=config, options=options, names=NameRule.EXACT)
    return rows.select(*layout.columns())


def check_rows(
    rows: DataFrame,
    config: TableConfig,
    *,
    computed: frozenset[str] = frozenset(),
    with_changes: bool = False,
) -> None:
    """Compute rows as `write_rows` does, check the rules of the table, and keep nothing.

    Runs one Spark job; ``rows`` and the options are as there.
    """
    options = JobOptions(computed=computed, with_changes=with_changes)
    layout = _FileLayout(config=config, options=options, names=NameRule.EXACT)
    columns = to_spark(config.schema)
    with write_session(rows, columns=columns) as bound, named_failures("the new rows"):
        layout.physical_rows(bound).write.format("noop").mode("overwrite").save()


def _written_by_arrow(
    rows: DataFrame, directory: str, layout: _FileLayout, store: Store
) -> WriteResult:
    config, options = layout.config, layout.options
    num_stored = len(rows.columns) - len(layout.directories)
    job = ArrowJob(
        store=store,
        directory=directory,
        schema=from_spark(T.StructType(rows.schema.fields[:num_stored])),
        changes_directory=f"{CHANGE_DATA_DIRECTORY}/{directory}" if options.with_changes else None,
        partition_columns=config.physical_partition_columns,
        files=layout.files,
        keeps_order=options.keeps_order,
    )
    answers = run_arrow_job(rows, job)
    with removed_on_failure([directory, f"{CHANGE_DATA_DIRECTORY}/{directory}"], store):
        return describe_answers(answers, directory, config, layout.names)


def job_directory(config: TableConfig, now_ms: int, unique: str) -> str:
    """Name the directory of one job so that a human can tell when it ran.

    The name is visible: VACUUM of any engine finds orphans of a job that ended in it, where names
    that start with ``_`` or ``.`` would hide them. What a job has not ended yet lies below
    ``_temporary`` there, where only this library's VACUUM looks. Mapped tables get a random prefix
    in front, which spreads the keys of object stores (X-85).
    """
    now = datetime.fromtimestamp(now_ms / 1000, tz=timezone.utc)
    name = f"job-{now:%Y%m%d-%H%M%S}-{unique.replace('-', '')[:12]}"
    properties = config.properties
    if config.column_mapping is ColumnMappingMode.NONE and not properties.randomize_file_prefixes:
        return name
    letters = string.ascii_letters + string.digits
    prefix = "".join(random.choices(letters, k=properties.random_prefix_length))  # noqa: S311
    return f"{prefix}-{name}"


# --- from the table's columns to those of a file --------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _FileLayout:
    """The content of the files of one job."""

    config: TableConfig
    options: JobOptions
    names: NameRule

    @property
    def directories(self) -> tuple[str, ...]:
        """The columns that become directories, outermost first."""
        kinds = (IS_CHANGE,) if self.options.with_changes else ()
        return (*kinds, *self.config.physical_partition_columns)

    @property
    def files(self) -> FileOptions:
        """How the files are cut and compressed: with the table's codec, if there is no other, and
        its Bloom filters.
        """
        files = self.options.files
        codec = files.codec or self.config.properties.compression_codec
        return dataclasses.replace(files, codec=codec, filters=self.config.filtered_columns)

    def physical_rows(self, rows: DataFrame) -> DataFrame:
        """Return the rows as the files hold them, followed by the columns of directories."""
        stored = stored_rows(rows, self.config)
        columns = [*self.columns(), *self._directory_values()]
        # Names alone are the rows as they are, and choosing them is many round trips.
        names = [column for column in columns if isinstance(column, str)]
        as_it_is = (
            len(names) == len(columns)
            and not is_connect(rows.sparkSession)  # a client has to ask for the columns
            and names == list(map(quoted, stored.columns))
        )
        physical_rows = stored if as_it_is else stored.select(*columns)
        if not self.options.rebalance and self.files.bin_bytes is None:
            return physical_rows
        partitions = map(quoted, self.config.physical_partition_columns)
        return physical_rows.hint("rebalance", *partitions)

    def columns(self) -> list[Column | str]:
        """Return the columns that files hold."""
        config, options, checks = self.config, self.options, self._checks()
        require_stored_fields(config.data_schema)
        physical_fields = config.physical_file_schema(field_ids=True).fields
        columns: list[Column | str] = []
        for logical, physical in zip(config.file_schema.fields, physical_fields, strict=True):
            if options.only is not None and logical.name not in options.only:
                continue
            if logical.type == VOID:
                continue  # a file cannot hold it (M-113)
            # One column carries all checks: Spark needs every column of a written row.
            columns.append(_physical_column(logical, physical, checks if not columns else ()))
        if not columns:
            raise InvalidRequestError(
                Message.NON_PARTITION_COLUMN_ABSENT_VOID
                if config.partition_columns
                else Message.TABLE_ALL_VOID_COLUMNS_WRITE,
                columns=", ".join(config.data_schema.names),
            )
        columns += [F.col(helper).alias(name) for helper, name in self.options.hidden.items()]
        return (
            [*columns, F.col(CHANGE).alias(CHANGE_TYPE)] if self.options.with_changes else columns
        )

    def _checks(self) -> list[Check]:
        if not self.options.enforce_constraints:
            return []
        checks = table_checks(self.config, computed=self.options.computed)
        if not self.options.with_changes:
            return checks
        in_table = F.col(CHANGE).isNull()
        return [Check(in_table & check.violated, check.error) for check in checks]

    def _directory_values(self) -> list[Column]:
        config = self.config
        fields: Sequence[StructField] = config.partition_schema.fields
        names: Sequence[str] = config.physical_partition_columns
        if config.materialized_partition_columns:
            names = [f"{DIRECTORY}{number}" for number in range(len(fields))]
        values = [
            partition_text(F.col(quoted(field.name)), field.type, self.names).alias(name)
            for field, name in zip(fields, names, strict=True)
        ]
        kind = F.col(CHANGE).isNotNull().alias(IS_CHANGE)
        return [kind, *values] if self.options.with_changes else values


def stored_rows(rows: DataFrame, config: TableConfig) -> DataFrame:
    """Apply what the table does to values before it checks them."""
    changed: dict[str, Column] = {}
    for field in config.partition_schema.fields:
        if field.type in (STRING, BINARY):
            changed[field.name] = as_stored(F.col(quoted(field.name)), field.type)
    return rows.withColumns(changed) if changed else rows


def _physical_column(
    logical: StructField, physical: StructField, checks: Sequence[Check]
) -> Column | str:
    """Rename a column; nested fields by a cast, which goes by position and keeps NULL structs.

    The cast stands outside of the checks: a CASE would forget the field ids in its type. A
    column that stays as it is costs no more calls into the JVM than its name does.
    """
    # Spark itself writes down the collations of the columns it is given.
    metadata = {key: value for key, value in physical.metadata.items() if key != COLLATIONS}
    voids = tuple(void_paths(logical))
    if physical.name == logical.name and not (metadata or checks or voids):
        return quoted(logical.name)
    column = guarded(F.col(quoted(logical.name)), checks)
    for path in voids:
        column = column.dropFields(".".join(map(quoted, path)))
    if not isinstance(logical.type, PrimitiveType | DecimalType):
        column = column.cast(as_nullable(to_spark_type(stored_type(physical.type))))
    return column.alias(physical.name, metadata=metadata)
