"""DELETE decided by the log alone: every row of a file goes, or none.

That is so where the condition is missing or asks nothing but partition columns. No data
file is read then, and no change files are written: readers of the change data feed take the
rows of removed files.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.commands.dml.resolve.statement import ResolvedCondition, ResolvedStatement
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.partition_rows import partition_rows
from puredelta.spark.session.helper_columns import FILE_ORDINAL


def decides_by_file(condition: ResolvedCondition | None, config: TableConfig) -> bool:
    """Tell whether a condition is the same for all rows of a file."""
    return condition is None or condition.target_columns <= frozenset(config.partition_columns)


def matching_files(
    spark: SparkSession, snapshot: Snapshot, statement: ResolvedStatement
) -> FileTable:
    """Return the files whose rows all satisfy the condition, one that `decides_by_file`.

    Runs no job on a classic session: Spark folds a filter over local rows on the driver.
    """
    (clause,) = statement.not_matched_by_source
    condition = clause.condition
    if condition is None:
        return snapshot.files
    config = snapshot.config
    files = snapshot.files.select(prune_files(snapshot.files, config, condition.predicate))
    if len(files) == 0:
        return files
    rows = statement.frames.target(partition_rows(spark, files, config))
    chosen = statement.timestamp.bind(rows.where(condition.column).select(FILE_ORDINAL))
    return files.take(sorted(row[FILE_ORDINAL] for row in chosen.collect()))
