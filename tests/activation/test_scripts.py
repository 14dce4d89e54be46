"""SQL scripts over tables of the catalog, those that write included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.spark.catalog import relation_cache


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    active.sql("CREATE DATABASE scripted")
    active.catalog.setCurrentDatabase("scripted")
    active.sql("CREATE TABLE d (id INT, v INT) USING delta")
    active.sql("INSERT INTO d VALUES (1, 1), (2, 2)")
    yield active
    active.catalog.setCurrentDatabase("default")
    active.sql("DROP DATABASE scripted CASCADE")
    assert not relation_cache._cached


def contents(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()), key=str)


def test_a_script_writes_in_the_scope_of_its_variables(database: SparkSession) -> None:
    spark = database
    result = spark.sql("""
    -- fills up
    BEGIN
      DECLARE x INT DEFAULT 5;
      WHILE x < 7 DO
        INSERT INTO d VALUES (x, x * 2);
        SET x = x + 1;
      END WHILE;
      IF (SELECT count(*) FROM d) = 4 THEN
        UPDATE d SET v = x + 100 WHERE id = x - 6;
      END IF;
      MERGE INTO d USING (SELECT 9 AS id) s ON d.id = s.id
        WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, x);
      CREATE TABLE made USING delta AS SELECT id FROM d WHERE id < x;
      SELECT d.id, d.v FROM d JOIN made ON d.id = made.id;
      DELETE FROM scripted.d WHERE id = 2;
    END""")
    assert contents(result) == [(1, 107), (2, 2), (5, 10), (6, 12)]
    assert contents(spark.table("d")) == [(1, 107), (5, 10), (6, 12), (9, 7)]
    assert contents(spark.table("made")) == [(1,), (2,), (5,), (6,)]


def test_what_fails_ends_the_script_with_its_own_error(database: SparkSession) -> None:
    spark = database
    with pytest.raises(PySparkException) as failed:
        spark.sql("BEGIN INSERT INTO d VALUES (3, 3); UPDATE d SET nope = 1; DELETE FROM d; END")
    assert failed.value.getCondition().startswith("UNRESOLVED_COLUMN")
    assert len(contents(spark.table("d"))) == 3  # what was committed before stays
    with pytest.raises(PySparkException):
        spark.sql("BEGIN SELECT (1; END")


@pytest.mark.thorough
def test_handlers_and_computed_statements_write_too(database: SparkSession) -> None:
    spark = database
    spark.sql("""
    BEGIN
      DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO
      BEGIN
        INSERT INTO d VALUES (0, 0);
      END;
      EXECUTE IMMEDIATE 'DELETE FROM d WHERE id = ?' USING 1;
      SELECT 1 / 0;
      INSERT INTO d VALUES (8, 8);
    END""")
    assert contents(spark.table("d")) == [(0, 0), (2, 2)]


@pytest.mark.thorough
def test_other_texts_are_no_scripts(database: SparkSession) -> None:
    spark = database
    assert contents(spark.sql("SELECT 'BEGIN' AS x")) == [("BEGIN",)]
    assert contents(spark.sql("BEGIN SELECT 1; END")) == [(1,)]
    assert contents(spark.sql("BEGIN SELECT max(v) FROM d; END")) == [(2,)]


def test_no_handler_sees_an_error_of_a_statement_over_a_delta_table(
    database: SparkSession,
) -> None:
    """As docs/sql.md says: the error ends the script, and the handler does not run."""
    spark = database
    with pytest.raises(PySparkException) as failed:
        spark.sql("""
        BEGIN
          DECLARE EXIT HANDLER FOR SQLEXCEPTION
          BEGIN
            INSERT INTO d VALUES (0, 0);
          END;
          UPDATE d SET v = 'no number' WHERE id = 1;
        END""")
    assert failed.value.getCondition() == "CAST_INVALID_INPUT"
    assert contents(spark.table("d")) == [(1, 1), (2, 2)]
