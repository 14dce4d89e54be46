"""The search of a statement: which rows of which files change, by which clause.

One join of the staged source with the *needed* columns of the candidate files, or a look
into the files for the keys of a small source. A row is (file, row index); rows come back as
bitmaps, so nothing per row reaches the driver. Several source rows for one target row show as
more records than set bits, at no extra cost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.commands.row_changes.context import ChangeContext
from puredelta.commands.row_changes.matches import multiple_match_error
from puredelta.commands.row_changes.plan import Search, SearchPlan
from puredelta.commands.row_changes.statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedCondition,
    ResolvedUpdate,
)
from puredelta.spark.offload.key_lookup import KeyLookup, look_up_keys
from puredelta.spark.scan.bitmaps import CountedWords, RowsByFile, collect_words
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.helper_columns import (
    CLAUSE,
    FILE_ORDINAL,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import is_connect
from puredelta.worker.key_lookup import IDLE

logger = logging.getLogger(__name__)

_BY_SOURCE = f"{CLAUSE}_by_source"
_SOURCE_SETS = 1 << 20
"""Added to the clause of a record that names the source row of a pair."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowPositions:
    """The rows a statement acts on. Target files count by candidate, staged files as staged."""

    matched: tuple[RowsByFile, ...] = ()
    """Per MATCHED clause: the target rows it fires for."""
    by_source: tuple[RowsByFile, ...] = ()
    """The same per NOT MATCHED BY SOURCE clause."""
    matched_source: RowsByFile = field(default_factory=dict)
    """Staged rows with a match, where the plan asked for them."""
    source_of: tuple[RowsByFile, ...] | None = None
    """Per MATCHED clause: the staged rows it fires with; ``None`` where they are not known or
    some staged row updates several target rows (M-74)."""

    def touched(self) -> dict[int, RowBitmap]:
        """Return the rows that leave their files, by candidate file."""
        return united(*self.matched, *self.by_source)


def united(*sets: RowsByFile) -> dict[int, RowBitmap]:
    """Return the rows of any of the sets, by file."""
    result: dict[int, RowBitmap] = {}
    for rows in sets:
        for file, bitmap in rows.items():
            result[file] = result[file] | bitmap if file in result else bitmap
    return result


def find_positions(
    context: ChangeContext, plan: SearchPlan, *, by_statistics: bool = True
) -> RowPositions:
    """Find every row some clause acts on. Runs one Spark query, none if nothing can match;
    another one where workers turn out to be unable to look keys up.

    ``by_statistics``: files are not read of which statistics prove that they match nothing.

    Raises:
        InvalidRequestError: several source rows match one target row
            (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE, M-76). A second query
            fetches the offending keys.
    """
    statement = context.statement
    nothing = RowPositions(
        matched=tuple({} for _ in statement.matched),
        by_source=tuple({} for _ in statement.not_matched_by_source),
        source_of=tuple({} for _ in statement.matched) if context.source.num_rows == 0 else None,
    )
    if plan.search is Search.NOTHING:
        return nothing
    words = None
    if plan.probe is not None:
        words = _probed_words(context, plan, plan.probe, by_statistics=by_statistics)
    words = _joined_words(context, plan) if words is None else words
    first_by_source = len(statement.matched)
    on_target = words.select(IDLE, *range(first_by_source))
    if plan.checks_multiple_matches and len(repeated := on_target.repeated()):
        raise multiple_match_error(context, plan, repeated)
    return RowPositions(
        matched=tuple(words.select(n).files() for n in range(first_by_source)),
        by_source=tuple(
            words.select(first_by_source + n).files()
            for n in range(len(statement.not_matched_by_source))
        ),
        matched_source=words.select(*_source_sets(range(IDLE, first_by_source))).files(),
        source_of=_source_of(words, statement.matched) if plan.finds_source_rows else None,
    )


def _probed_words(
    context: ChangeContext, plan: SearchPlan, probe: KeyLookup, *, by_statistics: bool
) -> CountedWords | None:
    """Look the keys of the source up in the candidates; ``None`` where only Spark can join."""
    statement, source = context.statement, context.source
    found = look_up_keys(
        context.spark,
        context.snapshot.config,
        plan.candidates,
        () if source.staged is None else source.staged.files,
        probe.renamed(source.file_column),
        root_uri=context.snapshot.root_uri,
        finds_target=not statement.is_insert_only,
        source_base=_SOURCE_SETS if plan.finds_source_rows else None,
        by_statistics=by_statistics,
    )
    if isinstance(found, NotApplicable):
        logger.info("Spark joins instead of looking keys up: %s", found.reason)
        return None
    return found


def _joined_words(context: ChangeContext, plan: SearchPlan) -> CountedWords:
    pairs = context.statement.instant.fix(_pairs(context, plan))
    if plan.reads_little:
        pairs = pairs.coalesce(1)  # rows of one partition are aggregated without a shuffle
    return collect_words(
        _records(pairs, plan, insert_only=context.statement.is_insert_only),
        row_set=F.col("row_set"),
        file=F.col("file"),
        row=F.col("row"),
    )


def _pairs(context: ChangeContext, plan: SearchPlan) -> DataFrame:
    """Return (clause, target row, source row) of every pair, and of what NMBS clauses act on."""
    statement = context.statement
    target = context.target_frame(plan.candidates, statement.target_columns)
    by_source = first_clause(statement.not_matched_by_source, start=len(statement.matched))
    if statement.not_matched_by_source and is_connect(context.spark):
        # There a name means whichever side has it, so the source must not be in sight yet.
        target = target.withColumn(_BY_SOURCE, by_source)
        by_source = F.col(_BY_SOURCE)
    if plan.search is Search.TARGET_ONLY:
        nobody = F.lit(None)
        joined = target.withColumns(
            {SOURCE_FILE: nobody.cast("int"), SOURCE_ROW: nobody.cast("long")}
        )
        clause = by_source
    else:
        source = context.source_frame(_searched_columns(statement.on, statement.matched))
        how = "inner" if plan.search is Search.INNER else "left"
        joined = target.join(
            F.broadcast(source) if plan.broadcast_source else source, statement.on.column, how=how
        )
        clause = first_clause(statement.matched, start=0, otherwise=F.lit(IDLE))
        if plan.search is Search.LEFT_OUTER:
            clause = F.when(F.col(SOURCE_ROW).isNotNull(), clause).otherwise(by_source)
    pairs = joined.select(
        clause.cast("int").alias(CLAUSE), FILE_ORDINAL, ROW_INDEX, SOURCE_FILE, SOURCE_ROW
    )
    return pairs.where(F.col(CLAUSE).isNotNull())


def _records(pairs: DataFrame, plan: SearchPlan, *, insert_only: bool) -> DataFrame:
    """Name each pair's rows one by one: (row_set, file, row)."""
    source = _record(F.col(CLAUSE) + _SOURCE_SETS, SOURCE_FILE, SOURCE_ROW)
    if insert_only:
        return pairs.select(source.alias("record")).select("record.*")
    target = _record(F.col(CLAUSE), FILE_ORDINAL, ROW_INDEX)
    if not plan.finds_source_rows:
        return pairs.select(target.alias("record")).select("record.*")
    return pairs.select(F.inline(F.array(target, source)))


def _record(row_set: Column, file: str, row: str) -> Column:
    return F.struct(
        row_set.alias("row_set"), F.col(file).cast("int").alias("file"), F.col(row).alias("row")
    )


def first_clause(
    clauses: Sequence[MatchedClause | NotMatchedBySourceClause],
    *,
    start: int,
    otherwise: Column | None = None,
) -> Column:
    """Return the number of the first clause whose condition is TRUE, counted from ``start``."""
    rest = F.lit(None) if otherwise is None else otherwise
    for number, clause in reversed(list(enumerate(clauses, start))):
        if clause.condition is None:
            rest = F.lit(number)
        else:
            rest = F.when(clause.condition.column, F.lit(number)).otherwise(rest)
    return rest


def _searched_columns(on: ResolvedCondition, matched: Sequence[MatchedClause]) -> frozenset[str]:
    conditions = [clause.condition for clause in matched if clause.condition is not None]
    return on.source_columns.union(*(condition.source_columns for condition in conditions))


def _source_sets(clauses: range) -> list[int]:
    return [_SOURCE_SETS + clause for clause in clauses]


def _source_of(
    words: CountedWords, matched: Sequence[MatchedClause]
) -> tuple[RowsByFile, ...] | None:
    """Return the staged rows per clause, unless one of them updates several target rows."""
    updates = [n for n, clause in enumerate(matched) if isinstance(clause.action, ResolvedUpdate)]
    if len(words.select(*(_SOURCE_SETS + n for n in updates)).repeated()):
        return None
    return tuple(words.select(_SOURCE_SETS + n).files() for n in range(len(matched)))
