"""Options of an INSERT: of ``df.write.insertInto``, and of ``INSERT INTO ... WITH (...)``.

The expected rows are those of delta-spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.commands.write import options

ONES = {(9, 1, "x"), (2, 2, "b")}
"""The rows after those with ``p = 1`` are replaced."""
SOME = {
    "where": ({"replaceWhere": "p = 1"}, ONES),
    "where data": ({"replaceWhere": "v = 'x' OR id < 3"}, {(9, 1, "x"), (3, 1, "c")}),
    "dynamic": ({"partitionOverwriteMode": "dynamic"}, ONES),
    "using": ({"replaceUsing": "p"}, ONES),
    "all": ({"userMetadata": "why"}, {(9, 1, "x")}),
}


@pytest.fixture(autouse=True)
def table(active: SparkSession) -> Iterator[None]:
    active.sql("CREATE TABLE given (id INT, p INT, v STRING) USING delta PARTITIONED BY (p)")
    active.sql("INSERT INTO given VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 1, 'c')")
    yield
    active.sql("DROP TABLE given")


def insert_into(spark: SparkSession, given: dict[str, str]) -> None:
    spark.sql("SELECT 9, 1, 'x'").write.options(**given).insertInto("given", overwrite=True)


def insert_by_text(spark: SparkSession, given: dict[str, str]) -> None:
    said = ", ".join(f"""'{name}' = "{value}" """ for name, value in given.items())
    spark.sql(f"INSERT OVERWRITE given WITH ({said}) SELECT 9, 1, 'x'")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("insert", [insert_into, insert_by_text])
@pytest.mark.parametrize("case", SOME)
def test_an_overwrite_replaces_the_rows_that_its_options_say(
    active: SparkSession, insert: Callable[[SparkSession, dict[str, str]], None], case: str
) -> None:
    given, expected = SOME[case]
    insert(active, given)
    assert {tuple(row) for row in active.table("given").collect()} == expected
    last = active.sql("DESCRIBE HISTORY given LIMIT 1").collect()[0]
    assert last.userMetadata == given.get("userMetadata")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("insert", [insert_into, insert_by_text])
def test_new_rows_have_to_satisfy_the_condition(
    active: SparkSession, insert: Callable[[SparkSession, dict[str, str]], None]
) -> None:
    with pytest.raises(PySparkException, match="DELTA_REPLACE_WHERE_MISMATCH"):
        insert(active, {"replaceWhere": "p = 2"})
    assert active.table("given").count() == 3


def test_columns_are_added_and_runs_are_known(active: SparkSession) -> None:
    rows = active.sql("SELECT 9, 1, 'x', 5 AS more")
    rows.write.option("mergeSchema", "true").insertInto("given")
    active.sql("INSERT INTO given WITH ('mergeSchema' = 'true') BY NAME SELECT 8 AS id, 6 AS last")
    assert active.table("given").columns == ["id", "p", "v", "more", "last"]
    for _ in range(2):
        run = {"txnAppId": "load", "txnVersion": "1"}
        active.sql("SELECT 7, 1, 'y', 5, 6").write.options(**run).insertInto("given")
    assert active.table("given").where("id = 7").count() == 1


def test_partitions_of_the_writer_are_refused(active: SparkSession) -> None:
    with pytest.raises(PySparkException, match="insertInto"):
        active.sql("SELECT 9, 1, 'x'").write.partitionBy("p").insertInto("given")
    assert active.table("given").count() == 3


@pytest.mark.thorough
def test_an_insert_warns_of_nothing(active: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """Spark marks what an INSERT may do by an option of its own."""
    options._say_unknown.cache_clear()
    active.sql("INSERT INTO given SELECT 4, 1, 'd'")
    active.sql("INSERT OVERWRITE given SELECT 5, 1, 'e'")
    assert not caplog.records
    active.sql("INSERT INTO given WITH ('mergeschemas' = 'true') SELECT 4, 1, 'd'")
    assert "mergeschemas has no effect" in caplog.text
