"""Arrow in Python workers reads and writes what Spark's own reader and writer do.

Local files stand for storage that Spark cannot reach: ``spark.puredelta.io`` chooses the way.
``PUREDELTA_IO=arrow pytest ...`` runs any other test that way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.errors import InvalidRequestError, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.data_access import DataIo, data_io
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable

KEY = "spark.puredelta.io"
EVERY_TYPE = """
    id, cast(id AS tinyint) b, cast(id AS smallint) sh, cast(id AS int) i,
    cast(id / 3 AS float) f,    if(id = 7, double('NaN'), id / 3) d, cast(id AS decimal(9, 2)) d9,
    cast(id AS decimal(30, 3)) d30,
    id % 2 = 0 flag, concat('text ', id) s, cast(concat('x', id) AS binary) bin,
    date_add(date'1500-01-01', cast(id AS int)) day,
    timestamp'1500-01-01 12:00:00.123456' + make_interval(0, 0, 0, id) t,
    timestamp_ntz'2024-03-31 02:30:00' + make_interval(0, 0, 0, 0, id) ntz,
    named_struct('x', id, 'Y', named_struct('z', array(id, NULL))) st,
    if(id % 3 = 0, NULL, array(named_struct('e', id), NULL)) a, map(id, array(date'2024-01-01')) m,
    map('k', named_struct('v', timestamp_ntz'2024-01-01 00:00:00')) mm,
    cast(NULL AS string) nothing
"""
PARTITIONS = """
    cast(id % 3 AS int) pi, if(id % 4 = 0, NULL, concat('ä/=% ', id % 4)) ps,
    date_add(date'2024-01-01', cast(id % 2 AS int)) pd, id % 2 = 0 pf,
    timestamp'2024-10-27 02:30:00' + make_interval(0, 0, 0, 0, id % 2) pt,
    cast(id % 2 + 0.5 AS decimal(5, 2)) pdec
"""


@pytest.fixture(autouse=True)
def zone(spark: SparkSession) -> Iterator[None]:
    with temporary_settings(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        yield


def by(spark: SparkSession, way: str) -> Any:
    return temporary_settings(spark, {KEY: way})


def every_type(spark: SparkSession, num_rows: int = 40) -> DataFrame:
    return spark.sql(f"SELECT {EVERY_TYPE}, {PARTITIONS} FROM range({num_rows})")


def rows_of(spark: SparkSession, path: str, way: str) -> list[str]:
    with by(spark, way):
        return sorted(str(row) for row in puredelta.read(spark, path).collect())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("writer", "reader"), [("spark", "arrow"), ("arrow", "spark")])
def test_one_way_reads_what_the_other_has_written(
    spark: SparkSession, tmp_path: Path, writer: str, reader: str
) -> None:
    path, rows = str(tmp_path / "t"), every_type(spark)
    with by(spark, writer):
        puredelta.write(rows, path, partition_by=["pi", "ps", "pd", "pf", "pt", "pdec"])
    assert rows_of(spark, path, reader) == sorted(map(str, rows.collect()))
    with by(spark, reader):
        assert puredelta.read(spark, path).schema == puredelta.read(spark, path).schema


def test_both_ways_leave_the_same_statistics_and_directories(
    spark: SparkSession, tmp_path: Path
) -> None:
    def described(way: str) -> dict[str, dict[str, Any]]:
        path = str(tmp_path / way)
        with by(spark, way):
            puredelta.write(every_type(spark, 6).coalesce(1), path, partition_by=["ps"])
        adds = TableLog.open(path).snapshot().files.adds()
        return {add.path.split("/")[1]: json.loads(add.stats or "") for add in adds}

    by_arrow, by_spark = described("arrow"), described("spark")
    assert by_arrow.keys() == by_spark.keys()
    for directory, known in by_arrow.items():
        nulls, all_nulls = known.pop("nullCount"), by_spark[directory].pop("nullCount")
        assert known == by_spark[directory]
        assert nulls.items() <= all_nulls.items()  # an older Arrow knows less of arrays


def test_parquet_types_are_those_that_delta_wants(spark: SparkSession, tmp_path: Path) -> None:
    with by(spark, "arrow"):
        puredelta.write(every_type(spark, 3).coalesce(1), str(tmp_path / "t"))
    (file,) = (tmp_path / "t").rglob("*.parquet")
    footer = pq.ParquetFile(file)
    schema = footer.schema
    leaves = {schema.column(n).path: schema.column(n) for n in range(len(schema))}
    assert leaves["t"].physical_type == leaves["ntz"].physical_type == "INT64"
    assert "isAdjustedToUTC=true" in str(leaves["t"].logical_type)
    assert "isAdjustedToUTC=false" in str(leaves["ntz"].logical_type)
    assert leaves["d9"].physical_type in {"INT32", "FIXED_LEN_BYTE_ARRAY"}
    assert {"a.list.element.e", "m.key_value.key", "st.Y.z.list.element"} <= leaves.keys()
    assert b"ARROW:schema" not in (footer.metadata.metadata or {})


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_mapped(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    path = str(tmp_path / "t")
    with by(spark, "arrow"):
        puredelta.sql(
            spark,
            f"CREATE TABLE delta.`{path}` (id INT, `a b` STRUCT<`x y`: INT, z: STRING>, p STRING) "
            f"USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')",
        )
        values = "SELECT 1, named_struct('x y', 2, 'z', 'q'), 'p1'"
        puredelta.sql(spark, f"INSERT INTO delta.`{path}` {values}")
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` RENAME COLUMN id TO `new.id`")
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` RENAME COLUMN `a b`.`x y` TO w")
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMNS (later STRING)")
    expected = ["Row(new.id=1, a b=Row(w=2, z='q'), p='p1', later=None)"]
    assert rows_of(spark, path, "arrow") == rows_of(spark, path, "spark") == expected


def test_types_that_were_widened(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with by(spark, "arrow"):
        puredelta.sql(
            spark,
            f"CREATE TABLE delta.`{path}` (i TINYINT, d DECIMAL(5, 1), day DATE, a ARRAY<INT>) "
            "USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true', "
            "'delta.feature.timestampNtz' = 'supported')",
        )
        puredelta.sql(
            spark, f"INSERT INTO delta.`{path}` SELECT 1, 2.5, date'2024-01-01', array(1)"
        )
        for change in ("i TYPE BIGINT", "d TYPE DECIMAL(12, 3)", "day TYPE TIMESTAMP_NTZ"):
            puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN {change}")
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN a.element TYPE BIGINT")
    assert rows_of(spark, path, "arrow") == rows_of(spark, path, "spark")


@pytest.mark.thorough
def test_rows_are_changed_row_by_row_and_recorded(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with by(spark, "arrow"):
        rows = spark.sql("SELECT id, id % 2 p, concat('v', id) v FROM range(100)")
        puredelta.write(rows, path, partition_by=["p"])
        for name in ("enableChangeDataFeed", "enableDeletionVectors", "enableRowTracking"):
            puredelta.sql(
                spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.{name}' = 'true')"
            )
        table = DeltaTable.forPath(spark, path)
        table.delete("id % 10 = 0")
        table.update("id = 3", {"v": "'changed'", "p": "7"})
        source = spark.sql("SELECT id, 9 p, 'merged' v FROM range(95, 105)")
        merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        table.optimize().executeCompaction()
        table.optimize().executeZOrderBy("id")
        changes = puredelta.read_changes(spark, path, starting_version=4).groupBy("_change_type")
        counts = {row[0]: row[1] for row in changes.count().collect()}
        assert table.toDF().where("v = 'merged'").count() == 10
    assert counts == {"delete": 10, "update_preimage": 6, "update_postimage": 6, "insert": 5}
    assert rows_of(spark, path, "arrow") == rows_of(spark, path, "spark")


def test_a_failed_write_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with by(spark, "arrow"):
        puredelta.write(spark.range(3), path)
        before = set((tmp_path / "t").rglob("*"))
        bad = spark.sql("SELECT if(id = 90, raise_error('no'), id) id FROM range(0, 100, 1, 4)")
        with pytest.raises(PySparkException, match="no"):
            puredelta.write(bad, path, mode="append")
        assert set((tmp_path / "t").rglob("*")) == before


@pytest.mark.thorough
def test_rules_of_the_table_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with by(spark, "arrow"):
        puredelta.write(spark.range(3), path)
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (id < 10)")
        with pytest.raises(InvalidRequestError, match="small"):
            puredelta.write(spark.range(30), path, mode="append")


def test_a_lost_file_is_an_error_that_names_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with by(spark, "arrow"):
        puredelta.write(spark.range(3).coalesce(1), path)
        rows = puredelta.read(spark, path)
        (file,) = (tmp_path / "t").rglob("*.parquet")
        file.unlink()
        with pytest.raises(PySparkException, match=file.name):
            rows.collect()
        with temporary_settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
            assert puredelta.read(spark, path).count() == 0


@pytest.mark.thorough
def test_a_large_file_is_read_by_several_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("puredelta.spark.scan.arrow_scan._PART_BYTES", 10_000)
    path = str(tmp_path / "t")
    rows = spark.range(20_000).coalesce(1)
    with (
        by(spark, "arrow"),
        temporary_settings(spark, {"spark.sql.files.maxRecordsPerFile": "7000"}),
    ):
        puredelta.write(rows, path)
        assert len(list(TableLog.open(path).snapshot().files.adds())) == 3
        found = puredelta.read(spark, path)
        assert found.agg({"id": "sum", "*": "count"}).first() == (20_000, 20_000 * 19_999 // 2)


def test_who_reads_and_writes_is_decided_by_the_scheme(spark: SparkSession) -> None:
    with by(spark, "auto"):
        assert data_io(spark, ["file:/a"]) is DataIo.SPARK
        assert data_io(spark, ["hdfs://h/a"]) is DataIo.SPARK
        assert data_io(spark, ["file:/a", "s3a://b/a"]) is DataIo.ARROW
    with by(spark, "spark"):
        assert data_io(spark, ["s3a://b/a"]) is DataIo.SPARK
    with (
        by(spark, "parrot"),
        pytest.raises(InvalidRequestError, match="'auto', 'spark' or 'arrow'"),
    ):
        data_io(spark, ["file:/a"])


def test_files_on_storage_that_nobody_reaches_name_the_scheme_and_what_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    puredelta.write(spark.range(3), path)
    add = {"path": "foreign://host/p.parquet", "partitionValues": {}, "size": 7}
    line = json.dumps({"add": {**add, "modificationTime": 1, "dataChange": True}})
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(line + "\n")
    names = r"foreign://host/p\.parquet.*'foreign'.*spark\.jars\.packages"
    with pytest.raises(UnsupportedError, match=names) as raised:
        puredelta.read(spark, path)
    assert raised.value.details["scheme"] == "foreign"
    with pytest.raises(UnsupportedError, match=names):
        DeltaTable.forPath(spark, path).delete("id = 1")
    assert TableLog.open(path).snapshot().version == 1
