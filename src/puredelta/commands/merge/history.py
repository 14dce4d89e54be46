"""What the history says of a MERGE: plain SQL, where the reference writes plan ids (W-16)."""

from __future__ import annotations

from puredelta.commands.row_changes.statement import (
    ResolvedClause,
    ResolvedDelete,
    ResolvedInsert,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.protocol.actions import operations
from puredelta.protocol.actions.operations import ClauseSummary, Operation


def merge_operation(merge: ResolvedStatement) -> Operation:
    """Return name and parameters for ``commitInfo`` (M-161)."""
    return operations.merge(
        predicate=merge.on.sql,
        matched=map(_summary, merge.matched),
        not_matched=map(_summary, merge.not_matched),
        not_matched_by_source=map(_summary, merge.not_matched_by_source),
    )


def _summary(clause: ResolvedClause) -> ClauseSummary:
    condition = None if clause.condition is None else clause.condition.sql
    match clause.action:
        case ResolvedUpdate():
            return ClauseSummary(action="update", condition=condition)
        case ResolvedDelete():
            return ClauseSummary(action="delete", condition=condition)
        case ResolvedInsert():
            return ClauseSummary(action="insert", condition=condition)
