"""CONVERT TO DELTA: a directory of Parquet files becomes version 0 of a Delta table.

The data files stay where they are, untouched (C-61); all that is written is a log. Until
its first commit is on disk there is no table, and after it the table is complete: nothing
in between can be seen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.command import Command, command_on
from puredelta.commands.convert.plan import ConversionPlan, plan_conversion
from puredelta.commands.convert.source import DeltaDirectory, parse_source
from puredelta.commands.finish import finish
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.commit.environment import Environment, Phase, ignore_phase
from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.protocol.actions import operations
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.types import StructType
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.types import from_spark

logger = logging.getLogger(__name__)

ALREADY_DELTA = "The table you are trying to convert is already a delta table"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertResult:
    """What a conversion did."""

    location: str
    """The table root as an absolute, decoded URI."""
    version: int | None
    """0, or None where nothing was done."""
    num_files: int
    """Files that became part of the table; 0 where nothing was done."""
    message: str | None = None
    """Why nothing was done."""
    schema: StructType | None = field(default=None, repr=False)
    """The columns of the table that was made; None where nothing was done."""

    @property
    def already_delta(self) -> bool:
        """Whether there was a Delta table before (C-05)."""
        return self.version is None


def convert_to_delta(
    spark: SparkSession,
    identifier: str,
    partition_schema: T.StructType | str | None = None,
    *,
    collect_stats: bool = True,
    on_phase: Callable[[Phase], None] = ignore_phase,
) -> ConvertResult:
    """Make a Delta table of a directory of Parquet files, in place (C-01, C-04).

    ``identifier`` is ``parquet.`/path` ``; ``partition_schema`` names and types the levels
    of its partition directories, outermost first, as DDL text or a type. Schema and
    statistics come from the footers, which the driver reads; no Spark job runs unless a
    footer or a partition value needs Spark's judgement. Without ``collect_stats`` files get
    no statistics at all, not even their row count (C-52). A directory that is a Delta table
    already is left alone, whatever the other arguments say (C-05).

    The whole table is one commit: whatever fails before it leaves no trace, and if another
    writer creates the table first this call fails (C-59).

    Examples:
        >>> convert_to_delta(spark, "parquet.`/data/events`", "day date")  # doctest: +SKIP
        ConvertResult(location='file:/data/events', version=0, num_files=365, message=None)

    Raises:
        InvalidRequestError: identifier, directory, schema and files do not fit together;
            the code says how (E-02, C-30 to C-48).
        TableNotFoundError: the directory does not exist (DELTA_PATH_DOES_NOT_EXIST).
        CorruptTableError: a file is not Parquet (DELTA_FAILED_READ_FILE_FOOTER).
        UnsupportedError: the storage, a table of the catalog, Iceberg, or a Parquet type.
        ConcurrentWriteException: another writer created the table (DELTA_CONCURRENT_WRITE).
    """
    source = parse_source(identifier)
    partitions = parse_partition_schema(partition_schema)
    log = open_log(spark, source.location)
    if log.exists():
        logger.info(ALREADY_DELTA)
        return ConvertResult(
            location=log.root_uri, version=None, num_files=0, message=ALREADY_DELTA
        )
    if isinstance(source, DeltaDirectory):
        raise TableNotFoundError(
            f"`{source.location}` is not a Delta table. If it is a directory of Parquet files, "
            f"convert parquet.`{source.location}`.",
            code=ErrorCode.TABLE_NOT_FOUND,
            path=source.location,
        )
    environment = Environment(on_phase=on_phase)
    command = command_on(spark, log, None, Capability.CONVERT, environment=environment)
    return _commit(command, plan_conversion(command, partitions, collect_stats=collect_stats))


def parse_partition_schema(given: T.StructType | str | None) -> StructType:
    """Return the partition columns as the protocol's type; nothing given is no column.

    Raises:
        InvalidRequestError: the text is a type but no list of columns.
        pyspark.errors.ParseException: the text is no DDL.
    """
    if given is None:
        return StructType(())
    schema = T.StructType.fromDDL(given) if isinstance(given, str) else given
    if not isinstance(schema, T.StructType):
        raise InvalidRequestError(
            f"{given!r} is no list of partition columns. Write names and types: 'day date'.",
            code=ErrorCode.INVALID_PARTITION_COLUMN_TYPE,
            partition_schema=str(given),
        )
    return from_spark(schema)


def _commit(command: Command, plan: ConversionPlan) -> ConvertResult:
    """Write version 0 and its checkpoint (C-55, C-56, C-58)."""
    num_files = len(plan.adds)
    request = CommitRequest(
        actions=[plan.config.metadata, plan.config.protocol, *plan.adds],
        operation=operations.convert(
            num_files=num_files,
            partitioned_by=plan.config.partition_columns,
            collect_stats=plan.collects_stats,
            source_format="parquet",
        ),
        metrics={"numConvertedFiles": num_files},
        always_records_metrics=True,
        is_blind_append=False,
    )
    committed = finish(command, request, checkpoint=CheckpointWish.ALWAYS)
    return ConvertResult(
        location=command.log.root_uri,
        version=committed.version,
        num_files=num_files,
        schema=plan.config.schema,
    )
