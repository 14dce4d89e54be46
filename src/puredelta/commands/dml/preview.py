"""Preview of a statement: changed rows before and after, by clause.

Rows are made like those of the change data feed, except that every new row of an UPDATE is made
from the old row, so that both have the position that pairs them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.command import Command
from puredelta.commands.dml.decide import Decision, FiredUpdate
from puredelta.commands.dml.new_rows import (
    FIRST_INSERT,
    columns_of_inserts,
    identity_values,
    mark_of,
    marked_clause,
    marked_rows,
    marked_source,
    rows_with_values,
)
from puredelta.commands.dml.report_clauses import ClauseKind
from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedUpdate,
)
from puredelta.commands.dml.search_plan import Search
from puredelta.commands.dml.spec import InputRows, StatementSpec
from puredelta.commands.dml.trial import Trial, count_inserts, tried_statement
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.table.change_data import CHANGE_TYPE, ChangeType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.names import CHANGE, CLAUSE, FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.row_bitmap import RowBitmap, count_rows
from puredelta.spark.session.types import as_nullable, quoted, struct_as_nullable, to_spark
from puredelta.spark.values.char_varchar import padded, read_limits
from puredelta.spark.write.writer import stored_rows


def fair_shares(counts: Sequence[int], limit: int) -> tuple[int, ...]:
    """Return the number to take of each: as many of all as possible, ``limit`` together.

    >>> fair_shares([1, 100, 100], 21), fair_shares([2, 3], 20), fair_shares([5, 5], 1)
    ((1, 10, 10), (2, 3), (1, 0))
    """
    shares = [0] * len(counts)
    left = limit
    while left > 0 and (open_ := [n for n, count in enumerate(counts) if shares[n] < count]):
        each, rest = divmod(left, len(open_))
        for place, n in enumerate(open_):
            share = min(counts[n] - shares[n], each + (1 if place < rest else 0))
            shares[n] += share
            left -= share
    return tuple(shares)


def first_rows(rows: RowsByFile, num_rows: int) -> RowsByFile:
    """Return the first rows, file by file."""
    taken: dict[int, RowBitmap] = {}
    for file in sorted(rows):
        if num_rows <= 0:
            break
        some = rows[file].rows()[:num_rows]
        taken[file] = RowBitmap.of_rows(some)
        num_rows -= len(some)
    return taken


_KINDS_IN_ORDER = [
    ChangeType.DELETE,
    ChangeType.UPDATE_PREIMAGE,
    ChangeType.UPDATE_POSTIMAGE,
    ChangeType.INSERT,
]
_RANK = "__puredelta_rank"


def union_of(parts: Sequence[DataFrame], config: TableConfig) -> DataFrame:
    """Return the union of the frames; ``char(n)`` text is padded, as in every read.

    Values of type VOID become text: Spark cannot plan a union of structs that hold them.
    """
    kinds = {field.name: field.dataType for field in to_spark(config.schema).fields}
    texts = {
        name: F.col(quoted(name)).cast(as_nullable(_void_as_text(kind)))
        for name, kind in kinds.items()
        if _holds_void(kind)
    }
    rows = functools.reduce(
        DataFrame.unionAll, [part.withColumns(texts) if texts else part for part in parts]
    )
    limited = read_limits(rows.sparkSession, config)
    filled = {
        name: padded(limits, F.col(quoted(name)), kinds[name]) for name, limits in limited.items()
    }
    return rows.withColumns(filled) if filled else rows


def held(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """Compute the rows of `union_of` and keep them on the driver, both sides of an update
    together; ``schema`` is that of the table and of the columns that describe the change.
    """
    rank = F.lit(len(_KINDS_IN_ORDER))
    for number, kind in enumerate(_KINDS_IN_ORDER):
        rank = F.when(F.col(CHANGE) == kind.value, F.lit(number)).otherwise(rank)
    found: pa.Table = rows.withColumn(_RANK, rank).toArrow()
    order = [(name, "ascending") for name in (CLAUSE, FILE_ORDINAL, ROW_INDEX, _RANK)]
    kept = found.sort_by(order).drop_columns([FILE_ORDINAL, ROW_INDEX, _RANK])
    columns = [
        _with_void(column.combine_chunks(), field.dataType)
        if _holds_void(field.dataType)
        else column
        for column, field in zip(kept.columns, schema.fields, strict=True)
    ]
    return rows.sparkSession.createDataFrame(pa.table(columns, names=schema.names), schema)


def _holds_void(kind: T.DataType) -> bool:
    """Tell whether VOID is in a value or its structs; arrays and maps of VOID cannot be stored."""
    if isinstance(kind, T.StructType):
        return any(_holds_void(field.dataType) for field in kind.fields)
    return isinstance(kind, T.NullType)


def _void_as_text(kind: T.DataType) -> T.DataType:
    if isinstance(kind, T.StructType):
        return T.StructType(
            [T.StructField(f.name, _void_as_text(f.dataType), f.nullable) for f in kind.fields]
        )
    return T.StringType() if isinstance(kind, T.NullType) else kind


def _with_void(values: pa.Array, kind: T.DataType) -> pa.Array:
    """Undo `_void_as_text`: text in the place of VOID is NULL, always."""
    if isinstance(kind, T.NullType):
        return pa.nulls(len(values))
    if not (isinstance(kind, T.StructType) and _holds_void(kind)):
        return values
    parts = [_with_void(values.field(n), field.dataType) for n, field in enumerate(kind.fields)]
    fields = [pa.field(f.name, part.type) for f, part in zip(kind.fields, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())


CLAUSE_COLUMN = "_clause"
PREVIEW_ROWS = 20


def preview_statement(
    command: Command, spec: StatementSpec, rows: InputRows, *, limit: int = PREVIEW_ROWS
) -> DataFrame:
    """Return up to ``limit`` changed rows: an updated row as it is, and as it would be.

    The columns are the table's, then ``_change_type`` (``insert``, ``update_preimage``,
    ``update_postimage``, ``delete``) and ``_clause``, the number of the clause, from 1. If there
    are more rows, every clause shows some. The driver holds the rows.

    Raises:
        InvalidRequestError: the limit is no positive number, or a column has one of these names.
        DeltaError: an error of the execution that occurs before it writes.
    """
    _require_valid(limit)
    with tried_statement(command, spec, rows, evaluates=True) as trial:
        config = trial.context.statement.config
        taken = {CHANGE_TYPE, CLAUSE_COLUMN} & {name.lower() for name in config.schema.names}
        if taken:
            raise InvalidRequestError(
                Message.RESERVED_CDC_COLUMNS_ON_WRITE_PREVIEW,
                change_type=CHANGE_TYPE,
                clause_column=CLAUSE_COLUMN,
                taken=", ".join(sorted(taken)),
                columns=tuple(sorted(taken)),
            )
        decision = trial.decide()
        shown = _Preview(trial=trial, decision=decision, limit=limit).frame()
        trial.context.source.require_unchanged()
        return shown


def _require_valid(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_DETAIL_PREVIEW_LIMIT, limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Preview:
    """The preview of one statement."""

    trial: Trial
    decision: Decision
    limit: int

    def frame(self) -> DataFrame:
        """Compute the rows and keep them on the driver."""
        context = self.trial.context
        schema = to_spark(context.statement.schema)
        fields = [
            T.StructField(CHANGE_TYPE, T.StringType()),
            T.StructField(CLAUSE_COLUMN, T.IntegerType()),
        ]
        whole = struct_as_nullable(T.StructType([*schema.fields, *fields]))
        parts = list(self._parts())
        if not parts:
            return context.spark.createDataFrame([], whole)
        rows = context.statement.timestamp.bind(union_of(parts, context.statement.config))
        bound = (
            context.command.bind(rows, only_subqueries=True)
            if context.statement.has_subqueries
            else rows
        )
        return held(bound, whole)

    def _parts(self) -> Iterator[DataFrame]:
        statement, positions = self.trial.context.statement, self.decision.positions
        if self.trial.plan.search is Search.WHOLE_FILES:
            yield self._rows_of_whole_files()
            return
        clauses: list[MatchedClause | NotMatchedBySourceClause]
        clauses = [*statement.matched, *statement.not_matched_by_source]
        sets = (*positions.matched, *positions.by_source)
        inserts = count_inserts(self.trial.context, self.decision)
        counts = [*(count_rows(rows.values()) for rows in sets), *inserts]
        shares = fair_shares(counts, self.limit)
        some = {
            number: first_rows(rows, share)
            for number, (rows, share) in enumerate(zip(sets, shares, strict=False))
            if share
        }
        if some:
            yield from self._changed(clauses, some)
        for number, share in enumerate(shares[len(sets) :]):
            if share:
                yield self._inserted(number, share)

    def _changed(
        self,
        clauses: Sequence[MatchedClause | NotMatchedBySourceClause],
        some: Mapping[int, RowsByFile],
    ) -> Iterator[DataFrame]:
        """Read the old rows once, and make the new ones from them."""
        context, plan = self.trial.context, self.trial.plan
        num_matched = len(context.statement.matched)
        fired = []
        for number, rows in some.items():
            action, by_source = clauses[number].action, number >= num_matched
            if isinstance(action, ResolvedUpdate):
                update = FiredUpdate(
                    number=number, action=action, target=rows, source=None, by_source=by_source
                )
                fired.append(update)
        every = frozenset(context.snapshot.config.schema.names)
        marks = {mark_of(number): rows for number, rows in some.items()}
        marked = marked_rows(context, plan, marks, every)
        yield self._preimages(marked, clauses, some)
        matched = [update for update in fired if not update.by_source]
        alone = [update for update in fired if update.by_source]
        if matched:
            old = context.statement.frames.target(marked.where(_any_mark(matched)))
            source = context.source_frame(
                context.statement.on.source_columns.union(
                    *(update.action.source_columns for update in matched)
                )
            )
            pairs = old.join(source, context.statement.on.column, how="inner")
            yield self._new_images(pairs, matched)
        if alone:
            old = context.statement.frames.target(marked.where(_any_mark(alone)))
            yield self._new_images(old, alone)

    def _preimages(
        self,
        marked: DataFrame,
        clauses: Sequence[MatchedClause | NotMatchedBySourceClause],
        some: Mapping[int, RowsByFile],
    ) -> DataFrame:
        kind, clause = F.lit(None).cast("string"), F.lit(None).cast("int")
        for number in some:
            updates = isinstance(clauses[number].action, ResolvedUpdate)
            is_marked = F.col(mark_of(number))
            change = ChangeType.UPDATE_PREIMAGE if updates else ChangeType.DELETE
            kind = F.when(is_marked, F.lit(change.value)).otherwise(kind)
            clause = F.when(is_marked, F.lit(self._number(number))).otherwise(clause)
        old = self.trial.context.statement.pass_through()
        frame = self.trial.context.statement.frames.target(marked)
        return frame.select(
            *(old[name].alias(name) for name in self.trial.context.statement.schema.names),
            kind.alias(CHANGE),
            clause.alias(CLAUSE),
            F.col(FILE_ORDINAL).cast("int").alias(FILE_ORDINAL),
            F.col(ROW_INDEX).cast("long").alias(ROW_INDEX),
        )

    def _new_images(self, frame: DataFrame, fired: Sequence[FiredUpdate]) -> DataFrame:
        actions = {update.number: update.action.values for update in fired}
        rows = self._with_values(frame.withColumn(CLAUSE, marked_clause(fired)), actions)
        numbers = {update.number: self._number(update.number) for update in fired}
        return _labelled(rows, ChangeType.UPDATE_POSTIMAGE, numbers)

    def _inserted(self, number: int, share: int) -> DataFrame:
        context, statement = self.trial.context, self.trial.context.statement
        inserts = statement.not_matched
        frame, clause = marked_source(
            context, self.decision.positions, (), inserts, columns_of_inserts(inserts)
        )
        wanted = FIRST_INSERT + number
        chosen = frame.withColumn(CLAUSE, clause).where(F.col(CLAUSE) == wanted).limit(share)
        placed = chosen.withColumns(
            {FILE_ORDINAL: F.lit(None).cast("int"), ROW_INDEX: F.lit(None).cast("long")}
        )
        values = {
            **identity_values(statement.config, context.source),
            **inserts[number].action.values,
        }
        rows = self._with_values(placed, {wanted: values})
        stated = next(
            c.number
            for c in self.trial.clauses
            if c.kind is ClauseKind.NOT_MATCHED and c.place == number
        )
        return _labelled(rows, ChangeType.INSERT, {wanted: stated})

    def _with_values(
        self, frame: DataFrame, actions: Mapping[int, Mapping[str, Column]]
    ) -> DataFrame:
        statement = self.trial.context.statement
        rows = rows_with_values(
            frame,
            actions,
            statement.config,
            helpers=(FILE_ORDINAL, ROW_INDEX),
            unjudged=statement.computed_columns,
        )
        return stored_rows(rows, statement.config)

    def _rows_of_whole_files(self) -> DataFrame:
        context, plan = self.trial.context, self.trial.plan
        every = frozenset(context.snapshot.config.schema.names)
        rows = context.target_rows(plan.candidates, every).limit(self.limit)
        frame = context.statement.frames.target(rows)
        old = context.statement.pass_through()
        return frame.select(
            *(old[name].alias(name) for name in context.statement.schema.names),
            F.lit(ChangeType.DELETE.value).alias(CHANGE),
            F.lit(1).alias(CLAUSE),
            F.col(FILE_ORDINAL).cast("int").alias(FILE_ORDINAL),
            F.col(ROW_INDEX).cast("long").alias(ROW_INDEX),
        )

    def _number(self, number: int) -> int:
        """Return a clause's number in the statement; ``number`` counts MATCHED, then BY SOURCE."""
        num_matched = len(self.trial.context.statement.matched)
        kind = ClauseKind.MATCHED if number < num_matched else ClauseKind.BY_SOURCE
        place = number if number < num_matched else number - num_matched
        return next(c.number for c in self.trial.clauses if c.kind is kind and c.place == place)


def _any_mark(fired: Sequence[FiredUpdate]) -> Column:
    marks = [F.col(mark_of(update.number)) for update in fired]
    return functools.reduce(lambda one, other: one | other, marks)


def _labelled(rows: DataFrame, kind: ChangeType, numbers: Mapping[int, int]) -> DataFrame:
    """Add the kind of change and the clauses' numbers in the statement."""
    clause = F.lit(None).cast("int")
    for number, stated in numbers.items():
        clause = F.when(F.col(CLAUSE) == number, F.lit(stated)).otherwise(clause)
    names = [name for name in rows.columns if name not in (CLAUSE, FILE_ORDINAL, ROW_INDEX)]
    return rows.select(
        *(F.col(quoted(name)) for name in names),
        F.lit(kind.value).alias(CHANGE),
        clause.alias(CLAUSE),
        F.col(FILE_ORDINAL).cast("int").alias(FILE_ORDINAL),
        F.col(ROW_INDEX).cast("long").alias(ROW_INDEX),
    )
