"""The history of keys, rebuilt from events: new, changed and removed rows of a type 2 table.

Every event of a key, old or new, has one row, ordered by its sequence. A row is a version (the
state from that sequence on) or an event that changed nothing: the repeat of the version in force,
or the delete of a missing key. Rows of the second kind cover no time (they end where they begin);
without them a late event could not be put in order. A delete that ends a version has no row: it
is the end of that version. So the table is a function of the set of events, in whatever order
they arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.recipes.arguments import all_true, as_field, holds_null, same_values, selected
from puredelta.recipes.source_rows import BAD, IS_DELETE, SEQUENCE, refuse_bad_sequences
from puredelta.spark.session.names import quote

ROLE = "__ROLE"
"""NULL for a version, else `REPEAT` or `DELETE`."""
ORIGINAL = "__ORIGINAL"
"""The event's own values, where the row shows others."""
REPEAT = "repeat"
DELETE = "delete"
OPERATION = "__recipe_operation"
"""The operation on a row of the table: `INSERT`, `UPDATE` or `REMOVE`."""
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
    """The columns of a type 2 table, with their roles."""

    keys: tuple[str, ...]
    data: tuple[T.StructField, ...]
    """All columns except keys and times, with their types in the table."""
    sequence: T.DataType
    tracked: frozenset[str]
    """Columns whose change makes a new version; others change in the version in force."""
    valid_from: str
    valid_to: str
    is_current: str | None
    null_keeps: bool = False
    """Whether NULL in an event keeps the old value."""
    remembers: bool = True
    """Whether an event that repeats a known version leaves a row."""

    @property
    def names(self) -> tuple[str, ...]:
        """The data columns."""
        return tuple(field.name for field in self.data)

    @property
    def kept(self) -> tuple[T.StructField, ...]:
        """Data columns that may differ between a row and its event."""
        if self.null_keeps:
            return self.data
        return tuple(field for field in self.data if field.name not in self.tracked)

    @property
    def values(self) -> tuple[T.StructField, ...]:
        """Every column except keys and `valid_from`, as in the table."""
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
    """Return the changes of the table: `OPERATION`, keys, `valid_from`, and the values.

    ``events`` have keys, data, `SEQUENCE` and `IS_DELETE`; ``existing`` are all rows of the table
    with the keys of the events, None where there is no table. A NULL sequence, and two different
    events of a key at one sequence, raise an error when the rows are read.
    """
    known = _new_events(events, shape)
    if existing is None:
        nothing = F.lit(None).cast(T.StructType(list(shape.values)))
        known = known.withColumn(_STORED, nothing)
    else:
        stored = _complete(existing, shape)
        every = _stored_events(stored, shape)
        for more in (_ends(stored, shape), known):  # missing columns are NULL
            every = every.unionByName(more, allowMissingColumns=True)
        known = every
    placed = _roles(_filled(_distinct(known, shape), shape), shape)
    return _operations(_shown(placed, shape), shape)


@dataclass(frozen=True, slots=True)
class _Text:
    """SQL text about the rows of a key; text costs one call into the JVM, a Column several.

    Windows begin with the latest row where they can, so that rows are sorted once for all.
    """

    shape: TimelineShape

    @property
    def key(self) -> list[str]:
        return list(map(quote, self.shape.keys))

    @property
    def data(self) -> list[str]:
        return list(map(quote, self.shape.names))

    def over(self, order: str = "", frame: str = "", *, within: str = "") -> str:
        """Return a window over the rows of a key, or over groups ``within`` them."""
        by = ", ".join([*self.key, *filter(None, [within])])
        return f"OVER (PARTITION BY {by} {order and f'ORDER BY {order}'} {frame})"


def _alike(fields: Iterable[T.StructField], window: str) -> str:
    """Return SQL that tells whether the row before, the next of ``window``, has the same values."""
    return all_true(
        same_values(f"lead({quote(f.name)}) {window}", quote(f.name), f.dataType) for f in fields
    )


def _distinct(known: DataFrame, shape: TimelineShape) -> DataFrame:
    """Keep the first event of a key and sequence, a stored one before a new one."""
    text = _Text(shape)
    latest_first = text.over(f"{SEQUENCE} DESC, {_ORDER} DESC")
    before = f"lead({_ORDER}) {latest_first}"  # never NULL where there is a row
    again = f"lead({SEQUENCE}) {latest_first} <=> {SEQUENCE} AND {before} IS NOT NULL"
    alike = _alike([*shape.data, _field(IS_DELETE, T.BooleanType())], latest_first)
    tie = f"{_ORDER} = {_NEW} AND {before} = {_NEW} AND {again} AND NOT {alike}"
    is_null = holds_null(SEQUENCE, shape.sequence)
    marked = known.selectExpr(
        *text.key,
        *text.data,
        *(SEQUENCE, IS_DELETE, _ORDER, _STORED),
        f"{again} AS {_SKIPPED}",
        f"CASE WHEN {is_null} THEN 1 WHEN {tie} THEN 2 ELSE 0 END AS {BAD}",
    ).withColumn(BAD, F.expr(f"max({BAD}) {text.over()}"))
    return marked.where(f"NOT {_SKIPPED}")


_EVENT = (SEQUENCE, IS_DELETE, _ORDER, _STORED, BAD)
"""Columns of an event beside keys and data."""


def _filled(events: DataFrame, shape: TimelineShape) -> DataFrame:
    """Replace NULLs that keep the old value by that of the event before, back to the last delete.

    The events' own values are kept in a separate column, as far as they may differ.
    """
    text = _Text(shape)
    raw = f"{_struct_of(shape.kept)} AS {_RAW}"
    if not shape.null_keeps:
        return events.selectExpr(*text.key, *text.data, *_EVENT, raw)
    deletes = f"sum(CAST({IS_DELETE} AS BIGINT)) {text.over(SEQUENCE)} AS {_EPOCH}"
    epochs = events.selectExpr(*text.key, *text.data, *_EVENT, raw, deletes)
    until_now = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    so_far = text.over(SEQUENCE, until_now, within=_EPOCH)
    last = [f"last({name}, true) {so_far} AS {name}" for name in text.data]
    return epochs.selectExpr(*text.key, *last, *_EVENT, _RAW)


def _roles(events: DataFrame, shape: TimelineShape) -> DataFrame:
    """Mark events that start or end a version, and drop unwanted repeats."""
    text = _Text(shape)
    latest_first = text.over(f"{SEQUENCE} DESC")
    nothing = f"coalesce(lead({IS_DELETE}) {latest_first}, true)"
    other = f"NOT {_alike((f for f in shape.data if f.name in shape.tracked), latest_first)}"
    repeats = f"{_alike(shape.data, latest_first)} AND {_ORDER} = {_NEW}"
    found = events.selectExpr(
        *text.key,
        *text.data,
        *(*_EVENT, _RAW),
        f"NOT {IS_DELETE} AND ({nothing} OR {other}) AS {_STARTS}",
        f"{IS_DELETE} AND NOT {nothing} AS {_CLOSES}",
        f"NOT {IS_DELETE} AND NOT {nothing} AND {repeats} AS {_SKIPPED}",
    )
    return found if shape.remembers else found.where(f"NOT {_SKIPPED} OR {BAD} > 0")


def _shown(events: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return each event as the row that the table should have for it."""
    text = _Text(shape)
    valid_to = quote(shape.valid_to)
    later = text.over(f"{SEQUENCE} DESC", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    next_change = f"last(CASE WHEN {_STARTS} OR {_CLOSES} THEN {SEQUENCE} END, true) {later}"
    # Only columns that are not tracked take values from the version around a row.
    has_loose = not shape.tracked.issuperset(shape.names)
    group = f"sum(CAST({_STARTS} OR {IS_DELETE} AS BIGINT)) {text.over(SEQUENCE)} AS {_GROUP}"
    role = f"CASE WHEN {_STARTS} THEN NULL WHEN {IS_DELETE} THEN '{DELETE}' ELSE '{REPEAT}' END"
    rows = events.selectExpr(
        *text.key,
        *text.data,
        *(*_EVENT, _RAW, _STARTS, _CLOSES),
        f"CASE WHEN {_STARTS} THEN {next_change} ELSE {SEQUENCE} END AS {valid_to}",
        f"{role} AS {ROLE}",
        *([group] if has_loose else []),
    )
    whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    version = text.over(SEQUENCE, whole, within=_GROUP)

    def value(name: str) -> str:
        if name in shape.tracked:
            return quote(name)
        last = f"last({quote(name)}) {version}"
        return f"CASE WHEN {_STARTS} THEN {last} ELSE {quote(name)} END AS {quote(name)}"

    current = [quote(shape.is_current)] if shape.is_current is not None else []
    rows = rows.selectExpr(
        *text.key,
        *map(value, shape.names),
        *(SEQUENCE, _STORED, BAD, _CLOSES, _RAW, ROLE, valid_to),
        *(f"{_STARTS} AND {valid_to} IS NULL AS {name}" for name in current),
    )
    if not shape.kept:
        return rows
    same_as_event = all_true(
        same_values(quote(f.name), f"{_RAW}.{quote(f.name)}", f.dataType) for f in shape.kept
    )
    return rows.selectExpr(
        *text.key,
        *text.data,
        *(SEQUENCE, _STORED, BAD, _CLOSES, ROLE, valid_to, *current),
        f"CASE WHEN NOT {same_as_event} THEN {_RAW} END AS {ORIGINAL}",
    )


def _operations(rows: DataFrame, shape: TimelineShape) -> DataFrame:
    """Compare the wanted rows with the existing ones."""
    values = [quote(field.name) for field in shape.values]
    unchanged = all_true(
        same_values(quote(f.name), f"{_STORED}.{quote(f.name)}", f.dataType) for f in shape.values
    )
    operation = (
        f"CASE WHEN {_CLOSES} AND {_STORED} IS NOT NULL THEN '{REMOVE}' WHEN {_CLOSES} THEN NULL "
        f"WHEN {_STORED} IS NULL THEN '{INSERT}' WHEN NOT {unchanged} THEN '{UPDATE}' END"
    )
    keys = _Text(shape).key
    wanted = rows.selectExpr(f"{operation} AS {OPERATION}", SEQUENCE, BAD, *keys, *values).where(
        f"{OPERATION} IS NOT NULL OR {BAD} > 0"
    )
    return refuse_bad_sequences(wanted, shape.keys).selectExpr(
        OPERATION, f"{SEQUENCE} AS {quote(shape.valid_from)}", *keys, *values
    )


def _new_events(events: DataFrame, shape: TimelineShape) -> DataFrame:
    given = {field.name: field.dataType for field in events.schema.fields}

    def value(field: T.StructField) -> str | Column:
        if field.name not in given:
            return F.lit(None).cast(field.dataType).alias(field.name)
        name = quote(field.name)
        text = f"CASE WHEN NOT {IS_DELETE} THEN {name} END"
        return as_field(text, given[field.name], field)

    return selected(
        events,
        [
            *map(quote, shape.keys),
            *map(value, shape.data),
            as_field(SEQUENCE, given[SEQUENCE], _field(SEQUENCE, shape.sequence)),
            IS_DELETE,
            f"{_NEW} AS {_ORDER}",
        ],
    )


def _stored_events(stored: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return the events of the table's rows: every row is an event."""
    kept = {field.name for field in shape.kept}

    def value(name: str) -> str:
        if name not in kept:
            return quote(name)
        original = f"WHEN {ORIGINAL} IS NOT NULL THEN {ORIGINAL}.{quote(name)}"
        return f"CASE {original} ELSE {quote(name)} END AS {quote(name)}"

    return stored.selectExpr(
        *map(quote, shape.keys),
        *map(value, shape.names),
        f"{quote(shape.valid_from)} AS {SEQUENCE}",
        f"{ROLE} <=> '{DELETE}' AS {IS_DELETE}",
        f"{_STORED_ROW} AS {_ORDER}",
        f"{_struct_of(shape.values)} AS {_STORED}",
    )


def _ends(stored: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return the deletes implied by ends of versions, unless another row begins there."""
    valid_to = quote(shape.valid_to)
    return stored.where(f"{ROLE} IS NULL AND {valid_to} IS NOT NULL").selectExpr(
        *map(quote, shape.keys),
        f"{valid_to} AS {SEQUENCE}",
        f"true AS {IS_DELETE}",
        f"{_STORED_END} AS {_ORDER}",
    )


def _complete(existing: DataFrame, shape: TimelineShape) -> DataFrame:
    """Return rows of the table with all its future columns."""
    present = {field.name: field.dataType for field in existing.schema.fields}

    def value(field: T.StructField) -> str | Column:
        if field.name not in present:
            return F.lit(None).cast(field.dataType).alias(field.name)
        kind = present[field.name]
        if field.name == ORIGINAL and isinstance(kind, T.StructType) and kind != field.dataType:
            return _with_fields(F.col(ORIGINAL), kind.names, shape.kept)
        return as_field(quote(field.name), kind, field)

    keys = [*map(quote, shape.keys), quote(shape.valid_from)]
    return selected(existing, [*keys, *map(value, shape.values)])


def _with_fields(column: Column, known: Sequence[str], fields: Sequence[T.StructField]) -> Column:
    """Return a struct with other fields; NULL stays NULL."""
    values = (
        (column.getField(f.name) if f.name in known else F.lit(None)).cast(f.dataType).alias(f.name)
        for f in fields
    )
    return F.when(column.isNotNull(), F.struct(*values)).alias(ORIGINAL)


def _struct_of(fields: Sequence[T.StructField]) -> str:
    names = ", ".join(quote(field.name) for field in fields)
    return f"struct({names})" if names else "CAST(NULL AS STRING)"


def _field(name: str, kind: T.DataType) -> T.StructField:
    return T.StructField(name, kind)
