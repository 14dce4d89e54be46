"""Stage 10: what is committed, and when nothing is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from puredelta.commands.dml.actions import (
    NOT_COUNTED,
    Outcome,
    PreparedCommit,
    commit,
    prepare_commit,
)
from puredelta.commands.dml.decide import Decision, FilePlan, plan_rows
from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.resolve.resolved_statement import StatementKind
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.verify import RowCounts
from puredelta.commands.dml.write import WrittenFiles
from puredelta.commands.statement.stages import StageTimer
from puredelta.log.commit.row_ids import PRESERVED_TAG
from puredelta.log.files.deletion_vectors import WrittenVectors
from puredelta.protocol.actions.actions import Remove, SetTransaction
from puredelta.protocol.schema.predicates import TRUE
from puredelta.spark.offload.rewrite import Rewritten
from puredelta.spark.write.written_files import WriteResult
from tests.commands.dml.statements import by_source, context_of, statement
from tests.log.tables import add, feature_protocol, remove

NOTHING = WrittenFiles(
    new=WriteResult.nothing(), copied=Rewritten(adds=(), num_rows=0), vectors=WrittenVectors()
)
COPY = replace(NOTHING, copied=Rewritten(adds=(add("c.parquet", rows=8),), num_rows=8))
APP = SetTransaction(app_id="app", version=3, last_updated_ms=1)


def started(kind: StatementKind, *, app: bool = False, **more: Any) -> StatementContext:
    context = context_of(
        lambda config: statement(by_source(), kind=kind, config=config),
        add("a.parquet", rows=10),
        **more,
    )
    settings = replace(context.command.settings, set_transaction=APP if app else None)
    return replace(context, command=replace(context.command, settings=settings))


def plan_of(context: StatementContext) -> SearchPlan:
    return SearchPlan(
        candidates=context.snapshot.files,
        num_files=1,
        search=Search.TARGET_ONLY,
        read_predicate=TRUE,
    )


def prepared(
    context: StatementContext, *removes: Remove, written: WrittenFiles = NOTHING
) -> PreparedCommit:
    positions = RowPositions(by_source=({},), source_of=())
    decision = Decision(
        positions=positions,
        rows=plan_rows(context.statement, positions, num_source_rows=0),
        files=FilePlan(),
        removes=removes,
    )
    times = StageTimer(statement="t")
    times("4 prune", int)
    times("8 write", int)
    counts = RowCounts(source=0, by_source_deleted=2, copied=8)
    return prepare_commit(context, plan_of(context), decision, written, rows=counts, times=times)


@pytest.mark.parametrize("kind", StatementKind)
def test_files_that_change_are_committed(kind: StatementKind) -> None:
    made = prepared(started(kind), remove("a.parquet"), written=COPY)
    assert made.is_due
    assert [action.path for action in made.request.actions] == ["a.parquet", "c.parquet"]  # type: ignore[union-attr]
    assert made.request.operation.name == kind.name
    assert made.request.is_blind_append is False


@pytest.mark.parametrize(
    ("kind", "app", "skips", "due"),
    [
        (StatementKind.MERGE, False, True, False),
        (StatementKind.MERGE, True, True, True),
        (StatementKind.UPDATE, True, True, True),
        (StatementKind.DELETE, True, True, False),
        (StatementKind.DELETE, False, False, True),
        (StatementKind.REPLACE_WHERE, False, False, False),
        (StatementKind.REPLACE_WHERE, True, True, False),
    ],
)
def test_a_statement_that_changes_nothing(
    kind: StatementKind,
    app: bool,
    skips: bool,
    due: bool,
) -> None:
    """M-92: the version of an application counts as executed."""
    settings = ExecutionSettings(skips_empty_commits=skips)
    assert prepared(started(kind, app=app, settings=settings)).is_due is due


def test_times_of_stages_are_those_of_the_history() -> None:
    metrics = prepared(started(StatementKind.DELETE), remove("a.parquet"), written=COPY).metrics
    assert (metrics["scanTimeMs"], metrics["rewriteTimeMs"]) == (1, 1)
    assert metrics["executionTimeMs"] >= 1
    unchanged = prepared(started(StatementKind.DELETE)).metrics
    assert unchanged["rewriteTimeMs"] == 0


def test_rows_of_a_tracked_table_keep_their_ids() -> None:
    """M-110."""
    tracked = {
        "protocol": feature_protocol("rowTracking", "domainMetadata"),
        "delta__enableRowTracking": "true",
        "delta__rowTracking__materializedRowIdColumnName": "_id",
        "delta__rowTracking__materializedRowCommitVersionColumnName": "_version",
    }
    context = started(StatementKind.DELETE, **tracked)
    assert prepared(context, remove("a.parquet")).request.tags == {PRESERVED_TAG: "true"}
    assert prepared(started(StatementKind.DELETE), remove("a.parquet")).request.tags is None


def test_a_commit_is_made_once_it_is_due() -> None:
    context = started(StatementKind.DELETE)
    discarded: list[str] = []

    def discard() -> None:
        discarded.append("all")

    nothing = commit(context, prepared(context), plan_of(context), discard=discard)
    assert (nothing.version, nothing.affected, discarded) == (None, 2, [])
    made = prepared(context, remove("a.parquet"), written=COPY)
    outcome = commit(context, made, plan_of(context), discard=discard)
    assert (outcome.version, discarded) == (1, [])
    assert [a.path for a in context.command.log.snapshot().files.adds()] == ["c.parquet"]


def test_what_is_affected() -> None:
    uncounted = RowCounts(source=0, is_counted=False)
    plan = plan_of(started(StatementKind.DELETE))
    outcome = Outcome(version=1, rows=uncounted, metrics={}, plan=plan)
    assert outcome.affected == NOT_COUNTED
    assert Outcome.of_earlier().affected is None
    assert not Outcome.of_earlier().was_executed
