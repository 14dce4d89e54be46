"""Stage 4: files that may hold rows of the statement, and the rule that skipped each other file.

A DELETE without a condition, or with one on partition columns alone, removes whole files. No data
file is read then, and no change files are written: readers of the change data feed take the rows
of removed files.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from puredelta.commands.dml.lookup_plan import plan_lookup
from puredelta.commands.dml.resolve.resolved_statement import (
    ResolvedCondition,
    ResolvedStatement,
    StatementKind,
)
from puredelta.commands.dml.search_plan import (
    Search,
    SearchLimits,
    SearchPlan,
    by_source_predicate,
    plan_search,
)
from puredelta.commands.dml.source import StatementContext
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import FileStatistics
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.skipping import pruning
from puredelta.log.skipping.pruning import Pruning, prune_files
from puredelta.protocol.schema.predicates import Predicate
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.scan_columns import partition_rows
from puredelta.spark.session.names import FILE_ORDINAL


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


def prune(context: StatementContext) -> SearchPlan:
    """Choose the files to search, and the kind of search; waits for the parsing of statistics.

    Runs nothing, except for a DELETE of whole files on Spark Connect, which runs one job.
    """
    statement, settings, source = context.statement, context.settings, context.source
    if statement.kind is StatementKind.DELETE:
        (clause,) = statement.not_matched_by_source
        if decides_by_file(clause.condition, context.snapshot.config):
            return _whole_files(context)
    memory = settings.workers.memory

    def prune_files(files: FileTable, predicate: Predicate, known: FileStatistics) -> Pruning:
        return pruning.prune(
            files,
            context.snapshot.config,
            predicate,
            by_statistics=settings.skips_by_statistics,
            statistics=known,
        )

    return plan_search(
        statement,
        context.snapshot.files,
        source.profile,
        prune=prune_files,
        limits=SearchLimits(
            broadcast_bytes_max=settings.broadcast_bytes_max,
            look_up=partial(
                plan_lookup,
                statement,
                source.num_rows,
                source.names,
                memory,
                texts=source.texts,
                ansi=context.command.session.ansi,
            ),
        ),
        statistics=context.statistics.result(),
    )


def _whole_files(context: StatementContext) -> SearchPlan:
    statement, files = context.statement, context.snapshot.files
    return SearchPlan(
        candidates=matching_files(context.spark, context.snapshot, statement),
        num_files=len(files),
        search=Search.WHOLE_FILES,
        read_predicate=by_source_predicate(statement.not_matched_by_source),
    )
