"""The plan of the search: candidate files, pruning rules, and a lookup of keys or a join.

A file that is pruned wrongly keeps its old rows (M-82), so every unknown is TRUE.

Pure: the predicates of the statement and the bounds of the staged source are evaluated on the
statistics and partition values of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.commands.dml.resolve.conditions import range_pair
from puredelta.commands.dml.resolve.resolved_statement import (
    EquiPair,
    NotMatchedBySourceClause,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.commands.dml.staged_source import SourceProfile
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED, FileStatistics
from puredelta.log.skipping.pruning import Pruning, SkippedBy
from puredelta.protocol.schema.predicates import (
    FALSE,
    TRUE,
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    OneOf,
    Or,
    Predicate,
)
from puredelta.protocol.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGRAL,
    DataType,
    DecimalType,
    PrimitiveType,
)
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.quantities import counted
from puredelta.spark.offload.key_lookup import KeyLookup

_NEVER_PRUNED = frozenset({FLOAT, DOUBLE})
"""NaN equals NaN in Spark and is outside the bounds that writers store."""


class Rule(Enum):
    """Reasons to skip a file in the search for matches."""

    ON_TARGET = "conjuncts of ON over target columns"
    SOURCE_KEYS = "keys of the source"
    MATCHED_CONDITIONS = "conditions of all MATCHED clauses"


def match_rules(statement: ResolvedStatement, source: SourceProfile) -> Mapping[Rule, Predicate]:
    """Return the predicates of rows with a relevant match, in the order of application."""
    return {
        Rule.ON_TARGET: And(statement.on.parts.target_only),
        Rule.SOURCE_KEYS: _all_of(
            [
                *(key_predicate(pair, source) for pair in statement.on.parts.pairs),
                _within(statement, source),
            ]
        ),
        Rule.MATCHED_CONDITIONS: _matched_predicate(statement),
    }


def read_predicate(statement: ResolvedStatement, source: SourceProfile) -> Predicate:
    """Return a predicate that every target row satisfies on which the result depends."""
    by_source = by_source_predicate(statement.not_matched_by_source)
    if source.num_rows == 0:
        return by_source
    matched = _all_of(list(match_rules(statement, source).values()))
    if by_source == FALSE:
        return matched
    return TRUE if TRUE in (matched, by_source) else Or((matched, by_source))


def _matched_predicate(statement: ResolvedStatement) -> Predicate:
    """M-80: where only MATCHED clauses act, skip rows for which none of them can fire."""
    if statement.not_matched or statement.not_matched_by_source:
        return TRUE
    parts = [And(c.condition.parts.target_only) if c.condition else TRUE for c in statement.matched]
    return TRUE if TRUE in parts else Or(tuple(parts))


def by_source_predicate(clauses: tuple[NotMatchedBySourceClause, ...]) -> Predicate:
    """Return the predicate of rows for which any of these clauses may fire (W-2)."""
    parts = [And(c.condition.parts.target_only) if c.condition else TRUE for c in clauses]
    return TRUE if TRUE in parts else Or(tuple(parts))


def key_predicate(pair: EquiPair, source: SourceProfile) -> Predicate:
    """Return the predicate of target rows that may equal a key of the source (W-1).

    Only where both sides are of one kind, so that comparing needs no cast.
    """
    path = pair.source.path
    leaf = source.bounds.get(path)
    if leaf is None or not _comparable(pair.target.type, pair.source.type):
        return TRUE
    values = _values_predicate(pair, leaf, source)
    if pair.null_safe and values != TRUE and leaf.null_count != 0:
        return Or((IsNull(pair.target), values))
    return values


def _within(statement: ResolvedStatement, source: SourceProfile) -> Predicate:
    """Return the predicate of target rows between the least and the greatest bound of all ranges
    of the source.
    """
    found = range_pair(statement.on.parts)
    if found is None:
        return TRUE
    pair, _ = found
    low = None if pair.low is None else source.bounds.get(pair.low.path)
    high = None if pair.high is None else source.bounds.get(pair.high.path)
    parts: list[Predicate] = []
    if low is not None and low.minimum is not None:
        parts.append(Compare(CompareOp.GREATER_OR_EQUAL, pair.target, Const(low.minimum)))
    if high is not None and high.maximum is not None:
        parts.append(Compare(CompareOp.LESS_OR_EQUAL, pair.target, Const(high.maximum)))
    return _all_of(parts) if parts else TRUE


def _values_predicate(pair: EquiPair, leaf: LeafStatistics, source: SourceProfile) -> Predicate:
    if leaf.null_count == source.num_rows:
        return FALSE
    if (values := source.distinct.get(pair.source.path)) is not None:
        return OneOf(pair.target, values) if values else FALSE
    bounds: list[Predicate] = []
    if leaf.minimum is not None:
        bounds.append(Compare(CompareOp.GREATER_OR_EQUAL, pair.target, Const(leaf.minimum)))
    if leaf.maximum is not None:
        bounds.append(Compare(CompareOp.LESS_OR_EQUAL, pair.target, Const(leaf.maximum)))
    return And(tuple(bounds))


def _comparable(target: DataType | None, source: DataType | None) -> bool:
    if target in INTEGRAL and source in INTEGRAL:
        return True
    return (
        target == source
        and isinstance(target, PrimitiveType | DecimalType)
        and target not in _NEVER_PRUNED
    )


def _all_of(parts: list[Predicate]) -> Predicate:
    needed = tuple(part for part in parts if part != TRUE)
    return needed[0] if len(needed) == 1 else And(needed)


Prune: TypeAlias = Callable[[FileTable, Predicate, FileStatistics], Pruning]
"""Returns the files that may hold rows of the predicate; the statistics are of these files."""

_ONE_TASK_BYTES = 16 * 1024 * 1024
_OPEN_BYTES = 256 * 1024
"""The cost of opening a file, as bytes that could be read instead."""


class Search(Enum):
    """Ways to combine target rows and source rows."""

    NOTHING = "nothing to search"
    WHOLE_FILES = "partition values decide, every row of a file goes"
    TARGET_ONLY = "no source row: every target row is unmatched"
    INNER = "inner join"
    LEFT_OUTER = "left outer join from the target"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedByRule:
    """The number of files that a rule removed from those left by earlier rules."""

    rule: Rule
    by: SkippedBy
    num_files: int
    size_bytes: int = 0
    """Of these files."""

    def describe(self) -> str:
        """Return a text for the log."""
        return f"{self.num_files} by {self.rule.value} ({self.by.value})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """The decisions of one statement."""

    candidates: FileTable
    """Files that may hold a row for some clause, or a match that prevents an insert."""
    statistics: FileStatistics = NOTHING_PARSED
    """Of the candidates, as far as they are parsed."""
    num_files: int
    skipped: tuple[SkippedByRule, ...] = ()
    """Reasons why the other files are not searched for matches."""
    extra_candidates: int = 0
    """Files searched only because a NOT MATCHED BY SOURCE clause may reach them."""
    search: Search
    broadcast_source: bool = False
    lookup: KeyLookup | None = None
    """The lookup in the files; ``None`` if Spark joins, or reads rows where there is no source."""
    reads_little: bool = False
    """Whether one task reads candidates and source faster than a shuffle starts."""
    finds_source_rows: bool = False
    """Whether the search also returns the staged rows with a match."""
    checks_multiple_matches: bool = False
    """Several matches of one row are an error (M-70), but not of a sole DELETE (M-71)."""
    read_predicate: Predicate
    """Rows that the result depends on: other rows of concurrent writers cause no conflict."""

    def skipped_by_rule(self) -> Mapping[Rule, int]:
        """Return the number of files that each rule removed."""
        totals: dict[Rule, int] = {}
        for some in self.skipped:
            totals[some.rule] = totals.get(some.rule, 0) + some.num_files
        return totals

    def describe(self) -> str:
        """Return one line for the log."""
        notes = [f"skipped: {', '.join(some.describe() for some in self.skipped) or 'none'}"]
        if self.extra_candidates:
            notes.append(f"only for NOT MATCHED BY SOURCE: {self.extra_candidates}")
        return (
            f"{len(self.candidates)} of {counted(self.num_files, 'file')} searched "
            f"({'; '.join(notes)}); {self.search.value}, {self._mode()}"
        )

    def _mode(self) -> str:
        if self.search is Search.TARGET_ONLY:
            return f"conditions tested {'by Spark' if self.lookup is None else 'in workers'}"
        if self.lookup is not None:
            return "source keys looked up"
        return f"source {'broadcast' if self.broadcast_source else 'as Spark chooses'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Limits of a search, and the planner of a key lookup."""

    broadcast_bytes_max: int
    """Spark's own threshold; -1 switches broadcasting off."""
    look_up: Callable[[], KeyLookup | None]
    """Plans a lookup; ``None``: Spark has to search."""


def plan_search(
    statement: ResolvedStatement,
    files: FileTable,
    source: SourceProfile,
    *,
    prune: Prune,
    limits: SearchLimits,
    statistics: FileStatistics = NOTHING_PARSED,
) -> SearchPlan:
    """Choose the candidate files and the join; runs nothing.

    ``statistics`` of the files are not parsed again.
    """
    matchable = _matchable(statement, files, source, prune, statistics)
    by_source = prune(
        files, by_source_predicate(statement.not_matched_by_source), matchable.statistics_of_all
    )
    extra = pc.sum(pc.and_not(by_source.mask, matchable.mask)).as_py() or 0
    candidates, known = matchable.files, matchable.statistics
    if extra:
        wanted = pc.or_(matchable.mask, by_source.mask)
        candidates, known = files.select(wanted), by_source.statistics.select(wanted)
    search = _search(statement, candidates, source)
    return SearchPlan(
        candidates=candidates,
        statistics=known,
        num_files=len(files),
        skipped=matchable.skipped,
        extra_candidates=extra,
        search=search,
        lookup=None if search is Search.NOTHING else limits.look_up(),
        broadcast_source=0 <= _join_bytes(statement, source) <= limits.broadcast_bytes_max,
        reads_little=reads_little([*candidates.rows["size_bytes"].to_pylist(), source.size_bytes]),
        finds_source_rows=source.num_rows > 0
        and (bool(statement.not_matched) or _may_update_from_source_alone(statement)),
        checks_multiple_matches=not statement.is_insert_only
        and not statement.is_single_unconditional_delete,
        read_predicate=read_predicate(statement, source),
    )


def reads_little(sizes_bytes: Sequence[int]) -> bool:
    """Tell whether files of these sizes are so few and small that one task reads them all.

    One task saves the shuffle that would combine the results of several.
    """
    return sum(sizes_bytes) + len(sizes_bytes) * _OPEN_BYTES <= _ONE_TASK_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matchable:
    """Files that may hold a relevant match."""

    mask: pa.Array
    """One bool per file of the table."""
    files: FileTable
    """The files that are left."""
    statistics: FileStatistics
    """Of the files that are left."""
    statistics_of_all: FileStatistics
    """Of all the files."""
    skipped: tuple[SkippedByRule, ...]


def _matchable(
    statement: ResolvedStatement,
    files: FileTable,
    source: SourceProfile,
    prune: Prune,
    statistics: FileStatistics,
) -> _Matchable:
    """Apply the rules one after the other, each to the files left by earlier ones."""
    if source.num_rows == 0:
        mask = pa.array([False] * len(files), pa.bool_())
        return _Matchable(
            mask=mask,
            files=files.select(mask),
            statistics=statistics.select(mask),
            statistics_of_all=statistics,
            skipped=(),
        )
    kept = np.ones(len(files), np.bool_)
    left: FileTable = files
    known: FileStatistics = statistics
    skipped: list[SkippedByRule] = []
    for rule, predicate in match_rules(statement, source).items():
        if predicate == TRUE:
            continue
        pruning = prune(left, predicate, known)
        skipped += _by_rule(rule, pruning)
        known = pruning.statistics
        if len(left) == len(files):
            statistics = known
        if pruning.skipped:
            left, known = left.select(pruning.mask), known.select(pruning.mask)
            kept[kept] = pruning.mask.to_numpy(zero_copy_only=False)
    return _Matchable(
        mask=pa.array(kept),
        files=left,
        statistics=known,
        statistics_of_all=statistics,
        skipped=tuple(skipped),
    )


def _by_rule(rule: Rule, pruning: Pruning) -> list[SkippedByRule]:
    totals: dict[SkippedBy, tuple[int, int]] = {}
    for some in pruning.skipped:
        files, size = totals.get(some.by, (0, 0))
        totals[some.by] = (files + some.num_files, size + some.size_bytes)
    return [
        SkippedByRule(rule=rule, by=by, num_files=files, size_bytes=size)
        for by, (files, size) in totals.items()
    ]


def _search(statement: ResolvedStatement, candidates: FileTable, source: SourceProfile) -> Search:
    if len(candidates) == 0:
        return Search.NOTHING
    if not statement.not_matched_by_source:
        return Search.NOTHING if source.num_rows == 0 else Search.INNER
    return Search.TARGET_ONLY if source.num_rows == 0 else Search.LEFT_OUTER


def _may_update_from_source_alone(statement: ResolvedStatement) -> bool:
    """Tell whether an UPDATE reads nothing of the old row, so that the staged row is enough."""
    updates = (c.action for c in statement.matched if isinstance(c.action, ResolvedUpdate))
    return any(not update.reads_target for update in updates)


def _join_bytes(statement: ResolvedStatement, source: SourceProfile) -> int:
    """Estimate the bytes of the source columns that the search reads."""
    conditions = [c.condition for c in statement.matched if c.condition is not None]
    read = frozenset(statement.on.source_columns).union(*(c.source_columns for c in conditions))
    share = max(1, len(read)) / max(1, len(statement.source_columns))
    return int(source.size_bytes * min(1.0, share))
