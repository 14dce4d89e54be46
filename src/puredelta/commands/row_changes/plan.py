"""What a statement decides before it reads a row of the target: which files, and how to join.

Pure: statistics and partition values of the files meet the predicates of the statement and
the bounds of the staged source. A file that is pruned wrongly keeps its old rows (M-82), so
whatever is unknown keeps the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.commands.row_changes.probe import key_probe
from puredelta.commands.row_changes.statement import (
    EquiPair,
    NotMatchedBySourceClause,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.log.files.file_table import FileTable
from puredelta.log.footers.file_stats import LeafPath, LeafStatistics
from puredelta.protocol.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGRAL,
    DataType,
    DecimalType,
    PrimitiveType,
)
from puredelta.protocol.values.predicates import (
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
from puredelta.spark.offload.key_lookup import KeyLookup, WorkerMemory

Prune: TypeAlias = Callable[[FileTable, Predicate], pa.Array]
"""True where rows of a file might satisfy the predicate."""

_NEVER_PRUNED = frozenset({FLOAT, DOUBLE})
"""NaN equals NaN in Spark and lies outside the bounds that writers leave."""


_ONE_TASK_BYTES = 16 * 1024 * 1024
_OPEN_BYTES = 256 * 1024
"""What opening a file costs, as bytes that could be read instead."""


class Rule(Enum):
    """Why a file need not be searched for matches."""

    ON_TARGET = "conjuncts of ON over target columns"
    SOURCE_KEYS = "keys of the source"
    MATCHED_CONDITIONS = "conditions of all MATCHED clauses"


class Search(Enum):
    """How target rows meet source rows."""

    NOTHING = "nothing to search"
    TARGET_ONLY = "no source row: every target row is unmatched"
    INNER = "inner join"
    LEFT_OUTER = "left outer join from the target"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProfile:
    """What is known of the staged source without reading it again."""

    num_rows: int
    size_bytes: int
    bounds: Mapping[LeafPath, LeafStatistics] = field(default_factory=dict)
    """By staged path."""
    distinct: Mapping[LeafPath, Sequence[Any]] = field(default_factory=dict)
    """All values but NULL, where they are few; whole numbers in an ``array("q")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """The decisions of one statement."""

    candidates: FileTable
    """Files that may hold a row some clause acts on, or a match that keeps a row out."""
    num_files: int
    skipped: Mapping[Rule, int]
    """How many files each rule took from what the rules before it had left."""
    widened: int
    """Files searched only because a NOT MATCHED BY SOURCE clause may reach them."""
    search: Search
    broadcast_source: bool
    probe: KeyLookup | None
    """How keys are looked up in the files instead; ``None``: Spark joins."""
    reads_little: bool
    """Whether one task reads candidates and source sooner than a shuffle starts."""
    finds_source_rows: bool
    """Whether the search also tells which staged rows matched."""
    checks_multiple_matches: bool
    """Several matches of one row are an error (M-70), but not of a sole DELETE (M-71)."""
    read_predicate: Predicate
    """Rows that the result depends on; a rival's row outside of it cannot matter."""

    def describe(self) -> str:
        """Return one line for the log."""
        skipped = ", ".join(f"{count} by {rule.value}" for rule, count in self.skipped.items())
        return (
            f"{len(self.candidates)} of {self.num_files} files are searched "
            f"(skipped: {skipped or 'none'}; widened: {self.widened}); {self.search.value}, "
            f"source {self._source_handling()}"
        )

    def _source_handling(self) -> str:
        if self.probe is not None:
            return "keys looked up"
        return "broadcast" if self.broadcast_source else "as Spark chooses"


def plan_search(
    statement: ResolvedStatement,
    files: FileTable,
    source: SourceProfile,
    *,
    prune: Prune,
    broadcast_bytes_max: int,
    memory: WorkerMemory,
) -> SearchPlan:
    """Choose the candidate files and the join; runs nothing.

    ``broadcast_bytes_max`` is Spark's own threshold; -1 switches broadcasting off.
    ``memory`` is for the source's keys where they are looked up.
    """
    kept, skipped = _matchable(statement, files, source, prune)
    reachable = prune(files, by_source_predicate(statement.not_matched_by_source))
    widened = pc.sum(pc.and_not(reachable, kept)).as_py() or 0
    candidates = files.select(pc.or_(kept, reachable))
    finds_source_rows = source.num_rows > 0 and (
        bool(statement.not_matched) or _may_update_from_source_alone(statement)
    )
    search = _search(statement, candidates, source)
    return SearchPlan(
        candidates=candidates,
        num_files=len(files),
        skipped=skipped,
        widened=widened,
        search=search,
        probe=key_probe(statement, source.num_rows, memory)
        if search in (Search.INNER, Search.LEFT_OUTER)
        else None,
        broadcast_source=0 <= _join_bytes(statement, source) <= broadcast_bytes_max,
        reads_little=reads_little([*candidates.rows["size_bytes"].to_pylist(), source.size_bytes]),
        finds_source_rows=finds_source_rows,
        checks_multiple_matches=not statement.is_insert_only
        and not statement.is_single_unconditional_delete,
        read_predicate=read_predicate(statement, source),
    )


def reads_little(sizes_bytes: Sequence[int]) -> bool:
    """Tell whether files of these sizes are so few and small that one task reads them all.

    What is gained is the shuffle that would bring the results of several tasks together.
    """
    return sum(sizes_bytes) + len(sizes_bytes) * _OPEN_BYTES <= _ONE_TASK_BYTES


def _matchable(
    statement: ResolvedStatement, files: FileTable, source: SourceProfile, prune: Prune
) -> tuple[pa.Array, Mapping[Rule, int]]:
    """Return which files may hold a match that matters, and what each rule took away."""
    kept = pa.array([source.num_rows > 0] * len(files), pa.bool_())
    skipped: dict[Rule, int] = {}
    for rule, predicate in _rules(statement, source).items():
        if predicate == TRUE:
            continue
        left = pc.and_(kept, prune(files, predicate))
        if gone := (pc.sum(kept).as_py() or 0) - (pc.sum(left).as_py() or 0):
            skipped[rule] = gone
        kept = left
    return kept, skipped


def _rules(statement: ResolvedStatement, source: SourceProfile) -> Mapping[Rule, Predicate]:
    return {
        Rule.ON_TARGET: And(statement.on.parts.target_only),
        Rule.SOURCE_KEYS: _all_of([key_predicate(p, source) for p in statement.on.parts.pairs]),
        Rule.MATCHED_CONDITIONS: _matched_predicate(statement),
    }


def read_predicate(statement: ResolvedStatement, source: SourceProfile) -> Predicate:
    """Return a predicate that every target row satisfies on which the result depends."""
    by_source = by_source_predicate(statement.not_matched_by_source)
    if source.num_rows == 0:
        return by_source
    matched = _all_of(list(_rules(statement, source).values()))
    if by_source == FALSE:
        return matched
    return TRUE if TRUE in (matched, by_source) else Or((matched, by_source))


def _matched_predicate(statement: ResolvedStatement) -> Predicate:
    """M-80: where only MATCHED clauses act, a row none of them can want need not be found."""
    if statement.not_matched or statement.not_matched_by_source:
        return TRUE
    parts = [And(c.condition.parts.target_only) if c.condition else TRUE for c in statement.matched]
    return TRUE if TRUE in parts else Or(tuple(parts))


def by_source_predicate(clauses: tuple[NotMatchedBySourceClause, ...]) -> Predicate:
    """Return what a row must satisfy for any of these clauses to fire (W-2)."""
    parts = [And(c.condition.parts.target_only) if c.condition else TRUE for c in clauses]
    return TRUE if TRUE in parts else Or(tuple(parts))


def key_predicate(pair: EquiPair, source: SourceProfile) -> Predicate:
    """Return what a target row must satisfy to equal any key of the source (W-1).

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


def _search(statement: ResolvedStatement, candidates: FileTable, source: SourceProfile) -> Search:
    if len(candidates) == 0:
        return Search.NOTHING
    if not statement.not_matched_by_source:
        return Search.NOTHING if source.num_rows == 0 else Search.INNER
    return Search.TARGET_ONLY if source.num_rows == 0 else Search.LEFT_OUTER


def _may_update_from_source_alone(statement: ResolvedStatement) -> bool:
    """Whether an UPDATE asks nothing of the old row, so that the staged row is enough."""
    updates = (c.action for c in statement.matched if isinstance(c.action, ResolvedUpdate))
    return any(not update.reads_target for update in updates)


def _join_bytes(statement: ResolvedStatement, source: SourceProfile) -> int:
    """Estimate the bytes of the source columns that the search reads."""
    conditions = [c.condition for c in statement.matched if c.condition is not None]
    read = frozenset(statement.on.source_columns).union(*(c.source_columns for c in conditions))
    share = max(1, len(read)) / max(1, len(statement.source_columns))
    return int(source.size_bytes * min(1.0, share))
