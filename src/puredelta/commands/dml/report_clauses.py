"""The clauses of a statement as text, numbered in the user's order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from typing_extensions import assert_never

from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedClause,
    ResolvedDelete,
    ResolvedStatement,
)
from puredelta.commands.dml.spec import (
    Assignments,
    Clause,
    Delete,
    DeleteSpec,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    ReplaceBy,
    ReplaceSpec,
    Star,
    StatementSpec,
    Update,
    UpdateSpec,
    action_word,
    operation_name,
)
from puredelta.commands.statement.parts import ClauseReport
from puredelta.spark.session.row_bitmap import count_rows


class ClauseKind(Enum):
    """The pairs of rows for which a clause is tried."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedClause:
    """A clause with its number in the statement, and its index among those of its kind."""

    number: int
    kind: ClauseKind
    place: int
    text: str
    action: str


def statement_name(spec: StatementSpec) -> str:
    """Return the statement's name in a report."""
    match spec:
        case MergeSpec():
            return "MERGE"
        case ReplaceSpec():
            return "WRITE with replaceWhere" if spec.by is None else "WRITE with replaced rows"
        case _:
            return operation_name(spec)


def stated_clauses(spec: StatementSpec, statement: ResolvedStatement) -> tuple[StatedClause, ...]:
    """Return the clauses in the order of the statement; conditions are those of the history."""
    match spec:
        case MergeSpec():
            return tuple(_of_merge(spec, statement))
        case ReplaceSpec(by=ReplaceBy() as by):
            return (
                _stated(1, ClauseKind.MATCHED, f"DELETE ON {by.text}", "delete"),
                _stated(2, ClauseKind.NOT_MATCHED, "INSERT the rows that are written", "insert"),
            )
        case ReplaceSpec():
            return (
                _stated(1, ClauseKind.NOT_MATCHED, "INSERT the rows that are written", "insert"),
                _stated(2, ClauseKind.BY_SOURCE, f"DELETE WHERE {spec.where}", "delete"),
            )
        case UpdateSpec():
            text = f"UPDATE SET {_columns(spec.assignments)}{_where(statement)}"
            return (_stated(1, ClauseKind.BY_SOURCE, text, "update"),)
        case DeleteSpec():
            return (_stated(1, ClauseKind.BY_SOURCE, f"DELETE{_where(statement)}", "delete"),)
        case _:
            assert_never(spec)


def _stated(number: int, kind: ClauseKind, text: str, action: str) -> StatedClause:
    return StatedClause(number=number, kind=kind, place=0, text=text, action=action)


def _of_merge(spec: MergeSpec, statement: ResolvedStatement) -> Iterator[StatedClause]:
    resolved: dict[ClauseKind, Sequence[ResolvedClause]] = {
        ClauseKind.MATCHED: statement.matched,
        ClauseKind.NOT_MATCHED: statement.not_matched,
        ClauseKind.BY_SOURCE: statement.not_matched_by_source,
    }
    places: Counter[ClauseKind] = Counter()
    for number, clause in enumerate(spec.clauses, 1):
        kind = _kind(clause)
        place = places[kind]
        places[kind] += 1
        condition = resolved[kind][place].condition
        when = kind.value if condition is None else f"{kind.value} AND {condition.sql}"
        yield StatedClause(
            number=number,
            kind=kind,
            place=place,
            text=f"{when} THEN {_action(clause)}",
            action=action_word(clause),
        )


def _kind(clause: Clause) -> ClauseKind:
    match clause:
        case Matched():
            return ClauseKind.MATCHED
        case NotMatched():
            return ClauseKind.NOT_MATCHED
        case NotMatchedBySource():
            return ClauseKind.BY_SOURCE
        case _:
            assert_never(clause)


def _action(clause: Clause) -> str:
    action = clause.action
    if isinstance(action, Delete):
        return "DELETE"
    columns = _columns(action.assignments)
    if isinstance(action, Update):
        return f"UPDATE SET {columns}"
    return "INSERT *" if action.assignments is Star.STAR else f"INSERT ({columns})"


def _columns(assignments: Assignments) -> str:
    if assignments is Star.STAR:
        return "*"
    return ", ".join(assignment.column for assignment in assignments)


def _where(statement: ResolvedStatement) -> str:
    (clause,) = statement.not_matched_by_source
    return "" if clause.condition is None else f" WHERE {clause.condition.sql}"


def clause_reports(
    clauses: Sequence[StatedClause],
    positions: RowPositions | None = None,
    *,
    inserts: Sequence[int | None] = (),
    whole_files: int | None = None,
) -> tuple[ClauseReport, ...]:
    """Return the clauses with their numbers of rows, as far as these are known.

    ``inserts`` has a count for each NOT MATCHED clause; ``whole_files`` is that of a DELETE of
    whole files, which has no positions.
    """

    def rows(clause: StatedClause) -> int | None:
        match clause.kind:
            case ClauseKind.NOT_MATCHED:
                return inserts[clause.place] if clause.place < len(inserts) else None
            case ClauseKind.MATCHED if positions is not None:
                return count_rows(positions.matched[clause.place].values())
            case ClauseKind.BY_SOURCE if whole_files is not None:
                return whole_files
            case ClauseKind.BY_SOURCE if positions is not None:
                return count_rows(positions.by_source[clause.place].values())
        return None

    return tuple(
        ClauseReport(number=c.number, text=c.text, action=c.action, rows=rows(c)) for c in clauses
    )


def fired_rows(statement: ResolvedStatement, positions: RowPositions, *, deletes: bool) -> int:
    """Return the number of target rows that clauses delete, or update."""
    clauses: list[MatchedClause | NotMatchedBySourceClause]
    clauses = [*statement.matched, *statement.not_matched_by_source]
    sets = (*positions.matched, *positions.by_source)
    return sum(
        count_rows(rows.values())
        for clause, rows in zip(clauses, sets, strict=True)
        if isinstance(clause.action, ResolvedDelete) is deletes
    )
