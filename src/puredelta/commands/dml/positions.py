"""Row positions of a statement: the result of stage 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.spark.scan.bitmaps import CountedWords, RowsByFile
from puredelta.spark.session.row_bitmap import RowBitmap, count_rows
from puredelta.worker.lookup.conditions import NO_CLAUSE

SOURCE_SETS = 1 << 20
"""Offset of the clause number in records that name the source row of a pair."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowPositions:
    """The rows that a statement acts on, by number of the candidate file or the staged file."""

    matched: tuple[RowsByFile, ...] = ()
    """Target rows per MATCHED clause."""
    by_source: tuple[RowsByFile, ...] = ()
    """Target rows per NOT MATCHED BY SOURCE clause."""
    matched_source: RowsByFile = field(default_factory=dict)
    """Staged rows with a match, where the plan asked for them."""
    source_of: tuple[RowsByFile, ...] | None = None
    """Staged rows per MATCHED clause; ``None`` where they are not known or some staged row updates
    several target rows (M-74).
    """
    fallback: str | None = None
    """The reason why Spark joined, where Python workers had been asked to look keys up."""

    def touched(self) -> dict[int, RowBitmap]:
        """Return the rows that are removed from their files, by candidate file."""
        return united(*self.matched, *self.by_source)

    def describe(self) -> str:
        """Return one line for the log."""
        touched = self.touched()
        return f"{count_rows(touched.values())} rows in {len(touched)} files"


def united(*sets: RowsByFile) -> dict[int, RowBitmap]:
    """Return the union of the sets, by file."""
    result: dict[int, RowBitmap] = {}
    for rows in sets:
        for file, bitmap in rows.items():
            result[file] = result[file] | bitmap if file in result else bitmap
    return result


def no_positions(statement: ResolvedStatement, num_source_rows: int) -> RowPositions:
    """Return the outcome of a search that finds nothing."""
    return RowPositions(
        matched=tuple({} for _ in statement.matched),
        by_source=tuple({} for _ in statement.not_matched_by_source),
        source_of=tuple({} for _ in statement.matched) if num_source_rows == 0 else None,
    )


def positions_of(
    words: CountedWords, statement: ResolvedStatement, *, finds_source_rows: bool
) -> RowPositions:
    """Group the counted rows by clause: target rows, and source rows where requested."""
    first_by_source = len(statement.matched)
    by_source = range(first_by_source, first_by_source + len(statement.not_matched_by_source))
    return RowPositions(
        matched=tuple(words.select(n).files() for n in range(first_by_source)),
        by_source=tuple(words.select(n).files() for n in by_source),
        matched_source=words.select(*_source_sets(range(NO_CLAUSE, first_by_source))).files(),
        source_of=_source_of(words, statement.matched) if finds_source_rows else None,
    )


def _source_sets(clauses: range) -> list[int]:
    return [SOURCE_SETS + clause for clause in clauses]


def _source_of(
    words: CountedWords, matched: Sequence[MatchedClause]
) -> tuple[RowsByFile, ...] | None:
    """Return the staged rows per clause, unless one of them updates several target rows."""
    updates = [n for n, clause in enumerate(matched) if isinstance(clause.action, ResolvedUpdate)]
    if len(words.select(*(SOURCE_SETS + n for n in updates)).repeated()):
        return None
    return tuple(words.select(SOURCE_SETS + n).files() for n in range(len(matched)))
