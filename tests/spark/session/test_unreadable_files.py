"""A data file that is missing or damaged is an error with its name, in every kind of statement."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.tables import DeltaTable

Statement = Callable[[SparkSession, str], object]
STATEMENTS: dict[str, Statement] = {
    "DELETE": lambda spark, t: spark.sql(f"DELETE FROM {t} WHERE v % 3 = 0"),
    "UPDATE": lambda spark, t: spark.sql(f"UPDATE {t} SET v = 1 WHERE v % 3 = 0"),
    "MERGE": lambda spark, t: spark.sql(
        f"MERGE INTO {t} t USING (SELECT * FROM VALUES (3L), (23L) AS v(id)) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE"
    ),
    "delete": lambda spark, t: DeltaTable.forName(spark, t).delete("v % 3 = 0"),
    "OPTIMIZE": lambda spark, t: spark.sql(f"OPTIMIZE {t}"),
    "constraint": lambda spark, t: spark.sql(f"ALTER TABLE {t} ADD CONSTRAINT c CHECK (v >= 0)"),
    "collect": lambda spark, t: spark.table(t).where("v > 0").collect(),
    "show": lambda spark, t: spark.table(t).where("v > 0").show(),
    "CTAS": lambda spark, t: spark.sql(f"CREATE TABLE unreadable.c USING delta AS TABLE {t}"),
}


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """A file that is gone, and one that is cut off, each of a table of the database."""
    puredelta.activate(spark)
    spark.sql("CREATE DATABASE unreadable")
    broken = []
    for name in ("gone", "cut"):
        path = tmp_path_factory.mktemp(name)
        for first in (0, 20):
            rows = spark.range(first, first + 20).selectExpr("id", "id * 2 AS v").coalesce(1)
            rows.write.format("delta").mode("append").save(str(path))
        spark.sql(f"CREATE TABLE unreadable.{name} USING delta LOCATION '{path}'")
        broken.append(min(f for f in path.rglob("*.parquet") if "_delta_log" not in f.parts))
    broken[0].unlink()
    broken[1].write_bytes(broken[1].read_bytes()[:200])
    yield broken
    spark.sql("DROP DATABASE unreadable CASCADE")
    puredelta.deactivate()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_file_is_named(spark: SparkSession, files: list[Path], statement: str) -> None:
    for name, file in zip(("gone", "cut"), files, strict=True):
        with pytest.raises(CorruptTableError) as error:
            STATEMENTS[statement](spark, f"unreadable.{name}")
        assert file.name in str(error.value)
        expected = {
            "gone": ErrorCode.FAILED_READ_FILE_NOT_EXIST,
            "cut": ErrorCode.FAILED_READ_FILE,
        }[name]
        assert error.value.code in {expected, ErrorCode.FAILED_READ_FILE_FOOTER}


def test_files_of_no_table_are_errors_of_spark(
    spark: SparkSession, files: list[Path], tmp_path: Path
) -> None:
    assert files
    spark.range(3).write.parquet(f"{tmp_path}/plain")
    rows = spark.read.parquet(f"{tmp_path}/plain")
    shutil.rmtree(tmp_path / "plain")
    with pytest.raises(Py4JJavaError, match="FAILED_READ_FILE"):
        rows.collect()
