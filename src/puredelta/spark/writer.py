"""Rows that Spark computes become data files of a table, described for the log.

Spark's own Parquet writer does the work in one job, in a new directory directly under the
table root (`puredelta.spark.parquet_job`); rules of the table are checked in the same job
(`puredelta.spark.constraints`); statistics come from the footers. Nothing is committed
here: the caller commits `WriteResult.adds`, or calls `discard`.

Partition columns are left out of the files, as the protocol allows (M-144): their values
come back through the directories, which carry the columns' own names because some readers
(Polars) take ``column=value`` in a path for a column of the table.
"""

from __future__ import annotations

import contextlib
import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.clock import Clock, IdSource, random_id, wall_clock
from puredelta.log.file_stats import TableStatistics
from puredelta.log.parquet_footer import map_footers
from puredelta.protocol.actions import Add
from puredelta.protocol.partition_values import hive_unescape
from puredelta.protocol.paths import encode_path
from puredelta.protocol.properties import ColumnMappingMode
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import (
    STRING,
    VOID,
    DecimalType,
    PrimitiveType,
    StructField,
)
from puredelta.spark.constraints import Check, guarded, padded_columns, table_checks
from puredelta.spark.parquet_job import named_failures, removed_on_failure, run_parquet_job
from puredelta.spark.partition_text import log_value, partition_text
from puredelta.spark.types import as_nullable, quoted, to_spark_type
from puredelta.spark.write_session import write_session
from puredelta.store.base import Store, StoredFile


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """Data files that exist and belong to no version yet."""

    directory: str
    """Relative to the table root; all files lie in it and nothing else does."""
    adds: tuple[Add, ...]
    num_rows: int

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(add.size_bytes for add in self.adds)


def write_rows(
    rows: DataFrame,
    *,
    store: Store,
    config: TableConfig,
    enforce_constraints: bool = True,
    rebalance: bool = False,
    clock: Clock = wall_clock,
    new_id: IdSource = random_id,
) -> WriteResult:
    """Write ``rows`` as data files of the table; runs one Spark job.

    ``rows`` has exactly the table's columns, by logical name and of the table's types.
    Files without rows are dropped, so no rows make no file (M-83). ``rebalance`` first
    brings the rows of a partition together, for fewer and larger files. Without
    ``enforce_constraints`` rows are taken as they are: for rows the table already had.

    Raises:
        InvalidRequestError: a row breaks a rule of the table
            (NOT_NULL_CONSTRAINT_VIOLATED, VIOLATE_CONSTRAINT_WITH_VALUES,
            EXCEED_CHAR_VARCHAR_LIMIT).
        DeltaError: the storage refused (WRITE_FAILED). Whatever is raised, every file is
            removed again.
    """
    directory = _directory_name(config, clock(), new_id())
    with write_session(rows) as bound:
        files = run_parquet_job(
            _physical_rows(
                bound, config, enforce_constraints=enforce_constraints, rebalance=rebalance
            ),
            directory,
            store=store,
            partition_columns=config.physical_partition_columns,
            compression=config.properties.compression_codec,
        )
    with removed_on_failure(directory, store), named_failures(f"{store.root_uri}/{directory}"):
        return _describe(files, directory, config, store)


def discard(result: WriteResult, store: Store) -> None:
    """Remove the files of a write that will not be committed, as far as storage lets us."""
    with contextlib.suppress(OSError):
        store.delete_tree(result.directory)


def _directory_name(config: TableConfig, now_ms: int, unique: str) -> str:
    """Name the directory of one job so that a human can tell when it ran.

    The name is visible: VACUUM of any engine finds orphans in it, where names that start
    with ``_`` or ``.`` would hide them. Mapped tables get a random prefix in front, which
    spreads the keys of object stores (X-85).
    """
    moment = datetime.fromtimestamp(now_ms / 1000, tz=timezone.utc)
    name = f"job-{moment:%Y%m%d-%H%M%S}-{unique.replace('-', '')[:12]}"
    properties = config.properties
    if config.column_mapping is ColumnMappingMode.NONE and not properties.randomize_file_prefixes:
        return name
    letters = string.ascii_letters + string.digits
    prefix = "".join(random.choices(letters, k=properties.random_prefix_length))  # noqa: S311
    return f"{prefix}-{name}"


# --- from the table's columns to those of a file --------------------------------------------


def _physical_rows(
    rows: DataFrame, config: TableConfig, *, enforce_constraints: bool, rebalance: bool
) -> DataFrame:
    """Return the rows as the files hold them, followed by the partition values as text."""
    stored = _stored_rows(rows, config)
    checks = table_checks(config) if enforce_constraints else []
    physical_fields = config.physical_data_schema(field_ids=True).fields
    columns: list[Column] = []
    for logical, physical in zip(config.data_schema.fields, physical_fields, strict=True):
        if logical.type == VOID:
            continue  # a file cannot hold it (M-113)
        # One column carries all checks: Spark needs every column of a written row.
        columns.append(_physical_column(logical, physical, checks if not columns else ()))
    if not columns:
        raise InvalidRequestError(
            "A data file needs a column, but the only columns of the table that do not partition "
            f"it are void: {', '.join(config.data_schema.names)}. Cast one to another type.",
            code=ErrorCode.UNSUPPORTED_DATA_TYPES,
        )
    texts = [
        partition_text(F.col(quoted(field.name)), field.type).alias(name)
        for field, name in zip(
            config.partition_schema.fields, config.physical_partition_columns, strict=True
        )
    ]
    physical_rows = stored.select(*columns, *texts)
    if not rebalance:
        return physical_rows
    return physical_rows.hint("rebalance", *map(quoted, config.physical_partition_columns))


def _stored_rows(rows: DataFrame, config: TableConfig) -> DataFrame:
    """Apply what the table does to values before it checks them."""
    changed: dict[str, Column] = {}
    for field in config.partition_schema.fields:
        if field.type == STRING:
            changed[field.name] = F.nullif(F.col(quoted(field.name)), F.lit(""))  # M-108
    for name, length in padded_columns(config).items():
        value = changed.get(name, F.col(quoted(name)))
        padded = F.rpad(value, length, " ")
        changed[name] = F.when(F.length(value) < length, padded).otherwise(value)
    return rows.withColumns(changed) if changed else rows


def _physical_column(
    logical: StructField, physical: StructField, checks: Sequence[Check]
) -> Column:
    """Rename a column; nested fields by a cast, which goes by position and keeps NULL structs.

    The cast stands outside of the checks: a CASE would forget the field ids in its type. A
    column that stays as it is costs no more calls into the JVM than its name does.
    """
    column = guarded(F.col(quoted(logical.name)), checks)
    if physical.name == logical.name and not physical.metadata and not checks:
        return column
    if not isinstance(logical.type, PrimitiveType | DecimalType):
        column = column.cast(as_nullable(to_spark_type(physical.type)))
    return column.alias(physical.name, metadata=dict(physical.metadata))


# --- from files to actions ------------------------------------------------------------------


def _describe(
    files: list[StoredFile], directory: str, config: TableConfig, store: Store
) -> WriteResult:
    described = map_footers(
        files,
        partial(_add, statistics=TableStatistics(config), config=config, directory=directory),
        open_source=lambda file: store.open(file.path),
        name=lambda file: file.path,
    )
    adds, num_rows = [], 0
    for file, (add, rows) in zip(files, described, strict=True):
        if rows:
            adds.append(add)
            num_rows += rows
        else:
            store.delete(file.path)
    if not adds:
        store.delete_tree(directory)
    return WriteResult(directory=directory, adds=tuple(adds), num_rows=num_rows)


def _add(
    file: StoredFile,
    footer: pq.FileMetaData,
    *,
    statistics: TableStatistics,
    config: TableConfig,
    directory: str,
) -> tuple[Add, int]:
    add = Add(
        path=encode_path(file.path),
        partition_values=_partition_values(file, directory, config),
        size_bytes=file.size_bytes,
        modified_ms=file.modified_ms,
        data_change=True,
        stats=statistics.encode(footer),
    )
    return add, footer.num_rows


def _partition_values(
    file: StoredFile, directory: str, config: TableConfig
) -> dict[str, str | None]:
    """Read the partition of a file back from its directories, by physical name (X-82)."""
    fields = config.partition_schema.fields
    parents = file.path.removeprefix(f"{directory}/").split("/")[:-1]
    return {
        physical: log_value(hive_unescape(parent.partition("=")[2]), field.type)
        for physical, field, parent in zip(
            config.physical_partition_columns, fields, parents, strict=True
        )
    }
