"""Scans by Arrow in Python workers read what a query needs, and are otherwise as Spark's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable

PLAN = "by Arrow in Python workers"


@pytest.fixture
def by_arrow(spark: SparkSession) -> Iterator[None]:
    with temporary_settings(spark, {"spark.puredelta.io": "arrow"}):
        yield


@pytest.fixture
def table(spark: SparkSession, by_arrow: None, tmp_path: Path) -> str:
    """Two files, a partition each; a column has another name in the files."""
    rows = spark.sql(
        "SELECT id, id % 2 AS p, named_struct('a', id, 'b', concat('v', id)) AS s FROM range(20)"
    )
    path, properties = str(tmp_path / "t"), {"delta.columnMapping.mode": "name"}
    puredelta.write(rows.coalesce(1), path, partition_by=["p"], properties=properties)
    puredelta.sql(spark, f"ALTER TABLE delta.`{path}` RENAME COLUMN s TO `s t`")
    return path


def _plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan())


@pytest.mark.thorough
def test_any_columns_may_be_asked_for(spark: SparkSession, table: str) -> None:
    rows = puredelta.read(spark, table)
    assert PLAN in _plan(rows)
    assert rows.count() == 20
    assert [tuple(r) for r in rows.groupBy("p").count().orderBy("p").collect()] == [
        *((0, 10), (1, 10))
    ]
    assert rows.selectExpr("sum(`s t`.a)").first() == (190,)
    assert rows.where("`s t`.b = 'v7'").select("id", "p").collect() == [(7, 1)]
    assert rows.selectExpr("1 AS one").distinct().collect() == [(1,)]
    assert [r.id for r in rows.orderBy("id").take(2)] == [0, 1]


@pytest.mark.skipif(
    pyspark.__version__.startswith(("4.0", "4.1")), reason="older planners push no conditions"
)
def test_conditions_leave_out_files(spark: SparkSession, table: str) -> None:
    rows = puredelta.read(spark, table)
    assert f"1 of 2 files {PLAN}" in _plan(rows.where("p = 1"))
    assert rows.where("p = 1").count() == 10
    assert f"0 of 2 files {PLAN}" in _plan(rows.where("id > 100"))
    assert rows.where("id > 100").count() == 0
    assert f"2 of 2 files {PLAN}" in _plan(rows.where("id = 3 OR rand() > 2"))


@pytest.mark.thorough
def test_a_table_meets_itself(spark: SparkSession, table: str) -> None:
    rows = puredelta.read(spark, table)
    joined = rows.alias("a").join(rows.alias("b"), "id")
    assert joined.count() == 20
    assert rows.where("p = 0").union(rows.where("p = 1")).count() == 20
    cached = rows.select("id").cache()
    try:
        assert cached.count() == 20
        assert rows.select("id").where("id < 5").count() == 5
        assert rows.count() == 20
    finally:
        cached.unpersist()


def test_deleted_rows_stay_away(spark: SparkSession, table: str) -> None:
    for name in ("enableDeletionVectors", "enableChangeDataFeed"):
        puredelta.sql(
            spark, f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.{name}' = 'true')"
        )
    DeltaTable.forPath(spark, table).delete("id = 4")
    rows = puredelta.read(spark, table)
    assert rows.count() == 19
    assert rows.where("p = 0").selectExpr("sum(id)").first() == (86,)
    assert rows.where("id < 6 AND p = 0").select("id").orderBy("id").collect() == [(0,), (2,)]


def test_a_spark_with_other_interfaces_reads_everything(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("puredelta.spark.jvm.worker_relation._TABLE", "no.such.Interface")
    rows = puredelta.read(spark, table)
    assert "read_parts" in _plan(rows)
    assert rows.where("id = 3").select("id").collect() == [(3,)]


def _grouped(path: Path) -> None:
    """Write a table of one file with ten row groups of a hundred rows."""
    rows = pa.table({"id": range(1000), "v": [f"v{n:04}" for n in range(1000)]})
    path.mkdir()
    pq.write_table(rows, path / "f.parquet", row_group_size=100)


@pytest.mark.skipif(
    pyspark.__version__.startswith(("4.0", "4.1")), reason="older planners push no conditions"
)
def test_conditions_leave_out_row_groups(
    spark: SparkSession, by_arrow: None, tmp_path: Path
) -> None:
    _grouped(tmp_path / "t")
    DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path}/t`")
    rows = puredelta.read(spark, str(tmp_path / "t"))

    def ids_of(some: DataFrame) -> list[int]:
        assert "row groups" in _plan(some)
        return sorted(r.id for r in some.select("id").collect())

    assert ids_of(rows.where("id = 250")) == [250]
    assert ids_of(rows.where("v > 'v0997' AND id < 999")) == [998]
    assert ids_of(rows.where("id IN (1, 999) OR v LIKE 'v05000%'")) == [1, 999]
    # Equal but for their conditions: neither takes the answer of the other.
    both = (
        rows.where("id < 100")
        .selectExpr("sum(id) s")
        .union(rows.where("id >= 900").selectExpr("sum(id) s"))
    )
    assert [r.s for r in both.collect()] == [4950, 94950]
    # The second row group holds its rows under their places in the file.
    puredelta.sql(
        spark,
        f"ALTER TABLE delta.`{tmp_path}/t` "
        "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    )
    DeltaTable.forPath(spark, str(tmp_path / "t")).delete("id IN (150, 250)")
    left = puredelta.read(spark, str(tmp_path / "t")).where("id BETWEEN 149 AND 251")
    assert sorted(r.id for r in left.collect()) == [
        n for n in range(149, 252) if n not in (150, 250)
    ]
    with temporary_settings(spark, {"spark.sql.parquet.filterPushdown": "false"}):
        assert "row groups" not in _plan(rows.where("id = 250"))
        assert rows.where("id = 250").count() == 1


CONDITIONS = (
    *("f > 3.5", "f >= double('NaN')", "f = double('NaN')", "f < 0", "NOT (f > 1)"),
    *("f4 = 0.1", "f4 > 0.1", "d = DATE'1969-12-30'", "t > TIMESTAMP'1970-01-01 00:00:30.0000005'"),
    *(
        "z <= TIMESTAMP_NTZ'1970-01-01 00:00:05'",
        "x = 0.50",
        "x BETWEEN 0.35 AND 0.4",
        "b",
        "NOT b",
    ),
    *("s = ''", "s LIKE 'é%'", "s > 'z'", "s IN ('é7', 'none')", "s IS NULL", "s <=> NULL"),
    *(
        "b8 = 5 OR x IS NULL",
        "upper(s) = 'É7'",
        "c = 'a'",
        "bin = X'07'",
        "n IS NOT NULL AND id < 9",
    ),
    *(
        "id + 1 = 7",
        "id NOT IN (1, 2, 3)",
        "st.a = 5",
        "try_cast(s AS INT) = 1",
        "w = 5",
        "w > 4.5",
    ),
)


@pytest.mark.thorough
def test_conditions_answer_as_sparks_own_scan(
    spark: SparkSession, by_arrow: None, tmp_path: Path
) -> None:
    """Of every type a column, in row groups of ten rows; some have no value, or none at all."""
    rows = spark.range(100).selectExpr(
        "id",
        "CASE WHEN id % 30 = 7 THEN double('NaN') WHEN id < 50 THEN id / 7.0D - 3 END f",
        "float(id / 10) f4",
        "date_add(DATE'1970-01-01', int(id) - 50) d",
        "timestamp_micros(id * 1000000) t",
        "TIMESTAMP_NTZ'1970-01-01' + make_dt_interval(0, 0, 0, id) z",
        "CASE WHEN id % 10 > 0 THEN cast(id / 100 AS DECIMAL(9, 2)) END x",
        "id > 40 b",
        "CASE WHEN id = 3 THEN '' WHEN id < 70 THEN concat('é', id) END s",
        "tinyint(id) b8",
        "CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END c",
        "unhex(lpad(hex(id), 2, '0')) bin",
        "cast(NULL AS INT) n",
        "named_struct('a', id) st",
        "int(id) w",
    )
    (tmp_path / "t").mkdir()
    pq.write_table(rows.toArrow(), tmp_path / "t" / "f.parquet", row_group_size=10)
    DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path}/t`")
    puredelta.sql(
        spark,
        f"ALTER TABLE delta.`{tmp_path}/t` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
    )
    puredelta.sql(spark, f"ALTER TABLE delta.`{tmp_path}/t` ALTER COLUMN w TYPE DOUBLE")
    table = puredelta.read(spark, str(tmp_path / "t"))
    # As columns they leave out nothing.
    told = table.selectExpr("id", *(f"({one}) c{n}" for n, one in enumerate(CONDITIONS))).collect()
    for n, one in enumerate(CONDITIONS):
        found = sorted(row.id for row in table.where(one).select("id").collect())
        assert found == [row.id for row in told if row[f"c{n}"]], one
