"""Spark's casts of written values, and the rules of its INSERT. Classic sessions only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.expressions import Expression, column_of, parsed
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.gateway import (
    CATALYST,
    java_class,
    java_type,
    jvm_of,
    scala_none,
    scala_object,
    session_of,
)
from puredelta.spark.jvm.plans import Plan

_REMOVE = "ArrayRemove"
_COMPARING = frozenset({"ArrayUnion", "ArrayIntersect", "ArrayExcept", "ArrayDistinct", _REMOVE})


def cast(
    spark: SparkSession, value: Column, to: T.DataType, *, ansi: bool, checked_column: str | None
) -> Column:
    """Return Spark's ``Cast`` of a value, in the mode asked for whatever the session's is.

    An overflow of a value for ``checked_column`` raises CAST_OVERFLOW_IN_TABLE_INSERT with the
    name of this column.
    """
    java = parsed(spark, value).java
    modes = scala_object(java, f"{CATALYST}.expressions.EvalMode")
    mode = modes.ANSI() if ansi else modes.LEGACY()
    session_zone = scala_none(java)
    made = _expression(java, "Cast")(java, _type(java, to), session_zone, mode)
    if checked_column is not None:
        made = _expression(java, "CheckOverflowInTableInsert")(made, checked_column)
    return column_of(Expression(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFunction:
    """A call of a function of arrays that compares their elements."""

    arrays: tuple[Expression, ...]
    element: Expression | None
    """What ``array_remove`` removes."""
    of: Callable[[Sequence[Column]], Column]
    """The same function of other operands."""


def array_function(spark: SparkSession, value: Column) -> ArrayFunction | None:
    """Return the call that makes this array out of others, if it compares elements."""
    call = parsed(spark, value)
    name = call.kind
    if name not in _COMPARING:
        return None
    operands = list(call.children())
    make = _expression(call.java, name)

    def of(columns: Sequence[Column]) -> Column:
        return column_of(Expression(make(*(parsed(spark, column).java for column in columns))))

    removed = operands.pop() if name == _REMOVE else None
    return ArrayFunction(arrays=tuple(operands), element=removed, of=of)


def _expression(jvm: Any, name: str) -> Any:
    return java_class(jvm, f"{CATALYST}.expressions.{name}")


def _type(jvm: Any, data_type: T.DataType) -> Any:
    """Return the JVM's type; inside a struct, where JSON tells collations."""
    struct = T.StructType([T.StructField("value", data_type)])
    return java_type(jvm, struct).apply(0).dataType()


def inserted_rows(
    rows: DataFrame, columns: T.StructType, *, table: str, by_name: bool
) -> DataFrame:
    """Return the rows with exactly these columns, by ``TableOutputResolver``.

    It is what Spark resolves its INSERT statements with: positions or names,
    ``spark.sql.storeAssignmentPolicy``, casts of nested values, and the errors.
    """
    spark = rows.sparkSession
    resolver = java_class(jvm_of(spark), f"{CATALYST}.analysis.TableOutputResolver")
    plan = resolver.resolveOutputColumns(
        table,
        analyzed_plan(spark.createDataFrame([], columns)).output().java,
        analyzed_plan(rows).java,
        by_name,
        session_of(spark).sessionState().conf(),
        getattr(resolver, "resolveOutputColumns$default$6")(),
    )
    return frame_of(spark, Plan(plan))
