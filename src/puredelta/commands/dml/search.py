"""Stage 5: the rows of each file that the statement acts on, by clause.

One join of the staged source with the *needed* columns of the candidate files, or a lookup of
the source's keys in the files. A row is (file, row index); rows come back as bitmaps, so
nothing per row reaches the driver. Several source rows for one target row cause more records
than set bits, at no extra cost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from puredelta.commands.dml.positions import (
    SOURCE_SETS,
    RowPositions,
    no_positions,
    positions_of,
)
from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedCondition,
)
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.errors import InvalidRequestError, Message
from puredelta.spark.offload.key_lookup import KeyLookup, LookupTarget, look_up_keys
from puredelta.spark.scan.bitmaps import (
    WORD_INDEX_BITS,
    CountedWords,
    collect_words,
    packed_word,
    unpack_word,
)
from puredelta.spark.session.names import (
    CLAUSE,
    FILE_ORDINAL,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
    WORD_HITS,
)
from puredelta.spark.session.session import NotApplicable
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
    """Return (clause, target row, source row) of every pair, and the rows of NMBS clauses."""
    statement = context.statement
    target = context.target_frame(plan.candidates, statement.target_columns)
    by_source = first_clause(statement.not_matched_by_source, start=len(statement.matched))
    if statement.not_matched_by_source:
        target, by_source = statement.frames.before_join(target, _BY_SOURCE, by_source)
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
    """Return the rows of each pair, one record each: (row_set, file, row)."""
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


EXAMPLES_MAX = 5
_WORDS_LOOKED_AT = 50
_KEY = "__puredelta_key_"


def duplicate_match_error(
    context: StatementContext, plan: SearchPlan, repeated: npt.NDArray[np.int64]
) -> InvalidRequestError:
    """Return the error, with up to five target keys and the number of their matching source rows.

    ``repeated`` are packed words (candidate file, 64 rows) with an offending row. Runs one
    query over the files of the first of them.
    """
    examples = _examples(context, plan, repeated[:_WORDS_LOOKED_AT])
    shown = "; ".join(f"{keys} matches {hits} source rows" for keys, hits in examples)
    return InvalidRequestError(
        Message.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW, shown=shown, examples=examples
    )


def _examples(
    context: StatementContext, plan: SearchPlan, repeated: npt.NDArray[np.int64]
) -> list[tuple[str, int]]:
    statement = context.statement
    files = sorted({unpack_word(word)[0] for word in repeated.tolist()})
    ordinals = {file: number for number, file in enumerate(files)}
    words = [
        (ordinals[file] << WORD_INDEX_BITS) | word
        for file, word in map(unpack_word, repeated.tolist())
    ]
    target = context.target_frame(plan.candidates.take(files), statement.on.target_columns)
    suspects = target.where(packed_word(F.col(FILE_ORDINAL), F.col(ROW_INDEX)).isin(words))
    source = context.source_frame(statement.on.source_columns)
    keys = _keys(context)
    joined = suspects.join(source, statement.on.column, how="inner")
    named = {f"{_KEY}{n}": key.cast("string") for n, key in enumerate(keys.values())}
    found = (
        joined.select(FILE_ORDINAL, ROW_INDEX, *(key.alias(n) for n, key in named.items()))
        .groupBy(FILE_ORDINAL, ROW_INDEX)
        .agg(F.count(F.lit(1)).alias(WORD_HITS), *(F.first(n).alias(n) for n in named))
        .where(F.col(WORD_HITS) > 1)
        .orderBy(F.desc(WORD_HITS), FILE_ORDINAL, ROW_INDEX)
        .limit(EXAMPLES_MAX)
    )
    return [
        (_describe(row, list(keys)), int(row[WORD_HITS]))
        for row in statement.timestamp.bind(found).collect()
    ]


def _keys(context: StatementContext) -> dict[str, Column]:
    """Return the target columns in the error: the keys of ON, or else all columns of ON."""
    statement = context.statement
    paths = [pair.target.path for pair in statement.on.parts.pairs]
    paths = paths or [(name,) for name in sorted(statement.on.target_columns)]
    keys: dict[str, Column] = {}
    for path in paths:
        column = statement.frames.target_column(path[0])
        for name in path[1:]:
            column = column.getField(name)
        keys[".".join(path)] = column
    return keys


def _describe(row: Row, names: list[str]) -> str:
    if not names:
        return f"number {row[ROW_INDEX]} of file {row[FILE_ORDINAL]}"
    values = [f"{name} = {row[f'{_KEY}{n}']}" for n, name in enumerate(names)]
    return f"({', '.join(values)})"


logger = logging.getLogger(__name__)

LookUp: TypeAlias = Callable[
    [StatementContext, SearchPlan, KeyLookup], CountedWords | NotApplicable
]


def look_up(
    context: StatementContext, plan: SearchPlan, lookup: KeyLookup
) -> CountedWords | NotApplicable:
    """Look keys of the source up in the candidates, or test each row if there is no source, in
    Python workers. Runs one Spark job.
    """
    wanted = replace(
        lookup,
        finds_target=not context.statement.is_insert_only,
        source_base=SOURCE_SETS if plan.finds_source_rows else None,
    )
    target = LookupTarget(
        config=context.snapshot.config,
        files=plan.candidates,
        root_uri=context.snapshot.root_uri,
        open_at=context.snapshot.open_at,
        statistics=plan.statistics if context.settings.skips_by_statistics else None,
    )
    return look_up_keys(
        context.spark, wanted, target, context.source.files, context.settings.workers
    )


def search(
    context: StatementContext, plan: SearchPlan, *, look_up: LookUp = look_up
) -> RowPositions:
    """Find every row that some clause acts on. Runs one Spark query, none if nothing can match;
    another one where workers cannot look keys up.

    Raises:
        InvalidRequestError: several source rows match one target row
            (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE, M-76). A second query
            fetches the offending keys.
    """
    statement = context.statement
    if plan.search in (Search.NOTHING, Search.WHOLE_FILES):
        return no_positions(statement, context.source.num_rows)
    found = None if plan.lookup is None else look_up(context, plan, plan.lookup)
    fallback = found.reason if isinstance(found, NotApplicable) else None
    if fallback is not None:
        logger.info("Spark searches instead of workers: %s", fallback)
    words = found if isinstance(found, CountedWords) else joined_words(context, plan)
    on_target = words.select(NO_CLAUSE, *range(len(statement.matched)))
    if plan.checks_multiple_matches and len(repeated := on_target.repeated()):
        raise duplicate_match_error(context, plan, repeated)
    found_rows = positions_of(words, statement, finds_source_rows=plan.finds_source_rows)
    return replace(found_rows, fallback=fallback)
