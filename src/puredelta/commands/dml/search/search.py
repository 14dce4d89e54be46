"""Stage 5: which rows of which files change, by which clause.

One join of the staged source with the *needed* columns of the candidate files, or a lookup of
the source's keys in the files. A row is (file, row index); rows come back as bitmaps, so
nothing per row reaches the driver. Several source rows for one target row show as more records
than set bits, at no extra cost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from puredelta.commands.dml.prune.plan import Search, SearchPlan
from puredelta.commands.dml.search.duplicates import multiple_match_error
from puredelta.commands.dml.search.join import joined_words
from puredelta.commands.dml.search.positions import (
    SOURCE_SETS,
    RowPositions,
    no_positions,
    positions_of,
)
from puredelta.commands.dml.source.context import StatementContext
from puredelta.spark.offload.key_lookup import KeyLookup, LookupTarget, look_up_keys
from puredelta.spark.scan.bitmaps import CountedWords
from puredelta.spark.session.fallback import NotApplicable
from puredelta.worker.lookup.conditions import NO_CLAUSE

logger = logging.getLogger(__name__)

LookUp: TypeAlias = Callable[
    [StatementContext, SearchPlan, KeyLookup], CountedWords | NotApplicable
]


def look_up(
    context: StatementContext, plan: SearchPlan, lookup: KeyLookup
) -> CountedWords | NotApplicable:
    """Look the keys of the source up in the candidates, in Python workers. Runs one Spark job."""
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
    """Find every row some clause acts on. Runs one Spark query, none if nothing can match;
    another one where workers turn out to be unable to look keys up.

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
        logger.info("Spark joins instead of looking keys up: %s", fallback)
    words = found if isinstance(found, CountedWords) else joined_words(context, plan)
    on_target = words.select(NO_CLAUSE, *range(len(statement.matched)))
    if plan.checks_multiple_matches and len(repeated := on_target.repeated()):
        raise multiple_match_error(context, plan, repeated)
    found_rows = positions_of(words, statement, finds_source_rows=plan.finds_source_rows)
    return replace(found_rows, fallback=fallback)
