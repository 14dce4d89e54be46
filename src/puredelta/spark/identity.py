"""One identity for all frames of a table object: Columns taken from one fit the others."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.protocol.types import StructType
from puredelta.spark.catalyst import Catalyst
from puredelta.spark.classic_frames import rebased
from puredelta.spark.session import is_connect
from puredelta.spark.types import struct_as_nullable, to_spark


def table_identity(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return no rows with the columns of a table; its attributes are the identity."""
    return spark.createDataFrame([], struct_as_nullable(to_spark(schema)))


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
