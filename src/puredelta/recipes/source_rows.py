"""Source rows of a recipe: one per key, ordered, checked.

All checks happen while the source is read, once: the offending row raises the error before
anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.source import StatementContext
from puredelta.errors import ErrorCode, InvalidRequestError, Message
from puredelta.protocol.schema.predicates import Predicate
from puredelta.recipes.arguments import holds_null, is_true, names_of, refused, same_as_next
from puredelta.recipes.target import resolved
from puredelta.spark.offload.arrow_predicate import Translation
from puredelta.spark.scan.plain_scan import plain_scan
from puredelta.spark.session.names import quote
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.values.row_errors import row_error, row_error_text
from puredelta.store.registry import open_file
from puredelta.worker.expressions import Expression
from puredelta.worker.lookup.conditions import Pairs, TargetColumns
from puredelta.worker.lookup.key_index import Numbers
from puredelta.worker.lookup.lookup_read import cast_to
from puredelta.worker.read_rows import OnlySparkError, require_one_calendar
from puredelta.worker.sound_kinds import sound_parquet


def all_rows_fulfil(context: StatementContext, predicate: Predicate, target: T.StructType) -> bool:
    """Tell whether Arrow finds a condition true of every source row; False if it cannot tell.

    The condition is on columns of the target, and is applied to the source's columns of the same
    names and types. Only a small source that is read in place is checked.
    """
    statement, source = context.statement, context.source
    if source.num_rows > context.settings.key_limits.rows_max:
        return False
    translation = Translation(inexact=statement.config.padded_columns)
    condition = translation.expression(predicate)
    if condition is None or source.in_place is None:
        return False
    names: list[str] = []
    for name in translation.target:
        same = [c for c in statement.source_columns if c.name.lower() == name.lower()]
        if len(same) != 1 or same[0].type != target[name].dataType:
            return False
        names.append(source.names.in_file(same[0].staged))
    try:
        return all(
            _is_true(condition, file.uri, names, list(translation.target.values()))
            for file in source.files
        )
    except (OSError, pa.ArrowException, OnlySparkError):
        return False  # a job finds the error


def _is_true(
    condition: Expression, uri: str, names: Sequence[str], kinds: Sequence[pa.DataType]
) -> bool:
    """Tell whether a predicate is true of every row of a file."""
    with open_file(uri) as opened:
        table = sound_parquet(opened, coerce_int96_timestamp_unit="us").read(columns=list(names))
    columns = _Columns(
        [
            pa.chunked_array(
                [cast_to(kind, chunk) for chunk in table[name].chunks], kind
            ).combine_chunks()
            for kind, name in zip(kinds, names, strict=True)
        ]
    )
    pairs = Pairs(target=columns, target_rows=np.arange(table.num_rows))
    return bool(pairs.is_true(condition).all())


class _Columns(TargetColumns):
    """Columns of a small source, in memory."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        for column in columns:
            require_one_calendar(column)
        self._columns = columns

    def take(self, place: int, rows: Numbers) -> pa.Array:
        return pc.take(self._columns[place], pa.array(rows))

    def cost(self, place: int, rows: Numbers) -> int:  # noqa: ARG002
        return 0


SEQUENCE = "__recipe_sequence"
IS_DELETE = "__recipe_is_delete"
_RANK = "__recipe_rank"
_COUNT = "__recipe_count"
_MAKE_UNIQUE = (
    ". Make keys unique, or say which row counts: on_duplicate_source='latest' with order_by, or "
    "'any'. Nothing was changed."
)
BAD = "__recipe_bad"
"""Error of the rows of a key: 0 none, 1 a NULL sequence, 2 a tie."""
_EQUAL_IS_SAME = (T.IntegralType, T.DateType, T.DecimalType)
"""Types whose equal values are identical; ``-0.0`` and ``0.0`` are not."""


class Duplicates(Enum):
    """Meanings of several source rows with one key."""

    ERROR = "error"
    LATEST = "latest"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A condition under which a row raises an error."""

    when: Column
    error: Column


def guarded(rows: DataFrame, carrier: str, guards: Sequence[Guard]) -> DataFrame:
    """Return rows that raise an error where a guard is true.

    ``carrier`` is a column that every statement reads, so that no guard is left out.
    """
    value = F.col(quote(carrier))
    kind = rows.schema[carrier].dataType
    for guard in reversed(guards):
        value = F.when(guard.when, guard.error.cast(kind)).otherwise(value)
    return rows.withColumn(carrier, value)


def shown(names: Sequence[str]) -> Column:
    """Return the values of columns as JSON, the form of rows in messages."""
    return F.to_json(F.struct(*(F.col(quote(name)).alias(name) for name in names)))


def one_row_per_key(
    rows: DataFrame, keys: Sequence[str], duplicates: Duplicates, order_by: Sequence[str]
) -> DataFrame:
    """Return one row per key, or all rows, by the meaning of duplicates; refuse ambiguous ones."""
    by_key = Window.partitionBy(*map(quote, keys))
    match duplicates:
        case Duplicates.ANY:
            ranked = rows.withColumn(_RANK, F.row_number().over(by_key.orderBy(F.lit(1))))
            return ranked.where(F.col(_RANK) == 1).drop(_RANK)
        case Duplicates.ERROR:
            counted = rows.withColumn(_COUNT, F.count(F.lit(1)).over(by_key))
            guard = Guard(when=F.col(_COUNT) > 1, error=_not_unique(keys, F.col(_COUNT)))
            return guarded(counted, keys[0], [guard]).drop(_COUNT)
        case Duplicates.LATEST:
            order = F.struct(*(F.col(quote(name)) for name in order_by))
            return latest_rows(rows.withColumn(SEQUENCE, order), keys).drop(SEQUENCE)


def latest_rows(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the row with the greatest `SEQUENCE` of each key.

    A NULL sequence is refused, and so are two different rows that share the greatest one.
    """
    by_key = f"PARTITION BY {', '.join(map(quote, keys))}"
    latest_first = f"OVER ({by_key} ORDER BY {SEQUENCE} DESC)"
    content = [f for f in rows.schema.fields if f.name not in (*keys, SEQUENCE)]
    same = (same_as_next(f.name, f.dataType, latest_first) for f in content)
    tie = f"lead({SEQUENCE}) {latest_first} <=> {SEQUENCE} AND NOT ({' AND '.join(same) or 'true'})"
    is_null = holds_null(SEQUENCE, rows.schema[SEQUENCE].dataType)
    bad = f"CASE WHEN {is_null} THEN 1 WHEN rank() {latest_first} = 1 AND {tie} THEN 2 ELSE 0 END"
    # SQL text, because every part of a Column expression costs calls into the JVM.
    ranked = rows.selectExpr(
        "*", f"row_number() {latest_first} AS {_RANK}", f"{bad} AS {BAD}"
    ).withColumn(BAD, F.expr(f"max({BAD}) OVER ({by_key})"))
    kept = ranked.where(F.col(_RANK) == 1)
    return refuse_bad_sequences(kept, keys).drop(_RANK, BAD)


def refuse_bad_sequences(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return rows that raise an error according to `BAD`, `guarded` by the first key."""
    key = f"to_json(struct({', '.join(map(quote, keys))}))"

    def error(code: ErrorCode, before: str, after: str) -> str:
        return row_error_text(code, f"concat('{before}', {key}, '{after}')", {"keys": key})

    is_null = error(
        ErrorCode.SOURCE_SEQUENCE_IS_NULL,
        "A row of the source has no sequence (NULL). Its key is ",
        ". Leave such rows out, or give them one. Nothing was changed.",
    )
    is_tie = error(
        ErrorCode.SOURCE_SEQUENCE_AMBIGUOUS,
        "Different rows of the source have one key and one sequence: ",
        ". Order them by more columns, or leave all but one out. Nothing was changed.",
    )
    first = quote(keys[0])
    refused_or_key = f"CASE {BAD} WHEN 1 THEN {is_null} WHEN 2 THEN {is_tie} ELSE {first} END"
    return rows.withColumn(keys[0], F.expr(refused_or_key))


def require_unique(rows: DataFrame, keys: Sequence[str]) -> None:
    """Refuse rows with a repeated key. Runs a job that reads the keys alone.

    Raises:
        InvalidRequestError: there is such a key (DELTA_SOURCE_KEY_NOT_UNIQUE).
    """
    counted = rows.groupBy(*map(quote, keys)).agg(F.count(F.lit(1)).alias(_COUNT))
    found = counted.where(F.col(_COUNT) > 1).select(shown(keys).alias("keys"), _COUNT).take(1)
    if found:
        raise InvalidRequestError(
            Message.SOURCE_KEY_NOT_UNIQUE,
            make_unique=_MAKE_UNIQUE,
            keys=found[0]["keys"],
            rows=found[0][_COUNT],
        )


def require_unique_keys(context: StatementContext, keys: Sequence[str]) -> None:
    """Refuse a source with a repeated key.

    The driver has read the keys of a small source (`read_distinct_keys`): where some key column
    has as many values as there are rows, no count is needed. Otherwise a Spark job counts
    the keys in the files of the source.

    Raises:
        InvalidRequestError: there is such a key (DELTA_SOURCE_KEY_NOT_UNIQUE).
    """
    source = context.source
    columns = {c.name: c for c in context.statement.source_columns if c.name in keys}
    for column in columns.values():
        values = source.profile.distinct.get((column.staged,))
        if values is not None and _is_exact(column.type) and len(values) == source.num_rows:
            return
    rows = source.rows(context.spark, {column.staged for column in columns.values()})
    require_unique(rows.select(*(F.col(columns[key].staged).alias(key) for key in keys)), keys)


def with_unique_keys(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return rows that are refused for a repeated key, at the latest when they are read.

    Plain files hold the same rows however often they are read: a job counts their keys now.
    """
    if not reads_plain_files(rows):
        return one_row_per_key(rows, keys, Duplicates.ERROR, ())
    require_unique(rows, keys)
    return rows


def outside_scope(keys: Sequence[str], scope: str) -> Guard:
    """Return the guard that refuses a row for which the scope is not true."""
    before, after = _scope_message(scope)
    return Guard(
        when=~is_true(scope),
        error=row_error(
            ErrorCode.SOURCE_OUTSIDE_SCOPE,
            F.concat(F.lit(before), shown(keys), F.lit(after)),
            {"keys": shown(keys)},
        ),
    )


def require_in_scope(
    context: StatementContext, keys: Sequence[str], scope: str, target: T.StructType
) -> None:
    """Refuse a source with a row outside of the scope, after it was read.

    ``target`` are the table's columns, for which the statement has analyzed the scope.

    Raises:
        InvalidRequestError: there is such a row (DELTA_SOURCE_OUTSIDE_SCOPE).
    """
    clauses = [c.condition for c in context.statement.not_matched_by_source if c.condition]
    if len(clauses) == 1 and all_rows_fulfil(context, clauses[0].predicate, target):
        return
    columns = context.statement.source_columns
    rows = context.source.rows(context.spark, {column.staged for column in columns})
    named = rows.selectExpr(*(f"{quote(c.staged)} AS {quote(c.name)}" for c in columns))
    found = named.where(~is_true(scope)).select(shown(keys)).take(1)
    if found:
        before, after = _scope_message(scope)
        raise InvalidRequestError(
            Message.SOURCE_OUTSIDE_SCOPE, before=before, after=after, keys=found[0][0]
        )


def _scope_message(scope: str) -> tuple[str, str]:
    """Return the parts of the message before and after the key of the row."""
    return (
        f"A row of the source is outside of the scope ({scope}). Its key is ",
        ". Filter the source, or widen the scope. Nothing was changed.",
    )


def reads_plain_files(rows: DataFrame) -> bool:
    """Tell whether rows are unchanged rows of files, so that a MERGE reads them in place."""
    return not isinstance(plain_scan(rows.sparkSession, rows), NotApplicable)


def _is_exact(kind: T.DataType) -> bool:
    return isinstance(kind, _EQUAL_IS_SAME) or kind == T.StringType()


def _not_unique(keys: Sequence[str], count: Column) -> Column:
    return row_error(
        ErrorCode.SOURCE_KEY_NOT_UNIQUE,
        F.concat(
            F.lit("The source has "),
            count.cast("string"),
            F.lit(" rows of the key "),
            shown(keys),
            F.lit(_MAKE_UNIQUE),
        ),
        {"keys": shown(keys), "rows": count},
    )


def with_sequence(
    rows: DataFrame,
    sequence_by: str | Column | Sequence[str],
    is_delete: str | Column | None,
    *,
    case_sensitive: bool,
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return rows with `SEQUENCE` and `IS_DELETE`, and the columns of the sequence.

    ``sequence_by`` is a column, an expression, or several columns, the most important first.

    Raises:
        InvalidRequestError: it names a missing column, or nothing.
        pyspark.errors.AnalysisException: an expression is wrong.
    """
    named: tuple[str, ...] = ()
    if isinstance(sequence_by, Column):
        sequence = sequence_by
    elif isinstance(sequence_by, str):
        folded = {name if case_sensitive else name.lower(): name for name in rows.columns}
        name = folded.get(sequence_by if case_sensitive else sequence_by.lower())
        named = () if name is None else (name,)
        sequence = F.expr(sequence_by if name is None else quote(name))
    else:
        wanted = names_of(sequence_by, "sequence_by")
        if not wanted:
            raise refused("sequence_by is empty. Name the columns that order the rows of a key.")
        named = resolved(wanted, rows.columns, "sequence_by", case_sensitive=case_sensitive)
        sequence = F.struct(*(F.col(quote(name)) for name in named))
    ready = rows.withColumns({SEQUENCE: sequence, IS_DELETE: is_true(is_delete)})
    if isinstance(ready.schema[SEQUENCE].dataType, T.MapType | T.NullType):
        raise refused("sequence_by has a type that cannot be ordered.")
    return ready, named
