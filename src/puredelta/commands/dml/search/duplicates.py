"""The error of a MERGE whose answer would depend on the order of source rows (M-70, M-76)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from puredelta.commands.dml.prune.plan import SearchPlan
from puredelta.commands.dml.source.context import StatementContext
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.scan.bitmaps import WORD_INDEX_BITS, packed_word, unpack_word
from puredelta.spark.session.helper_columns import FILE_ORDINAL, ROW_INDEX, WORD_HITS

EXAMPLES_MAX = 5
_WORDS_LOOKED_AT = 50
_KEY = "__puredelta_key_"
_TEXT = (
    "Cannot perform Merge as multiple source rows matched and attempted to modify the same target "
    "row in the Delta table in possibly conflicting ways. By SQL semantics of Merge, when multiple "
    "source rows match on the same target row, the result may be ambiguous as it is unclear which "
    "source row should be used to update or delete the matching target row. You can preprocess the "
    "source table to eliminate the possibility of multiple matches."
)


def multiple_match_error(
    context: StatementContext, plan: SearchPlan, repeated: npt.NDArray[np.int64]
) -> InvalidRequestError:
    """Return the error, with up to five target keys and how many source rows match each.

    ``repeated`` are packed words (candidate file, 64 rows) with an offending row. Runs one
    query over the files of the first of them.
    """
    examples = _examples(context, plan, repeated[:_WORDS_LOOKED_AT])
    shown = "; ".join(f"{keys} matches {hits} source rows" for keys, hits in examples)
    return InvalidRequestError(
        f"{_TEXT} For example, the target row {shown}. Nothing was changed.",
        code=ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW,
        examples=examples,
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
    """Return the target columns that the error shows: the keys of ON, else all ON reads."""
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
