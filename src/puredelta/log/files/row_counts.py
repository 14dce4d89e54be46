"""Counting rows from the log, and the laws that the counts of a row-changing commit obey.

The laws are those delta-spark checks before it commits a MERGE (M-94, laws 1 to 6). They
hold for every command that rewrites files, and they catch what no test of a result can: rows
lost or doubled between the old files and the new ones. All functions are pure; what a command
did is passed in as counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from puredelta.errors import DeltaError, Message
from puredelta.protocol.actions.actions import Action, Add, Remove
from puredelta.protocol.schema.schema_json import parse_json

LEADING_NUM_RECORDS = r'^\s*\{\s*"numRecords"\s*:\s*(?P<rows>[0-9]{1,18})\s*[,}]'
"""Finds the count where writers put it, at the start: text inside minValues never matches."""
_LEADING = re.compile(LEADING_NUM_RECORDS, re.ASCII)
_COUNT_MAX = 10**18 - 1


def physical_rows(file: Add | Remove) -> int | None:
    """Return the number of rows in the Parquet file, deleted ones included; None if unknown."""
    return None if file.stats is None else num_records(file.stats)


def num_records(stats: str) -> int | None:
    """Return numRecords of a statistics text; None if it is missing or no count (X-69)."""
    if (leading := _LEADING.match(stats)) is not None:
        return int(leading[1])
    try:
        content = parse_json(stats)
    except ValueError:
        return None
    count = content.get("numRecords") if isinstance(content, dict) else None
    if not isinstance(count, int) or isinstance(count, bool):
        return None
    return count if 0 <= count <= _COUNT_MAX else None


def logical_rows(file: Add | Remove) -> int | None:
    """Return the number of rows a reader sees: those the deletion vector does not delete."""
    rows = physical_rows(file)
    if rows is None or file.deletion_vector is None:
        return rows
    return rows - file.deletion_vector.cardinality


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRowCounts:
    """Logical rows of the files a commit adds and removes; None where statistics lack them."""

    added: int | None
    removed: int | None
    not_copied: int | None
    """Rows that stay in their file: those of added files that have a deletion vector."""


def count_file_rows(actions: Iterable[Action]) -> FileRowCounts:
    """Sum the rows of a commit's file actions."""
    added: list[int | None] = []
    removed: list[int | None] = []
    not_copied: list[int | None] = []
    for action in actions:
        match action:
            case Add():
                added.append(logical_rows(action))
                if action.deletion_vector is not None:
                    not_copied.append(added[-1])
            case Remove():
                removed.append(logical_rows(action))
            case _:
                pass
    return FileRowCounts(added=_sum(added), removed=_sum(removed), not_copied=_sum(not_copied))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """What a command says it did, in rows of the target table."""

    inserted: int
    updated: int
    deleted: int
    copied: int
    """Rows rewritten unchanged because a neighbour in their file changed."""


def row_count_problems(
    changes: RowChanges, files: FileRowCounts, *, may_insert: bool, may_delete: bool
) -> tuple[str, ...]:
    """Return every law that the counts break, as sentences.

    ``may_insert`` and ``may_delete`` say whether the statement has such a clause. A law about
    an unknown count is skipped.
    """
    laws = (
        *_laws_of_clauses(changes, files, may_insert=may_insert, may_delete=may_delete),
        *_laws_of_totals(changes, files),
    )
    return tuple(problem for holds, problem in laws if not holds)


def require_row_counts(
    operation: str,
    changes: RowChanges,
    files: FileRowCounts,
    *,
    may_insert: bool,
    may_delete: bool,
) -> None:
    """Refuse to commit what would lose or double rows.

    Raises:
        DeltaError: a law is broken (DELTA_NUM_RECORDS_MISMATCH); the table is unchanged.
    """
    problems = row_count_problems(changes, files, may_insert=may_insert, may_delete=may_delete)
    if not problems:
        return
    raise DeltaError(
        Message.NUM_RECORDS_MISMATCH_ROW_COUNTS,
        problems_shown="; ".join(problems),
        operation=operation,
        numAddedRecords=files.added,
        numRemovedRecords=files.removed,
        problems=problems,
    )


def _laws_of_clauses(
    changes: RowChanges, files: FileRowCounts, *, may_insert: bool, may_delete: bool
) -> Iterable[tuple[bool, str]]:
    """Laws 1 to 4: what the clauses of the statement allow at all."""
    if files.added is not None and files.removed is not None:
        yield (
            may_insert or files.added <= files.removed,
            "rows were added although nothing may be inserted",
        )
        yield (
            may_delete or files.added >= files.removed,
            "rows were lost although nothing may be deleted",
        )
    yield (
        may_insert or changes.inserted == 0,
        f"{changes.inserted} rows counted as inserted although nothing may be inserted",
    )
    yield (
        may_delete or changes.deleted == 0,
        f"{changes.deleted} rows counted as deleted although nothing may be deleted",
    )
    yield (
        min(changes.inserted, changes.updated, changes.deleted, changes.copied) >= 0,
        f"a count is negative ({changes})",
    )


def _laws_of_totals(changes: RowChanges, files: FileRowCounts) -> Iterable[tuple[bool, str]]:
    """Laws 5 and 6: every row of a touched file is counted exactly once."""
    if files.not_copied is None:
        return
    kept = changes.updated + changes.copied + files.not_copied
    counted = (
        f"updated {changes.updated} + copied {changes.copied} + left in place {files.not_copied}"
    )
    if files.removed is not None:
        yield (
            kept + changes.deleted == files.removed,
            f"{counted} + deleted {changes.deleted} is not the {files.removed} rows removed",
        )
    if files.added is not None:
        yield (
            kept + changes.inserted == files.added,
            f"{counted} + inserted {changes.inserted} is not the {files.added} rows added",
        )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
