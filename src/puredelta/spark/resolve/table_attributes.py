"""One identity for all frames of a table object: Columns taken from one fit the others."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.protocol.schema.types import StructType
from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.plans.lazy_frame import no_rows
from puredelta.spark.resolve.classic_frames import rebased
from puredelta.spark.resolve.connect_frames import outer_alias
from puredelta.spark.session.session import is_connect
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
        alias = outer_alias(known)
        return latest if alias is None else latest.alias(alias)
    catalyst = Catalyst(spark)
    before = catalyst.items(catalyst.analyzed(known).output())
    kept = {attribute.name(): attribute for attribute in before}
    qualifier = before[0].qualifier() if before else catalyst.seq([])
    attributes = [
        kept[a.name()].withDataType(a.dataType())
        if a.name() in kept
        else a.withQualifier(qualifier)
        for a in catalyst.items(catalyst.analyzed(latest).output())
    ]
    return catalyst.rows(catalyst.relation(catalyst.seq(attributes)))


def with_identity(rows: DataFrame, identity: DataFrame) -> DataFrame:
    """Return the same rows with the attributes of ``identity``, matched by name.

    Over Connect there are no attributes to share, and the rows come back as they are.
    """
    spark = rows.sparkSession
    if is_connect(spark):
        return rows
    catalyst = Catalyst(spark)
    attributes = catalyst.items(catalyst.analyzed(identity).output())
    named = {
        name: (name, attribute)
        for name, attribute in zip(identity.columns, attributes, strict=True)
    }
    return rebased(catalyst, rows, named)
