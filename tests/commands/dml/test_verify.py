"""Stage 9: counts that do not agree commit nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from puredelta.commands.dml.decide import Decision, FilePlan, RowPlan, plan_rows
from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.resolve.resolved_statement import StatementKind
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.verify import (
    RowCounts,
    count_inserted,
    require_changes_recorded,
    verify,
)
from puredelta.commands.dml.write import WrittenFiles
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.files.deletion_vectors import WrittenVectors
from puredelta.protocol.schema.predicates import TRUE
from puredelta.spark.offload.rewrite import Rewritten
from puredelta.spark.write.written_files import WriteResult
from tests.commands.dml.statements import (
    by_source,
    context_of,
    insert,
    matched,
    rows,
    statement,
    update,
)
from tests.log.tables import add, remove

OLD = add("a.parquet", rows=10)


def new_files(num_rows: int, **more: Any) -> WriteResult:
    adds = (add("n.parquet", rows=num_rows),) if num_rows else ()
    return WriteResult(directories=("d",), adds=adds, num_rows=num_rows, **more)


def verified(*, new: int, copied: int, settings: ExecutionSettings | None = None) -> RowCounts:
    """Of an upsert that updates rows 1 and 2 of ten, with five source rows."""
    context = context_of(
        lambda config: statement(matched(update()), insert(), config=config),
        OLD,
        num_source_rows=5,
        settings=settings,
    )
    positions = RowPositions(matched=(rows(1, 2),), matched_source=rows(3, 4))
    decision = Decision(
        positions=positions,
        rows=plan_rows(context.statement, positions, num_source_rows=5),
        files=FilePlan(),
        removes=(remove("a.parquet", stats=OLD.stats),),
    )
    written = WrittenFiles(
        new=new_files(new),
        copied=Rewritten(adds=(add("c.parquet", rows=copied),), num_rows=copied),
        vectors=WrittenVectors(),
    )
    plan = SearchPlan(
        candidates=context.snapshot.files, num_files=1, search=Search.INNER, read_predicate=TRUE
    )
    return verify(context, plan, decision, written)


def test_counts_that_agree() -> None:
    counted = verified(new=5, copied=8)
    assert counted == RowCounts(source=5, inserted=3, matched_updated=2, copied=8)
    assert counted.describe() == "3 inserted, 2 updated, 0 deleted"


@pytest.mark.parametrize("counts", [{"new": 4, "copied": 8}, {"new": 5, "copied": 7}])
def test_rows_that_are_lost_commit_nothing(counts: dict[str, int]) -> None:
    with pytest.raises(DeltaError, match="This is a bug") as refused:
        verified(**counts)
    assert refused.value.code is ErrorCode.NUM_RECORDS_MISMATCH


def test_the_laws_of_all_commits_may_be_switched_off() -> None:
    off = ExecutionSettings(checks_row_counts=False)
    assert verified(new=5, copied=7, settings=off).copied == 7
    with pytest.raises(DeltaError):
        verified(new=4, copied=8, settings=off)


def row_plan(**more: Any) -> RowPlan:
    plan = RowPlan(
        from_source=(),
        from_target=(),
        deleted={},
        inserts=True,
        num_inserts=None,
        recorded=False,
        keeps_row_ids=False,
    )
    return replace(plan, **more)


def test_conditions_of_inserts_leave_their_number_open() -> None:
    assert count_inserted("MERGE", row_plan(), new_files(4)) == 4
    assert count_inserted("MERGE", row_plan(num_inserts=4), new_files(4)) == 4
    with pytest.raises(DeltaError, match="0 updates and 3 inserts were due"):
        count_inserted("MERGE", row_plan(num_inserts=3), new_files(4))


def test_every_change_is_recorded_once() -> None:
    """M-121: an update is two rows of the feed."""
    counted = RowCounts(source=3, inserted=1, matched_updated=2, matched_deleted=3)
    feed = row_plan(recorded=True)
    require_changes_recorded("MERGE", counted, feed, new_files(3, num_changes=8))
    with pytest.raises(DeltaError, match="7 change rows where 8 were due"):
        require_changes_recorded("MERGE", counted, feed, new_files(3, num_changes=7))
    with pytest.raises(DeltaError, match="8 change rows where 0 were due"):
        require_changes_recorded("MERGE", counted, row_plan(), new_files(3, num_changes=8))


@pytest.mark.parametrize(
    ("stats", "expected"),
    [(OLD.stats, (10, True)), ("{}", (0, False))],
)
def test_rows_of_whole_files_are_those_the_log_counts(
    stats: str | None, expected: tuple[int, bool]
) -> None:
    context = context_of(
        lambda config: statement(by_source(), kind=StatementKind.DELETE, config=config),
        replace(OLD, stats=stats),
    )
    plan = SearchPlan(
        candidates=context.snapshot.files,
        num_files=1,
        search=Search.WHOLE_FILES,
        read_predicate=TRUE,
    )
    decision = Decision(
        positions=RowPositions(), rows=row_plan(inserts=False), files=FilePlan(), removes=()
    )
    nothing = WrittenFiles(
        new=new_files(0), copied=Rewritten(adds=(), num_rows=0), vectors=WrittenVectors()
    )
    counted = verify(context, plan, decision, nothing)
    assert (counted.deleted, counted.is_counted) == expected
