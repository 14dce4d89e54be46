"""Structs in an INSERT: the order of their fields, and fields that the table lacks.

The expected rows are those of delta-spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

TABLE = "(id INT, s STRUCT<a: INT, b: INT>)"
SWAPPED = "named_struct('b', 1, 'a', 2)"
WIDE = "named_struct('c', 9, 'b', 1, 'a', 2)"
BY_NAME, BY_POSITION = (2, 1), (1, 2)
AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"


@pytest.fixture
def table(active: SparkSession) -> Iterator[Callable[[str], None]]:
    """Return a function that makes the table ``structs`` with a definition, again if it exists."""

    def make(definition: str = TABLE) -> None:
        active.sql("DROP TABLE IF EXISTS structs")
        active.sql(f"CREATE TABLE structs {definition} USING delta")

    make()
    yield make
    active.conf.unset(AUTO_MERGE)
    active.sql("DROP TABLE IF EXISTS structs")


def stored(spark: SparkSession) -> tuple[int | None, ...]:
    (row,) = spark.sql("SELECT s.* FROM structs").collect()
    return tuple(row)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"INTO structs SELECT 1 AS id, {SWAPPED} AS s", BY_NAME),
        (f"OVERWRITE structs SELECT 1 AS id, {SWAPPED} AS s", BY_NAME),
        (f"INTO structs REPLACE WHERE id = 1 SELECT 1 AS id, {SWAPPED} AS s", BY_NAME),
        (f"INTO structs BY NAME SELECT {SWAPPED} AS s, 1L AS id", BY_NAME),
        (f"INTO structs SELECT 1 AS ID, {SWAPPED} AS s", BY_POSITION),
        (f"INTO structs SELECT 1 AS id, {SWAPPED} AS other", BY_POSITION),
        (f"INTO structs VALUES (1, {SWAPPED})", BY_POSITION),
        (f"INTO structs SELECT 1L AS id, {SWAPPED} AS s", BY_POSITION),
        ("INTO structs SELECT 1 AS id, named_struct('b', 1L, 'a', 2) AS s", BY_POSITION),
        ("INTO structs SELECT 1 AS id, named_struct('B', 1, 'A', 2) AS s", BY_POSITION),
        (f"INTO structs (id, s) SELECT 1 AS id, {SWAPPED} AS s", BY_POSITION),
    ],
)
@pytest.mark.usefixtures("table")
def test_rows_with_the_columns_of_the_table_give_fields_by_name(
    active: SparkSession, text: str, expected: tuple[int, int]
) -> None:
    active.sql(f"INSERT {text}")
    assert stored(active) == expected


def test_fields_by_name_at_every_depth(active: SparkSession, table: Callable[[str], None]) -> None:
    table("(id INT NOT NULL, s STRUCT<l: ARRAY<STRUCT<a: INT, b: INT>>, m: MAP<INT, INT>>)")
    value = f"named_struct('m', map(1, 2), 'l', array({SWAPPED}))"
    active.sql(f"SELECT 1 AS id, {value} AS s").write.insertInto("structs")
    ((values, pairs),) = active.sql("SELECT s.* FROM structs").collect()
    assert (tuple(values[0]), pairs) == (BY_NAME, {1: 2})


@pytest.mark.usefixtures("table")
def test_fields_that_the_table_lacks_are_a_mismatch(active: SparkSession) -> None:
    rows = active.sql(f"SELECT 1 AS id, {WIDE} AS s")
    for insert in (
        lambda: active.sql(f"INSERT INTO structs SELECT 1 AS id, {WIDE} AS s"),
        lambda: active.sql(f"INSERT INTO structs BY NAME SELECT 1 AS id, {WIDE} AS s"),
        lambda: active.sql(f"INSERT INTO structs (id, s) SELECT 1, {WIDE}"),
        lambda: rows.write.insertInto("structs"),
        lambda: rows.writeTo("structs").append(),
    ):
        with pytest.raises(AnalysisException) as caught:
            insert()
        assert caught.value.getCondition() in {
            "DELTA_METADATA_MISMATCH",
            "DELTA_DUPLICATE_COLUMNS_FOUND",  # by position the last field is a second `a`
        }
    assert active.table("structs").isEmpty()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"INTO structs SELECT 1 AS id, {WIDE} AS s", (2, 1, 9)),
        (f"INTO structs BY NAME SELECT 1L AS id, {WIDE} AS s", (2, 1, 9)),
        (f"INTO structs (id, s) SELECT 1 AS id, {WIDE} AS s", (2, 1, 9)),
        (f"OVERWRITE structs SELECT 1 AS id, {WIDE} AS s, 5 AS more", (2, 1, 9)),
        ("INTO structs SELECT 1L, named_struct('x', 1, 'y', 2, 'c', 3)", (1, 2, 3)),
    ],
)
@pytest.mark.usefixtures("table")
def test_fields_that_the_table_lacks_are_added(
    active: SparkSession, text: str, expected: tuple[int, ...]
) -> None:
    active.conf.set(AUTO_MERGE, "true")
    active.sql(f"INSERT {text}")
    assert active.table("structs").schema["s"].dataType.simpleString() == (
        "struct<a:int,b:int,c:int>"
    )
    assert ("more" in active.table("structs").columns) == ("more" in text)
    assert stored(active) == expected


def test_elements_of_arrays_and_maps_get_more_fields(
    active: SparkSession, table: Callable[[str], None]
) -> None:
    table("(l ARRAY<STRUCT<a: INT>>, m MAP<INT, STRUCT<a: INT>>)")
    active.conf.set(AUTO_MERGE, "true")
    wide = "named_struct('a', 1, 'z', 'new')"
    active.sql(f"SELECT array({wide}), map(1, {wide})").write.insertInto("structs")
    ((values, pairs),) = active.table("structs").collect()
    assert [*map(tuple, (values[0], pairs[1]))] == [(1, "new"), (1, "new")]
