"""Rows of an INSERT over Connect: Spark's ``TableOutputResolver`` by public functions.

Columns are matched by position or by name, and so are the fields of structs at every depth. Types
that a column does not take are an error before a job runs; a value that does not fit is an error of
its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message
from puredelta.spark.session.names import display_name
from puredelta.spark.session.session import SessionInfo, StoreAssignment
from puredelta.spark.session.types import as_nullable, quoted
from puredelta.spark.values.casters import caster_of
from puredelta.spark.values.store_assignment import (
    Caster,
    CastMode,
    can_up_cast,
    cast_mode,
    is_same_type,
    sql_type,
)

_DATETIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)
_INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType)

_Part = TypeVar("_Part")


def stored_on_client(
    rows: DataFrame, columns: T.StructType, *, table: str, by_name: bool
) -> DataFrame:
    """Return the rows with exactly these columns; runs no job.

    Raises:
        InvalidRequestError: another number of columns, or types that the columns do not take
            (INSERT_COLUMN_ARITY_MISMATCH, INCOMPATIBLE_DATA_FOR_TABLE).
    """
    given = rows.schema.fields
    _require_columns(given, columns.fields, table=table, by_name=by_name)
    session = SessionInfo.of(rows.sparkSession)
    mode = cast_mode(session, follows_ansi_flag=False)
    caster = caster_of(rows.sparkSession, session)
    stored = _Stored(
        caster=caster, mode=mode, policy=session.store_assignment, table=table, by_name=by_name
    )
    # Two columns of a query may have one name.
    numbered = [(f, f"c{n}") for n, f in enumerate(given)]
    plain = rows.toDF(*(name for _, name in numbered))
    pairs = _pairs(numbered, [f.name for f in given], columns.fields, by_name=by_name)
    return plain.select(
        *(
            stored.value(F.col(quoted(name)), f.dataType, to.dataType, (to.name,)).alias(to.name)
            for (f, name), to in pairs
        )
    )


def _pairs(
    given: Sequence[_Part],
    names: Sequence[str],
    wanted: Sequence[T.StructField],
    *,
    by_name: bool,
) -> list[tuple[_Part, T.StructField]]:
    """Return for each column or field that is wanted the one that is given."""
    if not by_name:
        return list(zip(given, wanted, strict=True))
    known = {name.lower(): part for name, part in zip(names, given, strict=True)}
    return [(known[field.name.lower()], field) for field in wanted]


def _require_columns(
    given: Sequence[T.StructField],
    wanted: Sequence[T.StructField],
    *,
    table: str,
    by_name: bool,
) -> None:
    names, known = [f.name for f in given], [f.name for f in wanted]
    if not by_name:
        if len(given) != len(wanted):
            raise InvalidRequestError(
                Message.INSERT_TOO_MANY_DATA_COLUMNS
                if len(given) > len(wanted)
                else Message.INSERT_NOT_ENOUGH_DATA_COLUMNS,
                table=table,
                given=", ".join(names),
                wanted=", ".join(known),
            )
        return
    lower = [name.lower() for name in names]
    for name in known:
        if (times := lower.count(name.lower())) != 1:
            message = Message.INSERT_AMBIGUOUS_COLUMN if times else Message.INSERT_NO_DATA
            raise InvalidRequestError(message, table=table, column=name)
    extra = [name for name in names if name.lower() not in {one.lower() for one in known}]
    if extra:
        raise InvalidRequestError(
            Message.INSERT_EXTRA_COLUMNS, table=table, columns=", ".join(extra)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Values of one INSERT, stored as the types of the table."""

    caster: Caster
    mode: CastMode
    policy: StoreAssignment
    table: str
    by_name: bool

    def value(
        self, value: Column, given: T.DataType, to: T.DataType, path: tuple[str, ...]
    ) -> Column:
        """Return a value with exactly the type ``to``; ``path`` is its column, for errors."""
        if is_same_type(given, to):
            return value
        match given, to:
            case T.NullType(), _:
                return value.cast(as_nullable(to))
            case T.StructType(), T.StructType():
                return self._struct(value, given, to, path)
            case T.ArrayType(), T.ArrayType():
                inner = (*path, "element")
                return F.transform(
                    value,
                    lambda item: self.value(item, given.elementType, to.elementType, inner),
                )
            case T.MapType(), T.MapType():
                return self._map(value, given, to, path)
            case _:
                self._require_type(given, to, path)
                name = display_name(path)
                return self.caster.cast(value, as_nullable(to), mode=self.mode, column=name)

    def _struct(
        self, value: Column, given: T.StructType, to: T.StructType, path: tuple[str, ...]
    ) -> Column:
        self._require_fields(given, to, path)
        names = [f.name for f in given.fields]
        fields = [
            self.value(value.getField(f.name), f.dataType, wanted.dataType, (*path, wanted.name))
            .alias(wanted.name)
            for f, wanted in _pairs(given.fields, names, to.fields, by_name=self.by_name)
        ]  # fmt: skip
        return F.when(value.isNotNull(), F.struct(*fields))

    def _require_fields(self, given: T.StructType, to: T.StructType, path: tuple[str, ...]) -> None:
        known = {name.lower() for name in given.names}
        wanted = {name.lower() for name in to.names}
        column = display_name(path)
        if self.by_name:
            missing = [name for name in to.names if name.lower() not in known]
            extra = [name for name in given.names if name.lower() not in wanted]
        else:
            missing = to.names[len(given.names) :]
            extra = given.names[len(to.names) :]
        if missing:
            raise InvalidRequestError(
                Message.INSERT_STRUCT_MISSING_FIELDS,
                table=self.table,
                column=column,
                fields=", ".join(missing),
            )
        if extra:
            raise InvalidRequestError(
                Message.INSERT_EXTRA_STRUCT_FIELDS,
                table=self.table,
                column=column,
                fields=", ".join(extra),
            )

    def _map(self, value: Column, given: T.MapType, to: T.MapType, path: tuple[str, ...]) -> Column:
        made = value
        if not is_same_type(given.valueType, to.valueType):
            inner = (*path, "value")
            made = F.transform_values(
                made, lambda _, item: self.value(item, given.valueType, to.valueType, inner)
            )
        if not is_same_type(given.keyType, to.keyType):
            key = (*path, "key")
            made = F.transform_keys(
                made, lambda item, _: self.value(item, given.keyType, to.keyType, key)
            )
        return made

    def _require_type(self, given: T.DataType, to: T.DataType, path: tuple[str, ...]) -> None:
        if self.policy is StoreAssignment.LEGACY:
            return  # the server knows
        is_possible = can_store if self.policy is StoreAssignment.ANSI else can_up_cast
        if not is_possible(given, to):
            raise InvalidRequestError(
                Message.INSERT_CANNOT_SAFELY_CAST,
                table=self.table,
                column=display_name(path),
                source_type=sql_type(given),
                target_type=sql_type(to),
            )


def can_store(given: T.DataType, to: T.DataType) -> bool:
    """Return whether the ANSI policy stores values of one type as another; neither is nested.

    >>> can_store(T.LongType(), T.ByteType()), can_store(T.StringType(), T.IntegerType())
    (True, False)
    """
    match given, to:
        case T.NullType(), _:
            return True
        case T.NumericType(), T.NumericType():
            return True
        case T.AtomicType(), T.StringType():
            return True
        case _ if isinstance(given, _DATETIMES) and isinstance(to, _DATETIMES):
            return True
        case _:
            return type(given) is type(to) and isinstance(given, _INTERVALS)
