"""The values of new rows: of the clause that fires, or computed from the finished row."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.commands.dml.new_rows import rows_with_values
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.spark.session.names import CLAUSE
from tests.log.tables import config, feature_protocol

pytestmark = pytest.mark.spark
GENERATED = StructField("g", LONG, metadata={"delta.generationExpression": "id * 10"})
TABLE = config(
    feature_protocol("generatedColumns"),
    schema=StructType((StructField("id", LONG), StructField("v", LONG), GENERATED)),
)


def test_each_row_has_the_values_of_its_clause(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 0), (2, 1), (3, 2)], f"n long, {CLAUSE} int")
    same = F.col("n")
    made = rows_with_values(
        frame,
        {
            0: {"id": same, "v": F.lit(7), "g": F.lit(-1)},
            1: {"id": same, "v": F.lit(8)},
            2: {"id": same, "v": F.lit(9)},
        },
        TABLE,
    )
    assert made.columns == ["id", "v", "g", CLAUSE]
    found = {row["id"]: (row["v"], row["g"]) for row in made.collect()}
    assert found == {1: (7, -1), 2: (8, 20), 3: (9, 30)}


def test_helpers_pass_through(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 0, "x")], f"n long, {CLAUSE} int, helper string")
    every = {"id": F.col("n"), "v": F.lit(1), "g": F.lit(2)}
    (row,) = rows_with_values(frame, {0: every}, TABLE, helpers=("helper",)).collect()
    assert row.asDict() == {"id": 1, "v": 1, "g": 2, CLAUSE: 0, "helper": "x"}
