"""What becomes of the touched files, one by one and in sum. Pure, but for footers of files without
statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from puredelta.commands.dml.decide.decide import Decision
from puredelta.commands.dml.metrics import FileCounts
from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.report.parts import (
    DECISIONS_MAX,
    FileAction,
    FileDecision,
    FileTotals,
)
from puredelta.log.files.row_counts import logical_rows, physical_rows
from puredelta.log.footers.parquet_footer import map_footers, read_end_of
from puredelta.protocol.actions.actions import Add
from puredelta.spark.rewrite.contract import RewriteOrder
from puredelta.spark.session.row_bitmap import count_rows


def file_totals(decision: Decision, *, counted: FileCounts | None = None) -> FileTotals:
    """Return the sums; ``counted`` is what was written, where it was."""
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
    """Return the first decisions, and how many are left out."""
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
    """Return how many rows the copies will hold; reads footers where statistics lack the count."""
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
