"""Stage 4: the files that may hold rows of the statement, and why the others were skipped."""

from __future__ import annotations

from functools import partial

from puredelta.commands.dml.prune.key_lookup import plan_lookup
from puredelta.commands.dml.prune.plan import Search, SearchLimits, SearchPlan, plan_search
from puredelta.commands.dml.prune.rules import by_source_predicate
from puredelta.commands.dml.prune.whole_files import decides_by_file, matching_files
from puredelta.commands.dml.resolve.statement import StatementKind
from puredelta.commands.dml.source.context import StatementContext
from puredelta.log.files.file_statistics import FileStatistics
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping import pruning
from puredelta.log.skipping.pruning import Pruning
from puredelta.protocol.values.predicates import Predicate


def prune(context: StatementContext) -> SearchPlan:
    """Choose the files to search, and how; waits for the statistics that are being parsed.

    Runs nothing, but a DELETE of whole files on Spark Connect runs one job.
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
            look_up=partial(plan_lookup, statement, source.num_rows, source.names, memory),
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
