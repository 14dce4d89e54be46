"""Stage 6: what becomes of touched files, and of which statements rows are only marked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from puredelta.commands.dml.decide import FilePlan, RewriteStrategy, decide, plan_files
from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.resolve.resolved_statement import StatementKind
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.schema.predicates import TRUE
from tests.commands.dml.statements import by_source, context_of, matched, rows, statement, update
from tests.log.tables import add, feature_protocol

COPY, MARK, CHEAPER = (
    RewriteStrategy.COPY_ON_WRITE,
    RewriteStrategy.DELETION_VECTORS,
    RewriteStrategy.PER_FILE,
)
FEATURES = feature_protocol("changeDataFeed", readers=("deletionVectors",))
VECTORS = {"protocol": FEATURES, "delta__enableDeletionVectors": "true"}
FEED = {**VECTORS, "delta__enableChangeDataFeed": "true"}


def planned(strategy: RewriteStrategy, *positions: int, **options: Any) -> FilePlan:
    options.setdefault("deleted", {})
    files = FileTable.of([options.pop("file", add("a.parquet", rows=10))])
    return plan_files(files, rows(*positions), strategy, **options)


def shape(plan: FilePlan) -> tuple[int, int, int]:
    return len(plan.rewritten), len(plan.marked), len(plan.dropped)


@pytest.mark.parametrize(
    ("strategy", "expected"), [(COPY, (1, 0, 0)), (MARK, (0, 1, 0)), (CHEAPER, (0, 1, 0))]
)
def test_a_file_that_keeps_rows(strategy: RewriteStrategy, expected: tuple[int, ...]) -> None:
    assert shape(planned(strategy, 1, 2)) == expected


@pytest.mark.parametrize("strategy", RewriteStrategy)
def test_a_file_that_loses_every_row_is_dropped_without_a_task(strategy: RewriteStrategy) -> None:
    """M-83, M-133."""
    every = tuple(range(10))
    assert shape(planned(strategy, *every)) == (0, 0, 1)
    assert shape(planned(strategy, *every[:9], deleted={0: np.array([9])})) == (0, 0, 1)
    uncounted = add("a.parquet", rows=11)
    assert shape(planned(strategy, *every, file=uncounted))[2] == 0


def test_rows_that_a_vector_hides_stay_hidden() -> None:
    plan = planned(COPY, 1, 2, deleted={0: np.array([2, 7])})
    assert plan.rewritten[0].dropped.rows().tolist() == [1, 2, 7]


def test_a_large_file_of_mostly_deleted_rows_is_copied() -> None:
    large = replace(add("a.parquet", rows=10), size_bytes=64 * 1024 * 1024)
    assert shape(planned(CHEAPER, *range(7), file=large)) == (1, 0, 0)
    assert shape(planned(CHEAPER, *range(5), file=large)) == (0, 1, 0)


def search_plan(context: Any, how: Search = Search.TARGET_ONLY) -> SearchPlan:
    return SearchPlan(
        candidates=context.snapshot.files, num_files=1, search=how, read_predicate=TRUE
    )


def decided(
    kind: StatementKind, action: Any, how: Search = Search.TARGET_ONLY, **table: Any
) -> Any:
    session = table.pop("session", None)
    context = context_of(
        lambda config: statement(by_source(action), kind=kind, config=config),
        add("a.parquet", rows=10),
        session=session,
        **table,
    )
    positions = RowPositions(by_source=(rows(1, 2),), source_of=())
    if how is Search.WHOLE_FILES:
        positions = RowPositions(by_source=({},), source_of=())
    return decide(context, search_plan(context, how), positions)


@pytest.mark.parametrize("kind", StatementKind)
def test_rows_are_marked_where_table_and_session_want_it(kind: StatementKind) -> None:
    """M-130."""
    name = "delete" if kind is StatementKind.REPLACE_WHERE else kind.name.lower()
    off = {f"spark__databricks__delta__{name}__deletionVectors__persistent": "false"}
    on = dict.fromkeys(off, "true")
    table = {"session": on, **VECTORS}
    assert shape(decided(kind, by_source().action, **table).files) == (0, 1, 0)
    assert shape(decided(kind, by_source().action, session=off, **VECTORS).files) == (1, 0, 0)
    assert shape(decided(kind, by_source().action, session=on).files) == (1, 0, 0)


def test_readers_of_the_feed_infer_deletes_from_vectors() -> None:
    deleted = decided(StatementKind.DELETE, by_source().action, **FEED)
    assert (deleted.rows.recorded, shape(deleted.files)) == (False, (0, 1, 0))
    updated = decided(StatementKind.UPDATE, update(reads_target=True), **FEED)
    assert updated.rows.recorded


def test_whole_files_are_dropped_and_nothing_is_written() -> None:
    decision = decided(StatementKind.DELETE, by_source().action, Search.WHOLE_FILES, **FEED)
    assert shape(decision.files) == (0, 0, 1)
    assert [remove.path for remove in decision.removes] == ["a.parquet"]
    assert decision.rows.is_empty
    assert not decision.changes_nothing


def test_a_table_that_only_takes_appends_refuses_before_files_are_written() -> None:
    """M-111."""
    with pytest.raises(InvalidRequestError) as refused:
        decided(StatementKind.MERGE, by_source().action, delta__appendOnly="true")
    assert refused.value.code is ErrorCode.CANNOT_MODIFY_APPEND_ONLY


def test_positions_that_touch_nothing_change_nothing() -> None:
    context = context_of(lambda config: statement(matched(), config=config), add("a.parquet"))
    decision = decide(context, search_plan(context), RowPositions(matched=({},)))
    assert decision.changes_nothing
    assert (
        decision.describe() == "0 rows updated, 0 inserted; 0 files rewritten, 0 marked, 0 dropped"
    )
