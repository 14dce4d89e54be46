"""Touched files of a statement, and concurrent commits of other writers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from puredelta.commands.command import Command
from puredelta.commands.dml.decide import Decision
from puredelta.commands.dml.metrics import FileCounts
from puredelta.commands.dml.search_plan import SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.statement.parts import (
    DECISIONS_MAX,
    FileAction,
    FileDecision,
    FileTotals,
    ForeignCommit,
)
from puredelta.errors import DeltaError
from puredelta.log.commit.commit_request import ReadSet
from puredelta.log.commit.conflict_errors import conflict_error
from puredelta.log.commit.conflicts import OurCommit, WinningCommit, find_conflicts, isolation_level
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.parquet_footer import map_footers, read_end_of
from puredelta.log.files.row_counts import logical_rows, physical_rows
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.spark.offload.rewrite import RewriteOrder
from puredelta.spark.session.row_bitmap import count_rows


def file_totals(decision: Decision, *, counted: FileCounts | None = None) -> FileTotals:
    """Return the sums; ``counted`` has the counts of the write, if there was one."""
    plan = decision.files
    return FileTotals(
        rewritten=len(plan.rewritten),
        rewritten_bytes=_size(order.add for order in plan.rewritten),
        marked=len(plan.marked),
        marked_bytes=_size(order.add for order in plan.marked),
        removed=len(plan.dropped),
        removed_bytes=_size(plan.dropped),
        added=None if counted is None else counted.added,
        added_bytes=None if counted is None else counted.added_bytes,
        change_files=None if counted is None else counted.change_files,
    )


def _size(adds: Iterable[Add]) -> int:
    return sum(add.size_bytes for add in adds)


def file_decisions(decision: Decision) -> tuple[tuple[FileDecision, ...], int]:
    """Return the first decisions, and the number of those left out."""
    plan = decision.files
    total = len(plan.rewritten) + len(plan.marked) + len(plan.dropped)
    found: list[FileDecision] = []
    for made in _decisions(decision):
        if len(found) == DECISIONS_MAX:
            break
        found.append(made)
    return tuple(found), total - len(found)


def _decisions(decision: Decision) -> Iterator[FileDecision]:
    plan = decision.files
    for order in plan.rewritten:
        yield _decided(order, FileAction.REWRITE, "some of its rows change, the others are copied")
    for order in plan.marked:
        yield _decided(order, FileAction.MARK, "the rows that change are hidden where they are")
    for add in plan.dropped:
        yield FileDecision(
            path=add.path,
            action=FileAction.REMOVE,
            reason="every row of it goes",
            size_bytes=add.size_bytes,
            rows_changed=logical_rows(add),
            rows_copied=0,
        )


def _decided(order: RewriteOrder, action: FileAction, reason: str) -> FileDecision:
    rows, gone = physical_rows(order.add), len(order.dropped)
    copied = None if rows is None else rows - gone
    vector = order.add.deletion_vector
    return FileDecision(
        path=order.add.path,
        action=action,
        reason=reason,
        size_bytes=order.add.size_bytes,
        rows_changed=gone - (0 if vector is None else vector.cardinality),
        rows_copied=copied if action is FileAction.REWRITE else 0,
    )


def count_copied(context: StatementContext, decision: Decision) -> int:
    """Return the number of rows in the copies; reads footers where statistics lack the count."""
    orders = decision.files.rewritten
    known = [physical_rows(order.add) for order in orders]
    unknown = [order.add for order, rows in zip(orders, known, strict=True) if rows is None]
    store = context.store
    read = map_footers(
        unknown,
        lambda _, footer: int(footer.num_rows),
        read_end=lambda add, num_bytes: read_end_of(add, store, num_bytes),
        name=lambda add: add.path,
    )
    rows = sum(count for count in known if count is not None) + sum(read)
    return rows - count_rows(order.dropped for order in orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCommit:
    """The future commit of a statement, as far as conflict rules need it."""

    plan: SearchPlan
    removes: tuple[Remove, ...]
    judges_rows_alone: bool


def foreign_commits(
    command: Command, tried: TriedCommit, *, since: int
) -> tuple[ForeignCommit, ...]:
    """Return the commits after version ``since``, each with its possible conflict.

    The conflict is that of a statement that had read version ``since``. Where deletion vectors let
    writers share a file, rows of the same file are not compared, so a reported conflict may not
    occur. Reads the log alone.
    """
    found = []
    for commit in command.log.read_commits(since):
        winner = WinningCommit.of(commit)
        error = _conflict(command, tried, winner)
        found.append(
            ForeignCommit(
                version=winner.version,
                operation=winner.info.operation or "unknown",
                conflict=None if error is None else error.message,
                error=None if error is None else type(error).__name__,
            )
        )
    return tuple(found)


def _conflict(command: Command, tried: TriedCommit, winner: WinningCommit) -> DeltaError | None:
    config, plan = command.snapshot.config, tried.plan
    reads = ReadSet().with_files(
        plan.read_predicate, plan.candidates, judges_rows_alone=tried.judges_rows_alone
    )
    # A file that a commit removed is no candidate any more: it was one if its rows could match.
    removed = tuple(r for r in winner.removes if r.data_change)
    table = FileTable.of(map(_as_add, removed))
    reads = reads.with_files(
        plan.read_predicate, table.select(prune_files(table, config, plan.read_predicate))
    )
    ours = OurCommit(
        actions=tried.removes,
        isolation=isolation_level(tried.removes or (_ANY_ADD,), command.snapshot.metadata),
        is_blind_append=False,
    )
    conflicts = find_conflicts(ours, winner, read_set=reads, config=config)
    if not conflicts:
        return None
    name = f"delta.`{command.log.root_uri.removeprefix('file:')}`"
    return conflict_error(
        conflicts, winner, table=config.metadata.name or name, read_version=winner.version - 1
    )


def _as_add(remove: Remove) -> Add:
    return Add(
        path=remove.path,
        partition_values=remove.partition_values or {},
        size_bytes=remove.size_bytes or 0,
        modified_ms=0,
        data_change=True,
        stats=remove.stats,
    )


_ANY_ADD = Add(path="new", partition_values={}, size_bytes=0, modified_ms=0, data_change=True)
"""Placeholder for the files of a statement that only adds files."""
