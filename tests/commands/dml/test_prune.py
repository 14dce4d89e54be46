"""Stage 4 on a table: what is searched, and what the log says of the rest."""

from __future__ import annotations

from dataclasses import replace

from puredelta.commands.dml.prune import prune
from puredelta.commands.dml.resolve.resolved_statement import StatementKind
from puredelta.commands.dml.search_plan import Rule, Search
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.staged_source import SourceProfile, StagedSource
from puredelta.log.skipping.pruning import SkippedBy
from puredelta.protocol.schema.predicates import TRUE
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.spark.offload.workers import WorkerMemory, WorkerSettings
from tests.commands.dml.statements import (
    PAIR,
    by_source,
    condition,
    context_of,
    insert,
    matched,
    statement,
)
from tests.log.tables import add, equal

FILES = [add(f"{n}.parquet", ids=(10 * n, 10 * n + 9)) for n in range(6)]
PARTED = [replace(file, partition_values={"part": str(n % 2)}) for n, file in enumerate(FILES)]
BOUNDS = {("s0",): LeafStatistics(minimum=12, maximum=25, null_count=0)}
SOURCE = StagedSource(
    staged=None,
    schema=None,  # type: ignore[arg-type]
    profile=SourceProfile(num_rows=3, size_bytes=10, bounds=BOUNDS),
)


def test_each_rule_says_how_many_files_it_skipped_and_by_what() -> None:
    on = condition(equal("part", 0), pairs=(PAIR,))
    context = context_of(
        lambda config: statement(matched(), insert(), config=config, on=on),
        *PARTED,
        partitioned_by=("part",),
    )
    plan = prune(replace(context, source=SOURCE))
    assert [a.path for a in plan.candidates.adds()] == ["2.parquet"]
    assert [(some.rule, some.by, some.num_files) for some in plan.skipped] == [
        (Rule.ON_TARGET, SkippedBy.PARTITION_VALUES, 3),
        (Rule.SOURCE_KEYS, SkippedBy.STATISTICS, 2),
    ]
    total = context.snapshot.files.total_size_bytes
    skipped = sum(some.size_bytes for some in plan.skipped)
    assert total - skipped == plan.candidates.total_size_bytes
    assert "3 by conjuncts of ON over target columns (partition values)" in plan.describe()


def test_the_statistics_of_the_candidates_are_handed_on() -> None:
    context = replace(context_of(statement(matched()), *FILES), source=SOURCE)
    plan = prune(context)
    ((path, _),) = plan.statistics.columns
    assert path == ("id",)
    (known,) = plan.statistics.columns.values()
    assert known.low.to_pylist() == [10, 20]  # type: ignore[union-attr]
    assert plan.lookup is not None


def test_files_that_only_a_by_source_clause_reaches_have_their_statistics_too() -> None:
    few = by_source(where=condition(equal("id", 55)))
    context = replace(context_of(statement(matched(), few), *FILES), source=SOURCE)
    plan = prune(context)
    assert (plan.extra_candidates, plan.search) == (1, Search.LEFT_OUTER)
    (known,) = plan.statistics.columns.values()
    assert known.low.to_pylist() == [10, 20, 50]  # type: ignore[union-attr]


def test_statistics_that_do_not_count_skip_nothing() -> None:
    memory = WorkerMemory(task_max=1_000_000)
    settings = ExecutionSettings(skips_by_statistics=False, workers=WorkerSettings(memory=memory))
    context = context_of(statement(matched()), *FILES, settings=settings)
    plan = prune(replace(context, source=SOURCE))
    assert (len(plan.candidates), plan.skipped) == (6, ())


def test_workers_with_little_memory_leave_the_search_to_a_join() -> None:
    settings = ExecutionSettings(workers=WorkerSettings(memory=WorkerMemory(task_max=1)))
    context = context_of(statement(matched()), *FILES, settings=settings)
    plan = prune(replace(context, source=SOURCE))
    assert (plan.lookup, plan.search) == (None, Search.INNER)


def test_a_delete_of_every_row_takes_whole_files() -> None:
    plan = prune(context_of(statement(by_source(), kind=StatementKind.DELETE), *FILES))
    assert (plan.search, len(plan.candidates)) == (Search.WHOLE_FILES, 6)
    assert plan.read_predicate == TRUE
    others = prune(context_of(statement(by_source(), kind=StatementKind.REPLACE_WHERE), *FILES))
    assert others.search is Search.TARGET_ONLY
