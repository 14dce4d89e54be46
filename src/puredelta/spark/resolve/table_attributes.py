"""The columns of a table as attributes of Spark's plans, the same in all frames of the table.

So a ``Column`` that was taken from one of these frames fits the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from puredelta.protocol.schema.types import StructType
from puredelta.spark.connect.messages import alias_rows
from puredelta.spark.jvm.frames import analyzed_plan, frame_of, no_rows_like, with_attributes
from puredelta.spark.jvm.plans import named_plan
from puredelta.spark.resolve.bound_columns import bind_to, outer_name
from puredelta.spark.session.session import is_connect, no_rows
from puredelta.spark.session.types import struct_as_nullable, to_spark


def table_identity(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return no rows with the columns of a table; its attributes are the identity."""
    return no_rows(spark, struct_as_nullable(to_spark(schema)))


def renewed_identity(known: DataFrame, schema: StructType) -> DataFrame:
    """Return no rows with the columns a table has now, under the alias of ``known``.

    Columns it had before keep their attributes, whatever their type is now. Over Connect
    there are none to keep.
    """
    spark = known.sparkSession
    if struct_as_nullable(to_spark(schema)) == known.schema:
        return known
    latest = table_identity(spark, schema)
    if is_connect(spark):
        name = outer_name(known)
        return alias_rows(latest, name) if name else latest
    return no_rows_like(known, latest)


def with_identity(rows: DataFrame, identity: DataFrame) -> DataFrame:
    """Return the same rows with the attributes of ``identity``, matched by name.

    Over Connect columns taken from the rows are bound to those of ``identity``.
    """
    if is_connect(rows.sparkSession):
        bind_to(identity, rows)
        return rows
    names = identity.columns
    attributes = analyzed_plan(identity).output(len(names))
    return with_attributes(
        rows, {n: (n, attribute) for n, attribute in zip(names, attributes, strict=True)}
    )


def as_named(rows: DataFrame, name: Callable[[], Sequence[str]]) -> DataFrame:
    """Return the rows of a table or view, whose columns Spark has given the name of it.

    A Connect client does not know the server's names of the columns, so it gives them again.
    """
    return alias_rows(rows, name()) if is_connect(rows.sparkSession) else rows


def qualified(rows: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return rows whose columns may be called ``c.column``, ``b.c.column`` or ``a.b.c.column``.

    ``parts`` are the name of the rows: ``a``, ``b`` and ``c``.
    """
    if is_connect(rows.sparkSession):
        return alias_rows(rows, parts)
    *qualifier, name = parts
    plan = named_plan(name, analyzed_plan(rows), qualifier=qualifier)
    return frame_of(rows.sparkSession, plan)
