"""The history of keys rebuilt from events: which rows of a type 2 table are new, other or gone.

Every event of a key, old or new, has one row, at the place of its sequence. A row is a version
(it shows what was true from then on), or an event that changed nothing: it repeats the version
in force, or deletes what is not there. Those rows cover no time (they end where they begin);
without them a late event could not be put in its place. A delete that ends a version is no
row: the version's end says it. So the table is a function of the set of events, whatever order
they arrive in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.recipes.source_rows import BAD, IS_DELETE, SEQUENCE, guarded, sequence_guards
from puredelta.recipes.values import all_of, any_of, holds_null, same
from puredelta.spark.session.identifiers import quote

ROLE = "__ROLE"
"""NULL for a version, else `REPEAT` or `DELETE`."""
ORIGINAL = "__ORIGINAL"
"""What the event itself said, where the row shows something else."""
REPEAT = "repeat"
DELETE = "delete"
OPERATION = "__recipe_operation"
"""What is to be done about a row of the table: `INSERT`, `UPDATE` or `REMOVE`."""
INSERT, UPDATE, REMOVE = "I", "U", "D"

_ORDER = "__recipe_order"
_STORED_ROW, _STORED_END, _NEW = 0, 1, 2
_STORED = "__recipe_stored"
_SKIPPED = "__recipe_skipped"
_EPOCH = "__recipe_epoch"
_GROUP = "__recipe_group"
_STARTS = "__recipe_starts"
_CLOSES = "__recipe_closes"
_RAW = "__recipe_raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineShape:
    """The columns of a type 2 table, and what they mean."""

    keys: tuple[str, ...]
    data: tuple[T.StructField, ...]
    """All columns but keys and times, with the types they have in the table."""
    sequence: T.DataType
    tracked: frozenset[str]
    """Columns whose change makes a new version; others change in the version in force."""
    valid_from: str
    valid_to: str
    is_current: str | None
    null_keeps: bool = False
    """Whether NULL in an event means that the value stays what it was."""
    remembers: bool = True
    """Whether an event that repeats what is known leaves a row."""

    @property
    def names(self) -> tuple[str, ...]:
        """The data columns."""
        return tuple(field.name for field in self.data)

    @property
    def kept(self) -> tuple[T.StructField, ...]:
        """Data columns that a row may show otherwise than its event gave them."""
        if self.null_keeps:
            return self.data
        return tuple(field for field in self.data if field.name not in self.tracked)

    @property
    def values(self) -> tuple[T.StructField, ...]:
        """Every column but keys and `valid_from`, as the table has them."""
        current = () if self.is_current is None else (_field(self.is_current, T.BooleanType()),)
        original = (_field(ORIGINAL, T.StructType(list(self.kept))),) if self.kept else ()
        return (
            *self.data,
            _field(self.valid_to, self.sequence),
            *current,
            _field(ROLE, T.StringType()),
            *original,
        )


def timeline_changes(
    events: DataFrame, existing: DataFrame | None, shape: TimelineShape
) -> DataFrame:
    """Return what has to be done to the table: `OPERATION`, keys, `valid_from`, and the values.

    ``events`` have keys, data, `SEQUENCE` and `IS_DELETE`; ``existing`` are all rows of the table
    with the keys of the events, None where there is no table. A NULL sequence, and two different
    events of a key at one sequence, raise an error when the rows are read.
    """
    known = _new_events(events, shape)
    if existing is not None:
        stored = _complete(existing, shape)
        known = _stored_events(stored, shape).unionByName(_ends(stored, shape)).unionByName(known)
    placed = _roles(_filled(_distinct(known, shape), shape), shape)
    return _operations(_shown(placed, shape), shape)


def _distinct(known: DataFrame, shape: TimelineShape) -> DataFrame:
    """Keep the first event of a key and sequence: what the table knows stands."""
    by_key = Window.partitionBy(*map(quote, shape.keys))
    in_order = by_key.orderBy(SEQUENCE, _ORDER)

    def before(name: str) -> Column:
        return F.lag(quote(name)).over(in_order)

    again = F.coalesce(before(SEQUENCE).eqNullSafe(F.col(SEQUENCE)), F.lit(False)) & (  # noqa: FBT003
        F.row_number().over(in_order) > 1
    )
    content = [*shape.data, _field(IS_DELETE, T.BooleanType())]
    alike = all_of([same(before(f.name), F.col(quote(f.name)), f.dataType) for f in content])
    tie = (F.col(_ORDER) == _NEW) & (before(_ORDER) == _NEW) & again & ~alike
    is_null = F.expr(holds_null(SEQUENCE, shape.sequence))
    marked = known.withColumns(
        {_SKIPPED: again, BAD: F.when(is_null, 1).when(tie, 2).otherwise(0)}
    ).withColumn(BAD, F.max(BAD).over(by_key))
    return marked.where(~F.col(_SKIPPED)).drop(_SKIPPED)


def _filled(events: DataFrame, shape: TimelineShape) -> DataFrame:
    """Give NULLs that mean nothing the value of the event before, back to the last delete.

    What the events said themselves goes to one column of its own, as far as it may differ.
    """
    raw = events.withColumn(_RAW, _struct_of(shape.kept))
    if not shape.null_keeps:
        return raw
    by_key = Window.partitionBy(*map(quote, shape.keys))
    epochs = raw.withColumn(
        _EPOCH, F.sum(F.col(IS_DELETE).cast("long")).over(by_key.orderBy(SEQUENCE))
    )
    so_far = Window.partitionBy(*map(quote, shape.keys), _EPOCH).orderBy(SEQUENCE)
    so_far = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return epochs.withColumns(
        {name: F.last(quote(name), ignorenulls=True).over(so_far) for name in shape.names}
    ).drop(_EPOCH)


def _roles(events: DataFrame, shape: TimelineShape) -> DataFrame:
    """Say which events start a version and which end one, and drop repeats nobody wants."""
    in_order = Window.partitionBy(*map(quote, shape.keys)).orderBy(SEQUENCE)

    def before(name: str) -> Column:
        return F.lag(quote(name)).over(in_order)

    def alike(fields: Sequence[T.StructField]) -> Column:
        return all_of([same(before(f.name), F.col(quote(f.name)), f.dataType) for f in fields])

    deleted = F.col(IS_DELETE)
    nothing = F.coalesce(before(IS_DELETE), F.lit(True))  # noqa: FBT003
    tracked = [field for field in shape.data if field.name in shape.tracked]
    found = events.withColumns(
        {
            _STARTS: ~deleted & (nothing | ~alike(tracked)),
            _CLOSES: deleted & ~nothing,
            _SKIPPED: ~deleted & ~nothing & alike(shape.data) & (F.col(_ORDER) == _NEW),
        }
    )
    if not shape.remembers:
        found = found.where(~F.col(_SKIPPED) | (F.col(BAD) > 0))
    return found.drop(_SKIPPED)


def _shown(events: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return each event as the row that the table is to have for it."""
    by_key = Window.partitionBy(*map(quote, shape.keys))
    later = by_key.orderBy(F.col(SEQUENCE).desc()).rowsBetween(Window.unboundedPreceding, -1)
    starts, deleted, at = F.col(_STARTS), F.col(IS_DELETE), F.col(SEQUENCE)
    next_change = F.last(F.when(starts | F.col(_CLOSES), at), ignorenulls=True).over(later)
    rows = events.withColumns(
        {
            shape.valid_to: F.when(starts, next_change).otherwise(at),
            ROLE: F.when(starts, F.lit(None).cast("string"))
            .when(deleted, F.lit(DELETE))
            .otherwise(F.lit(REPEAT)),
            _GROUP: F.sum((starts | deleted).cast("long")).over(by_key.orderBy(SEQUENCE)),
        }
    )
    loose = [field for field in shape.data if field.name not in shape.tracked]
    if loose:
        version = Window.partitionBy(*map(quote, shape.keys), _GROUP).orderBy(SEQUENCE)
        version = version.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        rows = rows.withColumns(
            {
                f.name: F.when(starts, F.last(quote(f.name)).over(version)).otherwise(
                    F.col(quote(f.name))
                )
                for f in loose
            }
        )
    if shape.is_current is not None:
        current = starts & F.col(quote(shape.valid_to)).isNull()
        rows = rows.withColumn(shape.is_current, current)
    if shape.kept:
        raw = F.col(_RAW)
        differs = any_of(
            [~same(F.col(quote(f.name)), raw.getField(f.name), f.dataType) for f in shape.kept]
        )
        rows = rows.withColumn(ORIGINAL, F.when(differs, raw))
    return rows


def _operations(rows: DataFrame, shape: TimelineShape) -> DataFrame:
    """Compare the rows that are to be with those that are."""
    stored = F.col(_STORED)
    unchanged = all_of(
        [same(F.col(quote(f.name)), stored.getField(f.name), f.dataType) for f in shape.values]
    )
    operation = (
        F.when(F.col(_CLOSES) & stored.isNotNull(), REMOVE)
        .when(F.col(_CLOSES), None)
        .when(stored.isNull(), INSERT)
        .when(~unchanged, UPDATE)
    )
    wanted = rows.withColumn(OPERATION, operation).where(
        F.col(OPERATION).isNotNull() | (F.col(BAD) > 0)
    )
    names = [quote(name) for name in (*shape.keys, *(f.name for f in shape.values))]
    return guarded(wanted, shape.keys[0], sequence_guards(shape.keys)).select(
        OPERATION, F.col(SEQUENCE).alias(shape.valid_from), *names
    )


def _new_events(events: DataFrame, shape: TimelineShape) -> DataFrame:
    given = frozenset(events.columns)

    def value(field: T.StructField) -> Column:
        known = F.col(quote(field.name)) if field.name in given else F.lit(None)
        return F.when(~F.col(IS_DELETE), known).cast(field.dataType).alias(field.name)

    return events.select(
        *map(quote, shape.keys),
        *map(value, shape.data),
        F.col(SEQUENCE).cast(shape.sequence).alias(SEQUENCE),
        IS_DELETE,
        F.lit(_NEW).alias(_ORDER),
        F.lit(None).cast(T.StructType(list(shape.values))).alias(_STORED),
    )


def _stored_events(stored: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return what the rows of the table say: every row is an event, whatever it shows."""
    kept = {field.name for field in shape.kept}

    def value(field: T.StructField) -> Column:
        column = F.col(quote(field.name))
        if field.name in kept:
            original = F.col(ORIGINAL)
            column = F.when(original.isNotNull(), original.getField(field.name)).otherwise(column)
        return column.alias(field.name)

    return stored.select(
        *map(quote, shape.keys),
        *map(value, shape.data),
        F.col(quote(shape.valid_from)).alias(SEQUENCE),
        F.col(ROLE).eqNullSafe(F.lit(DELETE)).alias(IS_DELETE),
        F.lit(_STORED_ROW).alias(_ORDER),
        _struct_of(shape.values).alias(_STORED),
    )


def _ends(stored: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return the deletes that ends of versions tell; at a place that has a row they say nothing."""
    ended = stored.where(F.col(ROLE).isNull() & F.col(quote(shape.valid_to)).isNotNull())
    return ended.select(
        *map(quote, shape.keys),
        *(F.lit(None).cast(f.dataType).alias(f.name) for f in shape.data),
        F.col(quote(shape.valid_to)).alias(SEQUENCE),
        F.lit(True).alias(IS_DELETE),  # noqa: FBT003
        F.lit(_STORED_END).alias(_ORDER),
        F.lit(None).cast(T.StructType(list(shape.values))).alias(_STORED),
    )


def _complete(existing: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return rows of the table with every column that it is to have."""
    present = {field.name: field.dataType for field in existing.schema.fields}

    def value(field: T.StructField) -> Column:
        if field.name not in present:
            return F.lit(None).cast(field.dataType).alias(field.name)
        column = F.col(quote(field.name))
        kind = present[field.name]
        if field.name == ORIGINAL and isinstance(kind, T.StructType):
            known = kind.names
            column = F.when(
                column.isNotNull(),
                F.struct(
                    *(
                        (column.getField(f.name) if f.name in known else F.lit(None))
                        .cast(f.dataType)
                        .alias(f.name)
                        for f in shape.kept
                    )
                ),
            )
        return column.cast(field.dataType).alias(field.name)

    return existing.select(
        *map(quote, shape.keys), quote(shape.valid_from), *map(value, shape.values)
    )


def _struct_of(fields: Sequence[T.StructField]) -> Column:
    if not fields:
        return F.lit(None).cast("string")
    return F.struct(*(F.col(quote(f.name)).alias(f.name) for f in fields))


def _field(name: str, kind: T.DataType) -> T.StructField:
    return T.StructField(name, kind)
