"""The partitions that an OPTIMIZE considers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from puredelta.commands.dml.prune.whole_files import matching_files
from puredelta.commands.dml.resolve.partition_condition import resolve_partition_condition
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot


def files_where(spark: SparkSession, snapshot: Snapshot, predicates: Sequence[str]) -> FileTable:
    """Return the files in partitions for which all conditions are true.

    Runs no job on a classic session.

    Raises:
        InvalidRequestError: a condition is no text (FAILED_RECOGNIZE_PREDICATE), asks for more
            than partition columns (NON_PARTITION_COLUMN_REFERENCE), has a subquery
            (UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES) or is no boolean.
    """
    kept = snapshot
    for predicate in predicates:
        statement = resolve_partition_condition(spark, predicate, snapshot.config)
        kept = kept.with_files(matching_files(spark, kept, statement))
    return kept.files
