"""Names of relations in statements that nobody has analyzed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ParseException

from puredelta.spark.jvm.parser import parsed_plan, relation_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM a JOIN db.b USING (id) JOIN a AS again", {("a",), ("db", "b")}),
        ("SELECT * FROM a WHERE id IN (SELECT id FROM b)", {("a",), ("b",)}),
        ("WITH c AS (SELECT * FROM a) SELECT * FROM c", {("a",), ("c",)}),
        ("EXPLAIN SELECT * FROM cat.db.a", {("cat", "db", "a")}),
        ("SELECT 1", set()),
    ],
)
def test_every_name_is_found(spark: SparkSession, text: str, names: set[tuple[str, ...]]) -> None:
    found = relation_names(parsed_plan(spark, text))
    assert len(found) == len(names)
    assert set(found) == names


def test_what_is_no_statement_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(ParseException):
        parsed_plan(spark, "SELEC 1")
