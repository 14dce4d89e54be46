"""Conditions that Spark pushes into files: no row is lost by what their writers say of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.scan.plain_scan import PlainScan, plain_scan
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.spark.files import executed_plan

NAN = float("nan")
_CONDITIONS = (
    "x > 5",
    "x = 0",
    "x >= 0",
    "x = double('NaN')",
    "x <= -0.0D",
    "x IN (0.0D, 7.0D)",
    "x <=> 0.0D",
    "y > 5",
    "y = 0",
    "s.x > 5",
    "s.x = 0",
    "s.t.x > 5",
    "s.t.x < 1.5",
    "s IS NULL",
    "s.x IS NULL",
    "s.t.x BETWEEN 1 AND 2",
    "s.b < 500",
    "s.b > 15 AND s.t.n = 2",
    "id > 3",
)
_PLAIN = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.databricks.delta.stats.skipping": "false",
}


@pytest.fixture(scope="module")
def of_arrow(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that Arrow wrote: NaN and -0.0 are outside of its bounds."""
    root = tmp_path_factory.mktemp("arrow")
    x = [1.0, 2.0, NAN, 3.0]
    for number, values in enumerate((x, [-0.0])):
        ids = [number * 10 + n for n in range(len(values))]
        inside = [
            {"a": 1000, "x": v, "b": 10 * n, "t": {"n": n, "x": v}} if v != 3.0 else None
            for n, v in zip(ids, values, strict=True)
        ]
        y = pa.array(values, pa.float32())
        table = pa.table({"id": ids, "x": values, "y": y, "s": pa.array(inside)})
        pq.write_table(table, root / f"{number}.parquet")
    DeltaTable.convertToDelta(spark, f"parquet.`{root}`")
    return str(root)


@pytest.fixture(scope="module")
def of_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One that Spark wrote: -0.0 is not 0.0 to its bounds and dictionaries."""
    root = str(tmp_path_factory.mktemp("spark") / "t")
    for values in ("(1, 1.0D), (2, double('NaN'))", "(3, -0.0D), (4, -0.0D)"):
        rows = spark.sql(
            f"SELECT id, x, float(x) y, named_struct('a', 1000, 'x', x, 'b', id * 10, "
            f"'t', named_struct('n', id, 'x', x)) s FROM VALUES {values} AS v(id, x)"
        )
        puredelta.write(rows.coalesce(1), root, mode="append")
    return root


@pytest.mark.sampled(7)
@pytest.mark.parametrize("table", ["of_arrow", "of_spark"])
def test_a_condition_finds_the_rows_that_it_is_true_of(
    spark: SparkSession, table: str, request: pytest.FixtureRequest
) -> None:
    rows = puredelta.read(spark, request.getfixturevalue(table))
    found = _ids(rows, _CONDITIONS)
    with temporary_settings(spark, _PLAIN):
        assert found == _ids(rows, _CONDITIONS)


def test_conditions_on_other_columns_reach_the_files(spark: SparkSession, of_arrow: str) -> None:
    rows = puredelta.read(spark, of_arrow)
    assert "GreaterThan(id,3)" in executed_plan(rows.where("id > 3"))
    nested = executed_plan(rows.where("s.b > 3").select("s.b"))
    assert "GreaterThan(s.b,3)" in nested
    assert "s:struct<b:bigint>>" in nested
    assert "PushedFilters: []" in executed_plan(rows.where("x > 5 AND s.t.x > 5"))
    with temporary_settings(spark, {"spark.puredelta.boundsTellNaN": "true"}):
        told = puredelta.read(spark, of_arrow)
    assert "GreaterThan(x,5.0)" in executed_plan(told.where("x > 5"))


def test_a_table_with_such_numbers_is_a_source_that_is_read_in_place(
    spark: SparkSession, of_arrow: str
) -> None:
    rows = puredelta.read(spark, of_arrow)
    found = plain_scan(spark, rows.select("x", "id", "y"))
    assert isinstance(found, PlainScan)
    assert [field.name for field in found.fields] == ["x", "id", "y"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("workers", ["true", "false"])
@pytest.mark.parametrize(
    "merge",
    [
        ("t.x > 5 AND t.id = s.i", 2),
        ("t.x > 5", 2),
        ("t.y = 0 AND t.id = s.i", 10),
        ("t.s.x > 5 AND t.id + 0 = s.i", 2),
        ("t.s.t.x = 0", 10),
    ],
)
def test_a_merge_finds_its_rows_and_inserts_no_second_one(
    spark: SparkSession, of_arrow: str, tmp_path: Path, workers: str, merge: tuple[str, int]
) -> None:
    on, wanted = merge
    source = spark.createDataFrame([(wanted,)], "i bigint")
    with temporary_settings(spark, {"spark.puredelta.workers.enabled": workers}):
        target = puredelta.read(spark, of_arrow)
        puredelta.write(target.coalesce(1), str(tmp_path / "t"))
        table = DeltaTable.forPath(spark, str(tmp_path / "t")).alias("t")
        deleting = table.merge(source.alias("s"), on).whenMatchedDelete()
        deleting.whenNotMatchedInsert(values={"id": "s.i + 100"}).execute()
    ids = [r.id for r in puredelta.read(spark, str(tmp_path / "t")).collect()]
    assert sorted(ids) == sorted({0, 1, 2, 3, 10} - {wanted})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ignored", ["part-", "parquet$"])
def test_no_data_file_is_left_out_by_its_name(
    spark: SparkSession, tmp_path: Path, ignored: str
) -> None:
    for first in (0, 3):
        rows = spark.range(first, first + 3).selectExpr("id", "id % 2 AS part")
        puredelta.write(rows.coalesce(1), str(tmp_path), mode="append", partition_by=["part"])
    with temporary_settings(spark, {"spark.sql.files.ignoredPathSegmentRegex": ignored}):
        read = puredelta.read(spark, str(tmp_path))
        assert sorted(row.id for row in read.collect()) == list(range(6))
        assert len(read.where("part = 1 AND id > 0").collect()) == 3
        DeltaTable.forPath(spark, str(tmp_path)).update("id = 1", {"id": "7"})
    ids = sorted(row.id for row in puredelta.read(spark, str(tmp_path)).collect())
    assert ids == [0, 2, 3, 4, 5, 7]


_DAYS = """SELECT id, d, ts, named_struct('n', id, 'd', d, 't', named_struct('ts', ts)) AS s
    FROM (SELECT id, DATE'1582-10-01' + CAST(id AS INT) AS d,
        TIMESTAMP'1582-10-01 23:30:00' + make_dt_interval(CAST(id AS INT)) AS ts FROM range(20))"""
_DAY = {
    "d": "DATE'1582-10-10'",
    "s.d": "DATE'1582-10-05'",
    "ts": "TIMESTAMP'1582-10-10 23:30:00'",
    "s.t.ts": "TIMESTAMP'1582-10-14 23:30:00'",
}
_DAY_CONDITIONS = (
    *(f"{c} {sign} {day}" for c, day in _DAY.items() for sign in ("=", "<=>", "<", ">", ">=")),
    "d != DATE'1582-10-10'",
    "d IN (DATE'1582-10-10', DATE'1582-10-12', DATE'1600-01-01')",
    "NOT (d <= DATE'1582-10-10')",
    "d BETWEEN DATE'1582-10-06' AND DATE'1582-10-07'",
)


def _ids(rows: DataFrame, conditions: Iterable[str]) -> list[tuple[str, int]]:
    """Return the rows of which each condition is true, by one job."""
    parts = [rows.where(c).select(F.lit(c), "id") for c in conditions]
    return sorted(map(tuple, reduce(DataFrame.union, parts).collect()))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_days_that_the_old_calendar_lacks_are_found(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    """Spark asks files for 1582-10-15 in the place of each of these days."""
    with temporary_settings(spark, {"spark.sql.session.timeZone": zone}):
        every = spark.sql(_DAYS)
        puredelta.write(every.where("id > 2 AND id < 18").repartitionByRange(15, "id"), tmp_path)
        found = _ids(puredelta.read(spark, tmp_path), _DAY_CONDITIONS)
        assert found == _ids(every.where("id > 2 AND id < 18"), _DAY_CONDITIONS)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("workers", ["true", "false"])
def test_statements_find_days_that_the_old_calendar_lacks(
    spark: SparkSession, tmp_path: Path, workers: str
) -> None:
    root = str(tmp_path / "t")
    puredelta.write(spark.sql(_DAYS).coalesce(1), root)
    table = DeltaTable.forPath(spark, root).alias("t")
    source = spark.sql("SELECT id + 4 i, d FROM (" + _DAYS + ") WHERE id IN (5, 9)").alias("s")
    with temporary_settings(spark, {"spark.puredelta.workers.enabled": workers}):
        # Days 9 and 13 of the target; of the source only the row of the tenth day is in question.
        on = "t.id = s.i AND t.d >= DATE'1582-10-10' AND s.d = DATE'1582-10-10'"
        merge = table.merge(source, on).whenMatchedDelete()
        merge.whenNotMatchedInsert(values={"id": "s.i + 100"}).execute()
        table.delete("d = DATE'1582-10-12'")
        table.update("ts > TIMESTAMP'1582-10-14 12:00:00' AND id < 15", {"id": "id + 1000"})
    left = {row.id for row in puredelta.read(spark, root).collect()}
    assert left == {*range(20), 109, 1014} - {11, 13, 14}


@pytest.mark.thorough
def test_changes_of_days_that_the_old_calendar_lacks_are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = str(tmp_path / "t")
    feed = {"delta.enableChangeDataFeed": "true"}
    puredelta.write(spark.sql(_DAYS).coalesce(1), root, properties=feed)
    DeltaTable.forPath(spark, root).delete("id = 12")
    condition = "d > DATE'1582-10-10' AND d <= DATE'1582-10-14'"
    changes = puredelta.read_changes(spark, root, starting_version=0).where(condition)
    assert sorted(row.id for row in changes.collect()) == [10, 11, 12, 12, 13]


def test_conditions_on_other_days_reach_the_files(spark: SparkSession, tmp_path: Path) -> None:
    day = "DATE'2024-01-01' + CAST(id AS INT)"
    rows = spark.range(0, 9, 1, 3).selectExpr(
        "id",
        f"{day} AS d",
        "TIMESTAMP'1583-01-01 00:00:00' AS ts",
        f"named_struct('d', {day}) AS s",
    )
    puredelta.write(rows, str(tmp_path))
    read = puredelta.read(spark, str(tmp_path))
    assert read.columns == ["id", "d", "ts", "s"]
    assert "GreaterThan(d,2024-01-03)" in executed_plan(read.where("d > DATE'2024-01-03'"))
    assert "GreaterThan(s.d,2024-01-03)" in executed_plan(read.where("s.d > DATE'2024-01-03'"))
    assert "GreaterThan(ts,1583-01-01" in executed_plan(read.where("ts > '1583-01-01 00:00:00'"))
