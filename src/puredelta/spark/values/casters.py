"""Casts whose mode does not depend on ``spark.sql.ansi.enabled``, per kind of session."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from typing_extensions import assert_never

from puredelta.errors import ErrorCode
from puredelta.spark.connect.messages import cast_in_mode
from puredelta.spark.jvm import casts
from puredelta.spark.jvm.expressions import Expression, column_of
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.values.row_errors import overflow_message, row_error
from puredelta.spark.values.store_assignment import ArrayCall, Caster, CastMode, Value, sql_type


class ClassicCaster:
    """Spark's own ``Cast`` in the mode asked for, and its check of overflows.

    An overflow raises CAST_OVERFLOW_IN_TABLE_INSERT with the column's name;
    `puredelta.spark.values.row_errors` makes delta-spark's error of it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def cast(self, value: Column, to: T.DataType, *, mode: CastMode, column: str) -> Column:
        """Return the value as ``to``."""
        return casts.cast(
            self._spark,
            value,
            to,
            ansi=mode is not CastMode.LEGACY,
            checked_column=column if mode is CastMode.CHECKED else None,
        )

    def array_call(self, value: Column) -> ArrayCall | None:
        """Return the call that makes this array out of others, if it compares elements."""
        call = casts.array_function(self._spark, value)
        if call is None:
            return None
        return ArrayCall(
            arrays=tuple(map(_value, call.arrays)),
            element=None if call.element is None else _value(call.element),
            of=call.of,
        )


def _value(expression: Expression) -> Value:
    return Value(column=column_of(expression), type=expression.type(), sql=expression.sql())


class ConnectCaster:
    """The same from public functions.

    Spark's check of overflows is not among them: ``try_cast`` gives NULL for what does not fit, and
    a value that was not NULL then raises. Arrays and maps are cast by element, so that one element
    that does not fit cannot become NULL unseen.
    """

    def cast(self, value: Column, to: T.DataType, *, mode: CastMode, column: str) -> Column:
        """Return the value as ``to``."""
        match mode:
            case CastMode.LEGACY | CastMode.ANSI:
                return cast_in_mode(value, to, mode.value)
            case CastMode.UP_CAST:
                return value.cast(to)
            case CastMode.CHECKED:
                return self._guarded(value, to, column)
            case _:
                assert_never(mode)

    def array_call(self, value: Column) -> None:  # noqa: ARG002
        """Return nothing: a client does not see what its expressions are made of."""
        return

    def _guarded(self, value: Column, to: T.DataType, column: str) -> Column:
        match to:
            case T.ArrayType():
                inner = to.elementType
                return F.transform(value, lambda item: self._guarded(item, inner, column))
            case T.MapType():
                key, item = to.keyType, to.valueType
                values = F.transform_values(value, lambda _, v: self._guarded(v, item, column))
                return F.transform_keys(values, lambda k, _: self._guarded(k, key, column))
            case _:
                tried = value.try_cast(to)
                failure = _failure(value, to, column)
                return F.when(value.isNotNull() & tried.isNull(), failure).otherwise(tried)


def caster_of(spark: SparkSession, session: SessionInfo) -> Caster:
    """Return the one for this kind of session."""
    return ConnectCaster() if session.is_connect else ClassicCaster(spark)


def _failure(value: Column, to: T.DataType, column: str) -> Column:
    """Raise: malformed text, or an overflow of anything else."""
    wanted = sql_type(to)
    malformed = row_error(
        ErrorCode.CAST_INVALID_INPUT,
        F.concat(
            F.lit("The value '"),
            value.try_cast("string"),
            F.lit(
                f'\' of the type "STRING" cannot be cast to {wanted} because it is malformed. '
                "Correct the value as per the syntax, or use `try_cast` to get NULL instead."
            ),
        ),
    )
    kind = F.upper(F.typeof(value))
    overflow = row_error(
        ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE,
        F.format_string(
            overflow_message('"%s"', wanted.replace("%", "%%"), column.replace("%", "%%")), kind
        ),
        {"source_type": kind, "target_type": F.lit(wanted), "column_name": F.lit(column)},
    )
    return F.when(kind.startswith("STRING"), malformed).otherwise(overflow)
