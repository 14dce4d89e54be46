"""The search as a join of Spark's: candidates with the staged source."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.commands.dml.prune.plan import Search, SearchPlan
from puredelta.commands.dml.resolve.statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedCondition,
)
from puredelta.commands.dml.search.positions import SOURCE_SETS
from puredelta.commands.dml.source.context import StatementContext
from puredelta.spark.scan.bitmaps import CountedWords, collect_words
from puredelta.spark.session.helper_columns import (
    CLAUSE,
    FILE_ORDINAL,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)
from puredelta.spark.session.session import is_connect
from puredelta.worker.lookup.conditions import NO_CLAUSE

_BY_SOURCE = f"{CLAUSE}_by_source"


def joined_words(context: StatementContext, plan: SearchPlan) -> CountedWords:
    """Join and count the rows of either side by clause. Runs one Spark query."""
    pairs = context.statement.timestamp.bind(_pairs(context, plan))
    if plan.reads_little:
        pairs = pairs.coalesce(1)  # rows of one partition are aggregated without a shuffle
    return collect_words(
        _records(pairs, plan, insert_only=context.statement.is_insert_only),
        row_set=F.col("row_set"),
        file=F.col("file"),
        row=F.col("row"),
    )


def _pairs(context: StatementContext, plan: SearchPlan) -> DataFrame:
    """Return (clause, target row, source row) of every pair, and of what NMBS clauses act on."""
    statement = context.statement
    target = context.target_frame(plan.candidates, statement.target_columns)
    by_source = first_clause(statement.not_matched_by_source, start=len(statement.matched))
    if statement.not_matched_by_source and is_connect(context.spark):
        # There a name means whichever side has it, so the source must not be in sight yet.
        target = target.withColumn(_BY_SOURCE, by_source)
        by_source = F.col(_BY_SOURCE)
    if plan.search is Search.TARGET_ONLY:
        null = F.lit(None)
        joined = target.withColumns({SOURCE_FILE: null.cast("int"), SOURCE_ROW: null.cast("long")})
        clause = by_source
    else:
        source = context.source_frame(_searched_columns(statement.on, statement.matched))
        how = "inner" if plan.search is Search.INNER else "left"
        joined = target.join(
            F.broadcast(source) if plan.broadcast_source else source, statement.on.column, how=how
        )
        clause = first_clause(statement.matched, start=0, otherwise=F.lit(NO_CLAUSE))
        if plan.search is Search.LEFT_OUTER:
            clause = F.when(F.col(SOURCE_ROW).isNotNull(), clause).otherwise(by_source)
    pairs = joined.select(
        clause.cast("int").alias(CLAUSE), FILE_ORDINAL, ROW_INDEX, SOURCE_FILE, SOURCE_ROW
    )
    return pairs.where(F.col(CLAUSE).isNotNull())


def _records(pairs: DataFrame, plan: SearchPlan, *, insert_only: bool) -> DataFrame:
    """Name each pair's rows one by one: (row_set, file, row)."""
    source = _record(F.col(CLAUSE) + SOURCE_SETS, SOURCE_FILE, SOURCE_ROW)
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
